"""Deciders on aggregates: replay a state, decide on it, store that, and decide again where another was faster.

    load        the snapshot and the events after it, two requests; or a standing that the caller has, none
    append      under exactly the lock that the state was made at, one request; with a snapshot where the policy says so
     ├ stored   the standing that comes back makes the next decision one request
     └ moved    only the events since the head that came back are read, one request; after a long pause all is replayed

The loop is that of `epochal.deciders.loop`. Under an idempotency key the key's record is looked for after each load,
and is a write of the append's transaction: where it is there, it says which events the decision has.

The first append always stores a snapshot. Afterwards a snapshot makes replays shorter; the events since it make them
longer. The head that holds it is written by every append, and paid for whole, whatever the policy: so a snapshot is
left out to save the work of making it, and what is sent.

A snapshot says what it was made with: the class of the state and the version of the rules. One that was made with
something else, or cannot be read, is not used. The state is made from all events, two requests more, and the next
append stores a snapshot that is up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, Final, Generic, TypeVar, cast

from epochal.codec import json
from epochal.contrib.event_store_adapter.model import (
    AggregateEvent,
    AggregateId,
    AggregateSnapshot,
    Lock,
    RecordedAggregateEvent,
)
from epochal.contrib.event_store_adapter.store import (
    AggregateAppended,
    AggregateConflict,
    AggregateStore,
    Replay,
)
from epochal.deciders.codecs import EventCodec
from epochal.deciders.fingerprints import fingerprint_of
from epochal.deciders.loop import (
    ATTEMPTS,
    Answer,
    Decision,
    DecisionSource,
    Earlier,
    Moved,
    decision_of,
    without_result,
)
from epochal.deciders.on_streams import Decider
from epochal.deciders.shapes import Mismatch, shape_of
from epochal.deciders.snapshot_marks import (
    NOT_READ,
    UNMARKED,
    UNREADABLE,
    check_version,
    remedy,
    warn_once,
)
from epochal.errors import CorruptData, EpochalError, EventsPruned, InvalidInput
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Claim
from epochal.model.kinds import (
    must_be,
    must_be_done,
    must_be_plain,
    must_be_state,
    must_be_text,
    must_be_whole,
)
from epochal.model.versions import NO_STREAM, NOTHING, Capacity
from epochal.plan.limits import BATCH_KEYS
from epochal.store.driver import Driver

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class StateCodec(Generic[S]):
    """How a state is stored: as UTF-8 JSON, and back. What it restores must be the state it was given.

    Attributes:
        decode: raises a `ValueError`, `TypeError`, `LookupError` or `AttributeError` for what it cannot read: then the
            state is made from the events.
        made_with: a text of at most 64 bytes that changes with the form of the state, or with what the rules make of
            the events. Snapshots that were made with another one are not used. Where it is empty, all are that `decode`
            can read.
        trust_unmarked: use snapshots, too, that do not say what they were made with, as other libraries write them.
    """

    encode: Callable[[S], bytes]
    decode: Callable[[bytes], S]
    made_with: str = ""
    trust_unmarked: bool = False

    def __post_init__(self) -> None:
        """Refuse what nothing would await, and what cannot be stored."""
        must_be_plain(self.encode, "encode")
        must_be_plain(self.decode, "decode")
        check_version(self.made_with, "made_with")
        must_be(bool, self.trust_unmarked, "trust_unmarked", "True or False")

    def misfit(self, snapshot: AggregateSnapshot) -> str | None:
        """Why a snapshot is out of date, by what it says it was made with; None where it is not."""
        if not self.made_with or snapshot.made_with == self.made_with:
            return None
        if snapshot.made_with:
            return "its class, or the version of the rules, has changed since"
        return None if self.trust_unmarked else UNMARKED


@dataclass(frozen=True, kw_only=True)
class Since(Generic[S]):
    """What an append leaves after the snapshot if it stores none.

    Attributes:
        state: with the new events folded in.
        events: after the snapshot, the new ones included.
        size: bytes of their data.
    """

    state: S
    events: int
    size: int


Policy = Callable[[Since[Any]], bool]
"""Whether an append is to store a snapshot."""


def every(events: int) -> Policy:
    """A snapshot once so many events have come since the last; 1 for every append."""
    must_be_whole(events, "events", 1)
    return lambda since: since.events >= events


ONE_BATCH: Final = every(BATCH_KEYS)
"""The events after the snapshot can be read in one request, so that a replay is two."""


def by_size(size: int) -> Policy:
    """A snapshot once the events since the last have so many bytes."""
    must_be_whole(size, "size", 1)
    return lambda since: since.size >= size


def json_state(kind: type[S], *, version: str = "", trust_unmarked: bool = False) -> StateCodec[S]:
    """A codec of a dataclass as a JSON object; `deciders.shapes` lists what its fields may be.

    A snapshot is used while the class has the shape that it was made with; after that, the events are.

    Args:
        version: of the rules, at most 32 bytes. Change it where `evolve` or `initial` makes other states of the same
            class: snapshots of another version are not used.
        trust_unmarked: use snapshots, too, that do not say what they were made with, as other libraries write them, as
            long as there is no `version`.

    Raises:
        TypeError: a field whose type has no form in JSON.
        InvalidInput: a version that is no short text.
    """
    shape = shape_of(kind)
    must_be(str, version, "version", "text")
    if version:
        must_be_text(version, 32, "version")

    def encode(state: S) -> bytes:
        try:
            return json.dumps(shape.write(state))
        except Mismatch as mismatch:
            raise InvalidInput(f"snapshot.{mismatch.path}".rstrip("."), mismatch.rule) from None
        except (ValueError, TypeError) as error:
            raise InvalidInput("snapshot", str(error)) from error

    def decode(data: bytes) -> S:
        try:
            state: S = shape.read(json.loads(data))
        except ValueError as error:
            raise CorruptData(f"a snapshot of {kind.__name__}: {error}") from error
        return state

    made_with = " ".join(filter(None, (fingerprint_of(kind), version)))
    return StateCodec(
        encode=encode, decode=decode, made_with=made_with, trust_unmarked=trust_unmarked and not version
    )


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Standing(Generic[S]):
    """A state, and where its aggregate stood.

    Attributes:
        lock: None where there is no such aggregate.
        events, size: those after the snapshot, and the bytes of their data.
        out_of_date: its snapshot is not used, so that the next append stores another one.
    """

    state: S
    lock: Lock | None
    events: int = 0
    size: int = 0
    out_of_date: bool = False


@dataclass(frozen=True, kw_only=True)
class AggregateTransacted(Generic[S, E]):
    """A transaction's outcome.

    Attributes:
        standing: after the decision; hand it to the next transaction to save its read.
        events: that were decided; where there are none nothing was written.
        retention_error: what kept old copies of snapshots from being retired; the events are safe all the same.
        replayed: an earlier call with the idempotency key appended them.
        capacity: what the transaction consumed: its loads, and appends that were refused.
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
        """The aggregate's version; 0 where there is none."""
        return 0 if self.standing.lock is None else self.standing.lock.version


@dataclass(frozen=True, kw_only=True)
class AggregateDeciders(Generic[C, S, E]):
    """Runs one decider on any number of aggregates. Holds no state; safe under threads.

    Attributes:
        codec: of events. Aggregates keep their type, data and timestamp; an event with more is refused.
        state: of snapshots.
        policy: which appends after the first store a snapshot.
        attempts: decisions on one command before `Contended` is raised.
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

    def handle(
        self,
        aggregate: AggregateId,
        command: C,
        *,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> AggregateTransacted[S, E]:
        """Let the decider decide on a command; see `transact`."""
        decide = partial(self.decider.decide, command)
        return self.transact(aggregate, decide, known=known, idempotency_key=idempotency_key)

    def transact(
        self,
        aggregate: AggregateId,
        decide: Callable[[S], Answer[E]],
        *,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> AggregateTransacted[S, E]:
        """Store the events that `decide` finds in the aggregate's state, once.

        `decide` is called again whenever another writer was faster, so it must be free of side effects.

        Args:
            known: a standing from before, which may be an old one: the transaction is no less safe for it.
            idempotency_key: one decision on its aggregate: for 24 hours, a repeat of the command with its key is
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
        return self._on(
            aggregate, partial(without_result, decide), known, idempotency_key, answers=False
        ).decide(attempts=self.attempts)[1]

    def transact_result(
        self,
        aggregate: AggregateId,
        decide: Callable[[S], tuple[R, Answer[E]]],
        *,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, AggregateTransacted[S, E]]:
        """`transact` with a `decide` that also answers; the answer given with the decision that stands.

        For a repeat `decide` is asked again on the state of the first, from all events before it, for its answer alone.
        """
        return self._on(aggregate, decide, known, idempotency_key, answers=True).decide(
            attempts=self.attempts
        )

    def _on(
        self,
        aggregate: AggregateId,
        decision: Callable[[S], tuple[R, Answer[E]]],
        known: Standing[S] | None,
        key: str | None,
        *,
        answers: bool,
    ) -> _OnAggregate[R, S, E]:
        return _OnAggregate(
            deciders=self, aggregate=aggregate, decision=decision, known=known, key=key, answers=answers
        )

    def query(self, aggregate: AggregateId, projection: Callable[[S], R]) -> R:
        """A view of the aggregate's state."""
        return projection(self.load(aggregate).state)

    def load(self, aggregate: AggregateId) -> Standing[S]:
        """The latest state: two requests where the events after the snapshot are not many."""
        found = self.store.replay(aggregate)
        if found is None:
            return Standing(state=must_be_done(self.decider.initial(), "initial"), lock=None)
        restored = self._restored(found.snapshot)
        if isinstance(restored, Standing):
            return self._folded(restored.state, found)
        state = self._from_events(found.snapshot, found.snapshot.seq_nr, restored).state
        return replace(self._folded(state, found), out_of_date=True)

    def _restored(self, snapshot: AggregateSnapshot) -> Standing[S] | str:
        """The state that a snapshot holds, or why it is not used."""
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
        """The state that an aggregate's first events have led to, since its snapshot is not used."""
        try:
            return self._since(snapshot.aggregate, must_be_done(self.decider.initial(), "initial"), 0, seq_nr)
        except CorruptData as error:
            if error.missing is None:
                raise
            aggregate = snapshot.aggregate
            raise EventsPruned(str(aggregate), 1, error.missing + 1, remedy(aggregate.type, why)) from error

    def _since(self, aggregate: AggregateId, state: S, begun: int, seq_nr: int) -> Standing[S]:
        """A state of the first `begun` events, moved on to event `seq_nr`."""
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
        """Append what was decided on a standing, with a snapshot where the policy says so; the standing after that."""
        state = reduce(self._moved, decided, base.state)
        events = tuple(map(self._encoded, decided))
        size = base.size + sum(len(event.data) for event in events)
        since = Since(state=state, events=base.events + len(events), size=size)
        taken = base.lock is None or base.out_of_date or must_be_done(self.policy(since), "policy")
        outcome = self.store.try_append(
            aggregate,
            events,
            snapshot=must_be_done(self.state.encode(state), "encode") if taken else None,
            expected=NO_STREAM if base.lock is None else base.lock,
            idempotency_key=key,
            decided=True,
            made_with=self.state.made_with,
        )
        return Standing(
            state=state,
            lock=outcome.lock if isinstance(outcome, AggregateAppended) else base.lock,
            events=0 if taken else since.events,
            size=0 if taken else since.size,
            out_of_date=base.out_of_date and isinstance(outcome, AggregateConflict),
        ), outcome

    def _at(self, aggregate: AggregateId, seq_nr: int) -> Standing[S]:
        """The state that an aggregate's first events have led to, from its snapshot if that has not gone further."""
        snapshot = self.store.latest_snapshot(aggregate)
        if snapshot is None or snapshot.seq_nr > seq_nr:
            return self._since(aggregate, must_be_done(self.decider.initial(), "initial"), 0, seq_nr)
        restored = self._restored(snapshot)
        if isinstance(restored, Standing):
            return self._since(aggregate, restored.state, snapshot.seq_nr, seq_nr)
        return replace(self._from_events(snapshot, seq_nr, restored), out_of_date=True)

    def _folded(self, state: S, found: Replay, before: Standing[S] | None = None) -> Standing[S]:
        """A state with more events; those that the snapshot holds no longer count."""
        snapshot = found.snapshot
        later = [event for event in found.events if event.seq_nr > snapshot.seq_nr]
        kept = before if before and len(later) == len(found.events) else None
        return Standing(
            state=reduce(self._evolve, found.events, state),
            lock=snapshot.lock,
            events=snapshot.lock.seq_nr - snapshot.seq_nr,
            size=sum(len(event.data) for event in later) + (kept.size if kept else 0),
            out_of_date=self.state.misfit(snapshot) is not None or (kept is not None and kept.out_of_date),
        )

    def _evolve(self, state: S, event: RecordedAggregateEvent) -> S:
        decoded = self.codec.read(event)
        return state if decoded is None else self._moved(state, decoded)

    def _moved(self, state: S, event: E) -> S:
        return must_be_state(self.decider.evolve(state, event), state, self.decider.initial, event)

    def _encoded(self, event: E) -> AggregateEvent:
        encoded = must_be_done(self.codec.encode(event), "encode")
        if encoded.meta or encoded.correlation_id or encoded.causation_id or isinstance(encoded.data, Claim):
            raise InvalidInput(
                "events", f"{encoded.type}: aggregates keep a type, data and a timestamp alone"
            )
        return AggregateEvent(type=encoded.type, data=encoded.data, occurred_at=encoded.timestamp)


# No slots, as above.
@dataclass(frozen=True, kw_only=True)
class _OnAggregate(
    DecisionSource[Standing[S], Decision[R, E], R, AggregateTransacted[S, E]], Generic[R, S, E]
):
    """A decision on one aggregate."""

    deciders: AggregateDeciders[Any, S, E]
    aggregate: AggregateId
    decision: Callable[[S], tuple[R, Answer[E]]]
    known: Standing[S] | None
    key: str | None
    answers: bool

    @property
    def driver(self) -> Driver:
        return self.deciders.store.driver

    @property
    def about(self) -> object:
        return self.aggregate

    def over(self, driver: Driver) -> _OnAggregate[R, S, E]:
        store = replace(self.deciders.store, driver=driver)
        return replace(self, deciders=replace(self.deciders, store=store))

    def load(self) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:
        return self._free(self.known or self.deciders.load(self.aggregate))

    def confirmed(self, base: Standing[S]) -> bool:
        return base is not self.known

    def confirm(self, base: Standing[S]) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:  # noqa: ARG002  is replayed
        return self._free(self.deciders.load(self.aggregate))

    def plan(self, base: Standing[S]) -> Decision[R, E]:
        decision = decision_of(self.decision(base.state))
        if decision.also:
            raise InvalidInput("also", "cannot go with events of an aggregate")
        if decision.timers:
            raise InvalidInput("decide", "must set no timer: aggregates have none")
        return decision

    def unchanged(self, base: Standing[S], plan: Decision[R, E]) -> tuple[R, AggregateTransacted[S, E]]:
        return plan.result, AggregateTransacted(standing=base, events=())

    def append(
        self,
        base: Standing[S],
        plan: Decision[R, E],
        since: float,  # noqa: ARG002  a head has no age
    ) -> (
        tuple[R, AggregateTransacted[S, E]]
        | Earlier[R, AggregateTransacted[S, E]]
        | Moved[Standing[S], R, AggregateTransacted[S, E]]
    ):
        after, outcome = self.deciders._append(self.aggregate, base, plan.events, self.key)  # noqa: SLF001  its own
        if isinstance(outcome, AggregateConflict):
            return Moved(name=str(self.aggregate), onward=partial(self._onward, base, outcome))
        if outcome.replayed:
            return self._as_earlier(outcome)
        return plan.result, AggregateTransacted(
            standing=after, events=plan.events, retention_error=outcome.retention_error
        )

    def _onward(
        self, base: Standing[S], conflict: AggregateConflict, newest: bool
    ) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:
        if not newest or base.lock is None or conflict.head is None:
            return self._free(self.deciders.load(self.aggregate))
        # The state that stood in the way, made from the one in hand.
        found = self.deciders.store.since(conflict.head, base.lock.seq_nr)
        return self._free(self.deciders._folded(base.state, found, before=base))  # noqa: SLF001  its own

    def _free(self, base: Standing[S]) -> Standing[S] | Earlier[R, AggregateTransacted[S, E]]:
        """After each load: an append under the key that it has not seen is found, or in the way."""
        made = None if self.key is None else self.deciders.store.decided(self.aggregate, self.key)
        return base if made is None else self._as_earlier(made)

    def _earlier(self, made: AggregateAppended) -> tuple[R, AggregateTransacted[S, E]]:
        """What an earlier call with the key was told; its answer, where that is wanted, from the state it was given."""
        deciders, aggregate = self.deciders, self.aggregate
        first, last = made.first - 1, made.lock.seq_nr
        result = cast("R", None)
        if self.answers:
            result = decision_of(self.decision(deciders._at(aggregate, first).state)).result  # noqa: SLF001  its own
        found = map(deciders.codec.read, deciders.store.events_after(aggregate, first, limit=last - first))
        return result, AggregateTransacted(
            standing=replace(deciders._at(aggregate, last), lock=made.lock),  # noqa: SLF001
            events=tuple(event for event in found if event is not None),
            replayed=True,
        )


SPANS: Final = (
    ("append", AggregateStore, ("try_append",)),
    ("read", AggregateStore, ("replay", "latest_snapshot", "events_after")),
)
"""Spans of OpenTelemetry, and the methods that they are around."""
