"""Deciders on aggregates: replay a state, decide on it, store that, and decide again where another was faster.

    load        the snapshot and the events after it, two requests; or a standing that the caller has, none
    append      under exactly the lock that the state was made at, one request; with a snapshot where the policy says so
     ├ stored   the standing that comes back makes the next decision one request
     └ moved    only the events since the head that came back are read, one request; after a long pause all is replayed

The loop is that of `epochal.deciders.loop`. In it, decisions of one process on the same aggregate take turns, and each
leaves its standing to the next one, which takes it where its caller knows an older one.

Under an idempotency key the key's record is looked for after each load, and is a write of the append's transaction:
where it is there, it says which events the decision has.

The first append always stores a snapshot, later ones by the policy.

A snapshot says what it was made with: the class of the state and the version of the rules. One that was made with
something else, or cannot be read, is not used. The state is made from all events, two requests more, and the next
append stores a snapshot that is up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Final, Generic, Literal, TypeVar, cast, overload

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import (
    AggregateEvent,
    AggregateSnapshot,
    Lock,
    RecordedAggregateEvent,
)
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict, Replay
from epochal.contrib.event_store_adapter.snapshot_policies import ONE_BATCH, Policy, Since
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loop import ATTEMPTS, Answer, Decision, DecisionSource, Earlier, Moved, decision_of
from epochal.deciders.on_streams import NO_COMMAND, Decider, decision_function
from epochal.deciders.snapshot_marks import NOT_READ, UNREADABLE, remedy, warn_once
from epochal.errors import CorruptData, EpochalError, EventsPruned, InvalidInput
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Claim
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.expected_version import NO_STREAM
from epochal.model.kinds import must_be_whole
from epochal.model.plain_functions import must_be_done, must_be_plain, must_be_state
from epochal.store.driver import Driver
from epochal.store.queueing import Key, QueuePlace

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")

_Rules = tuple[Decider[Any, Any, Any], EventCodec[Any], StateCodec[Any]]


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Standing(Generic[S]):
    """A state that a decider folded from an aggregate, with the aggregate's version and event number at that time.

    Attributes:
        state: decider's state, with all of the aggregate's events folded in.
        lock: version and last event number of the aggregate; None if there is no such aggregate.
        events: number of the aggregate's events after its latest snapshot.
        size: number of bytes of data of the aggregate's events after its latest snapshot.
        out_of_date: whether the stored snapshot could not be used, so that the next append stores another one.
    """

    state: S
    lock: Lock | None
    events: int = 0
    size: int = 0
    out_of_date: bool = False


@dataclass(frozen=True, kw_only=True)
class AggregateTransacted(Generic[S, E]):
    """Result of a transaction on an aggregate.

    Attributes:
        standing: state and lock after the decision; given to the next transaction, it saves reading the aggregate.
        events: events that were decided; if there are none, nothing was written.
        retention_error: error that kept old snapshot copies from being deleted or set to expire, or None; the events
            are safe all the same.
        replayed: whether an earlier call with the idempotency key appended the events.
        capacity: DynamoDB capacity that the transaction consumed, its loads and refused appends included.
    """

    standing: Standing[S]
    events: tuple[E, ...]
    retention_error: EpochalError | None = None
    replayed: bool = field(default=False, compare=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)

    @property
    def state(self) -> S:
        """The state after the decision."""
        return self.standing.state

    @property
    def version(self) -> int:
        """The aggregate's version; 0 if there is no aggregate."""
        return 0 if self.standing.lock is None else self.standing.lock.version


@dataclass(frozen=True, kw_only=True)
class AggregateDeciders(Generic[C, S, E]):
    """Runs one decider on any number of aggregates. Holds no state; safe under threads.

    Attributes:
        store: store of the aggregates.
        decider: the domain's rules: a function that decides on commands, and one that evolves states.
        codec: codec of events. Aggregates store an event's type, data and timestamp; an event with anything else is
            refused.
        state: codec of the states that are stored as snapshots.
        policy: function that says which appends store a snapshot; an aggregate's first append always does.
        attempts: number of decisions on one command before `Contended` is raised.
    """

    store: AggregateStore
    decider: Decider[C, S, E]
    codec: EventCodec[E]
    state: StateCodec[S]
    policy: Policy = ONE_BATCH
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        must_be_plain(self.policy, "policy")
        must_be_whole(self.attempts, "attempts", 1)

    @overload
    def handle(
        self,
        aggregate: AggregateId,
        command: C,
        *,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> AggregateTransacted[S, E]: ...

    @overload
    def handle(
        self,
        aggregate: AggregateId,
        *,
        decide: Callable[[S], Answer[E]],
        with_result: Literal[False] = False,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> AggregateTransacted[S, E]: ...

    @overload
    def handle(
        self,
        aggregate: AggregateId,
        *,
        decide: Callable[[S], tuple[R, Answer[E]]],
        with_result: Literal[True],
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, AggregateTransacted[S, E]]: ...

    def handle(
        self,
        aggregate: AggregateId,
        command: Any = NO_COMMAND,
        *,
        decide: Callable[[S], Any] | None = None,
        with_result: bool = False,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> AggregateTransacted[S, E] | tuple[Any, AggregateTransacted[S, E]]:
        """Decide on a command in an aggregate's latest state, append the events once, and return the outcome.

        The decider's `decide` gets the command and the state; a function given as `decide` takes its place, and gets
        the state. Either is called again whenever another writer was faster, so it must be free of side effects.

        Args:
            aggregate: id of the aggregate.
            command: the command for the decider's `decide`.
            decide: function that decides instead of the decider's `decide`, without a command.
            with_result: whether `decide` returns a pair of a result and the events. The answer is then a pair of the
                result and the outcome. For a repeat under a key, `decide` is called again on the state of the first
                call, made from all events before it, only for its result.
            known: state and lock from before, which may be old: the decision is no less safe for it. None loads them.
            idempotency_key: key of one decision on its aggregate: for 24 hours, a repeat of the command with its key is
                answered like the first, whatever the aggregate is by then, and its events are there once. The key alone
                tells a repeat, not the command. A decision that stored nothing is made again.

        Raises:
            InvalidInput: an event that cannot be stored; `TooLarge` also for a snapshot; a key that was used for an
                append.
            Contended: other writers were faster at every attempt.
            Unavailable: the store could not be reached; see `maybe_applied`.
            EventsPruned: the snapshot is out of date, and events that would stand in for it are missing.
            CorruptData, UnknownType: the state cannot be made.
        """
        decision = decision_function(self.decider, command, decide, with_result=with_result)
        source = self._on(aggregate, decision, known, idempotency_key, with_result=with_result)
        result, transacted = source.decide(attempts=self.attempts)
        return (result, transacted) if with_result else transacted

    def _on(
        self,
        aggregate: AggregateId,
        decision: Callable[[S], tuple[R, Answer[E]]],
        standing: Standing[S] | None,
        key: str | None,
        *,
        with_result: bool,
    ) -> _OnAggregate[R, S, E]:
        """Make the decision source that runs one decision on an aggregate.

        Args:
            with_result: whether the caller wants the decision's result.
        """
        return _OnAggregate(
            deciders=self,
            aggregate=aggregate,
            decision=decision,
            known=standing,
            key=key,
            with_result=with_result,
        )

    def query(self, aggregate: AggregateId, projection: Callable[[S], R]) -> R:
        """Load an aggregate's state, and return what a projection makes of it.

        Args:
            aggregate: id of the aggregate.
            projection: converts the state into the view.
        """
        return projection(self.load(aggregate).state)

    def load(self, aggregate: AggregateId) -> Standing[S]:
        """Load an aggregate's latest state and lock from snapshot and events; initial state if none exists.

        Two requests if the events after the snapshot are not many. The state is the decider's initial one if there is
        no such aggregate.

        Args:
            aggregate: id of the aggregate.

        Raises:
            EventsPruned: the snapshot is out of date, and events that would stand in for it are missing.
        """
        replayed = self.store.replay(aggregate)
        if replayed is None:
            return Standing(state=must_be_done(self.decider.initial(), "initial"), lock=None)
        restored = self._restored(replayed.snapshot)
        if isinstance(restored, Standing):
            return self._folded(restored.state, replayed)
        state = self._from_events(replayed.snapshot, replayed.snapshot.seq_nr, restored).state
        return replace(self._folded(state, replayed), out_of_date=True)

    def _restored(self, snapshot: AggregateSnapshot) -> Standing[S] | str:
        """Decode a snapshot's state to a `Standing`, or warn and return the reason why it is not used."""
        why = self.state.misfit(snapshot)
        if why is None:
            try:
                state = self.state.decode(snapshot.data)
            except UNREADABLE:
                why = NOT_READ
            else:
                return Standing(state=must_be_done(state, "decode"), lock=None)
        warn_once(snapshot.aggregate.type, why)
        return why

    def _from_events(self, snapshot: AggregateSnapshot, seq_nr: int, why: str) -> Standing[S]:
        """Return a `Standing` as of event `seq_nr`, from events alone; raise `EventsPruned` if one is missing.

        Raises:
            EventsPruned: an event is missing; the error says `why` the snapshot is not used.
        """
        try:
            return self._since(snapshot.aggregate, must_be_done(self.decider.initial(), "initial"), 0, seq_nr)
        except CorruptData as error:
            if error.missing is None:
                raise
            aggregate = snapshot.aggregate
            raise EventsPruned(str(aggregate), 1, error.missing + 1, remedy(aggregate.type, why)) from error

    def _since(self, aggregate: AggregateId, state: S, begun: int, seq_nr: int) -> Standing[S]:
        """Read events after number `begun` up to `seq_nr`, fold them into a state, and return a `Standing`."""
        events = self.store.events_after(aggregate, begun, limit=seq_nr - begun) if seq_nr > begun else []
        return Standing(
            state=reduce(self._evolve, events, state),
            lock=None,
            events=len(events),
            size=sum(len(event.data) for event in events),
        )

    def _append(
        self, aggregate: AggregateId, base: Standing[S], decided: tuple[E, ...], key: str | None
    ) -> tuple[Standing[S], AggregateAppended | AggregateConflict]:
        """Append a decision's events, with a snapshot if the policy says so; return state and outcome.

        The lock of the state is that of the append, or the old one after a conflict.
        """
        state = reduce(self._fold_decoded, decided, base.state)
        events = tuple(map(self._encoded, decided))
        size = base.size + sum(len(event.data) for event in events)
        since = Since(state=state, events=base.events + len(events), size=size)
        takes_snapshot = base.lock is None or base.out_of_date or must_be_done(self.policy(since), "policy")
        outcome = self.store.try_append(
            aggregate,
            events,
            snapshot=must_be_done(self.state.encode(state), "encode") if takes_snapshot else None,
            expected=NO_STREAM if base.lock is None else base.lock,
            idempotency_key=key,
            decided=True,
            made_with=self.state.made_with,
        )
        return Standing(
            state=state,
            lock=outcome.lock if isinstance(outcome, AggregateAppended) else base.lock,
            events=0 if takes_snapshot else since.events,
            size=0 if takes_snapshot else since.size,
            out_of_date=base.out_of_date and isinstance(outcome, AggregateConflict),
        ), outcome

    def _load_as_of(self, aggregate: AggregateId, seq_nr: int) -> Standing[S]:
        """Return a `Standing` as of event `seq_nr`, from a snapshot that is not later, or from all events."""
        snapshot = self.store.latest_snapshot(aggregate)
        if snapshot is None or snapshot.seq_nr > seq_nr:
            return self._since(aggregate, must_be_done(self.decider.initial(), "initial"), 0, seq_nr)
        restored = self._restored(snapshot)
        if isinstance(restored, Standing):
            return self._since(aggregate, restored.state, snapshot.seq_nr, seq_nr)
        return replace(self._from_events(snapshot, seq_nr, restored), out_of_date=True)

    def _folded(self, state: S, replay: Replay, before: Standing[S] | None = None) -> Standing[S]:
        """Fold a replay's events into a state; return a `Standing` that counts those after the snapshot.

        Args:
            before: standing that the state is of, whose events still count if the snapshot has not changed.
        """
        snapshot = replay.snapshot
        later = [event for event in replay.events if event.seq_nr > snapshot.seq_nr]
        unchanged = before if before and len(later) == len(replay.events) else None
        return Standing(
            state=reduce(self._evolve, replay.events, state),
            lock=snapshot.lock,
            events=snapshot.lock.seq_nr - snapshot.seq_nr,
            size=sum(len(event.data) for event in later) + (unchanged.size if unchanged else 0),
            out_of_date=self.state.misfit(snapshot) is not None
            or (unchanged is not None and unchanged.out_of_date),
        )

    def _evolve(self, state: S, event: RecordedAggregateEvent) -> S:
        """Decode a stored event and fold it into a state; skip events that the codec skips."""
        decoded = self.codec.read(event)
        return state if decoded is None else self._fold_decoded(state, decoded)

    def _fold_decoded(self, state: S, event: E) -> S:
        """Fold a decoded event into a state with the decider's `evolve`, and check the result."""
        return must_be_state(self.decider.evolve(state, event), state, self.decider.initial, event)

    def _encoded(self, event: E) -> AggregateEvent:
        """Encode a decided event; raise `InvalidInput` if it has more than aggregates keep."""
        encoded = must_be_done(self.codec.encode(event), "encode")
        if encoded.meta or encoded.correlation_id or encoded.causation_id or isinstance(encoded.data, Claim):
            raise InvalidInput(
                "events", f"{encoded.type}: events of aggregates have only a type, data and a timestamp"
            )
        return AggregateEvent(type=encoded.type, data=encoded.data, occurred_at=encoded.timestamp)


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class _OnAggregate(
    DecisionSource[Standing[S], Decision[R, E], R, AggregateTransacted[S, E]], Generic[R, S, E]
):
    """Decision source of one decision on one aggregate, which the decision loop runs.

    Attributes:
        deciders: deciders that load and append.
        aggregate: id of the aggregate.
        decision: function from the state to a result and the events to append.
        known: state and lock of the caller; None loads them.
        key: idempotency key of the decision; None for none.
        with_result: whether the caller wants the decision's result.
        place: place in the queue of the aggregate, whose note is the standing after the decision before, with the rules
            that it was made by; None for none.
    """

    deciders: AggregateDeciders[Any, S, E]
    aggregate: AggregateId
    decision: Callable[[S], tuple[R, Answer[E]]]
    known: Standing[S] | None
    key: str | None
    with_result: bool
    place: QueuePlace | None = None

    @property
    def driver(self) -> Driver:
        """Driver that sends the store's requests."""
        return self.deciders.store.driver

    @property
    def about(self) -> object:
        """Id of the aggregate that is decided on."""
        return self.aggregate

    @property
    def queue_keys(self) -> Sequence[Key]:
        """The aggregate, with its table."""
        return [self._queue_key]

    @property
    def _queue_key(self) -> Key:
        return (self.deciders.store.site.snapshot, str(self.aggregate))

    def over(self, driver: Driver, place: QueuePlace | None = None) -> _OnAggregate[R, S, E]:
        """Return the same decision source through another driver, with the latest state that is known."""
        store = replace(self.deciders.store, driver=driver)
        standing = self.known if place is None else self._newest_known(place)
        return replace(self, deciders=replace(self.deciders, store=store), known=standing, place=place)

    def _newest_known(self, place: QueuePlace) -> Standing[S] | None:
        """Return the caller's standing, or that of the decision before if it is another one; None loads it."""
        note: tuple[_Rules, Standing[S]] | None = place.note(*self._queue_key)
        if note is None or self.known is None or note[1].lock == self.known.lock:
            return self.known
        return note[1] if note[0] == self._rules else None

    @property
    def _rules(self) -> _Rules:
        """What the state of an aggregate depends on, beside its events."""
        return self.deciders.decider, self.deciders.codec, self.deciders.state

    def load(self) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:
        """Return the state that is known, or load it; return an earlier decision under the key instead, if any."""
        return self._unless_decided(self.known or self.deciders.load(self.aggregate))

    def confirmed(self, base: Standing[S]) -> bool:
        """Whether a state was loaded in this call, and not known before."""
        return base is not self.known

    def confirm(self, base: Standing[S]) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:  # noqa: ARG002  is replayed
        """Load the state again; return an earlier decision under the key instead, if there is one."""
        return self._unless_decided(self.deciders.load(self.aggregate))

    def plan(self, base: Standing[S]) -> Decision[R, E]:
        """Return the decision on a state; raise if it appends to other streams or sets timers."""
        decision = decision_of(self.decision(base.state))
        if decision.also:
            raise InvalidInput("also", "cannot be combined with events of an aggregate")
        if decision.timers:
            raise InvalidInput("decide", "must not set timers: aggregates have none")
        return decision

    def conclude_without_append(
        self, base: Standing[S], plan: Decision[R, E]
    ) -> tuple[R, AggregateTransacted[S, E]]:
        """Return the result of a decision without events."""
        return plan.result, AggregateTransacted(standing=base, events=())

    def append(
        self,
        base: Standing[S],
        plan: Decision[R, E],
        began: float,  # noqa: ARG002  a head has no age
    ) -> (
        tuple[R, AggregateTransacted[S, E]]
        | Earlier[R, AggregateTransacted[S, E]]
        | Moved[Standing[S], R, AggregateTransacted[S, E]]
    ):
        """Append a decision's events; return its result, or how to go on after a conflict.

        An append that an earlier call with the key made is returned as that earlier decision.
        """
        after, outcome = self.deciders._append(self.aggregate, base, plan.events, self.key)  # noqa: SLF001  its own
        if isinstance(outcome, AggregateConflict):
            return Moved(name=str(self.aggregate), onward=partial(self._onward, base, outcome))
        if outcome.replayed:
            return self._as_earlier(outcome)
        if self.place is not None:
            self.place.leave_note((self._rules, after), *self._queue_key)
        return plan.result, AggregateTransacted(
            standing=after, events=plan.events, retention_error=outcome.retention_error
        )

    def _onward(
        self, base: Standing[S], conflict: AggregateConflict, newest: bool
    ) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:
        """Return the state after a conflict, folded on or loaded anew, or an earlier call's decision.

        The events are folded if the head that came back is the newest. An earlier decision under the key is returned
        instead of the state, if there is one.
        """
        if not newest or base.lock is None or conflict.head is None:
            return self._unless_decided(self.deciders.load(self.aggregate))
        # The state that stood in the way, made from the one in hand.
        replayed = self.deciders.store.since(conflict.head, base.lock.seq_nr)
        return self._unless_decided(self.deciders._folded(base.state, replayed, before=base))  # noqa: SLF001  its own

    def _unless_decided(self, base: Standing[S]) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:
        """Return the given state, or the decision that an earlier call has made under the idempotency key.

        It is checked after each load: an append under the key that the load has not seen is found here, or refuses the
        append.
        """
        earlier = None if self.key is None else self.deciders.store.decided(self.aggregate, self.key)
        return base if earlier is None else self._as_earlier(earlier)

    def _reconstruct_answer(self, appended: AggregateAppended) -> tuple[R, AggregateTransacted[S, E]]:
        """Return an earlier call's result, if wanted, by deciding again, and what that call appended.

        If the caller wants the decision's result, the decision is called again on the state before its events.
        """
        deciders, aggregate = self.deciders, self.aggregate
        first, last = appended.first - 1, appended.lock.seq_nr
        result = cast("R", None)
        if self.with_result:
            result = decision_of(self.decision(deciders._load_as_of(aggregate, first).state)).result  # noqa: SLF001  its own
        events = map(deciders.codec.read, deciders.store.events_after(aggregate, first, limit=last - first))
        return result, AggregateTransacted(
            standing=replace(deciders._load_as_of(aggregate, last), lock=appended.lock),  # noqa: SLF001
            events=tuple(event for event in events if event is not None),
            replayed=True,
        )


SPANS: Final = (
    ("append", AggregateStore, ("try_append",)),
    ("read", AggregateStore, ("replay", "latest_snapshot", "events_after")),
)
"""Spans of OpenTelemetry: name, class, and the methods that each is around."""
