"""A decision on the state of one stream or of several, stored in one or several of them at once.

Decisions are made in the loop of `epochal.deciders.loop`. On streams, its steps are:

    load          from the head, one request, which may lag; or from the cache, none; or assumed empty, none
    append        on exactly the head that the state was made from, one request
     └ stored     the state goes into the cache with the token that the append returned

A decision on several streams is made on what all of them were at one moment, including those that are only read.
Otherwise two decisions that each write a stream which the other only reads could both be stored, though neither was
made after the other (write skew). So the append writes to the streams that get events, on condition that the others are
still as they were read. A decision that stores nothing, or an error, is answered once a read of all heads together has
shown that the streams were so at one moment. If streams have moved, only their states are made again, and only they are
read again after a long pause: the reads of eight writers drift apart.

Under an idempotency key the append is applied once, and nothing is decided on a state that may include it
(`layout.once`):

    before deciding   the key's record is written in one request; if it exists, the append is searched for in the stream
    append found      the call is answered with the events as they are stored, and the state that they were decided on
    not found         as above; the append is also searched for in each newer head on which the decision is made again
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from epochal.deciders.codecs import EventCodec
from epochal.deciders.folding import Loaded
from epochal.deciders.loading import AllowStale, Load
from epochal.deciders.loop import (
    Decision,
    DecisionSource,
    Earlier,
    Moved,
    decision_of,
    is_tagged,
    is_timer,
    pair_of,
    untagged,
)
from epochal.deciders.snapshot_marks import marked
from epochal.errors import InvalidInput, OutcomeUndetermined, StreamDeleted
from epochal.layout.decision_keys import DecisionKey
from epochal.layout.outcomes import refusing_head
from epochal.layout.streams import Also, Head, Known
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion, check_expected
from epochal.model.kinds import must_be
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.plain_functions import must_be_done
from epochal.model.stream_append import StreamAppend
from epochal.model.timers import Later
from epochal.model.tokens import NO_EVENTS, Token
from epochal.store.answers import token_of
from epochal.store.driver import Driver
from epochal.store.outcomes import check_state
from epochal.store.queueing import QueuePlace
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.deciders.on_streams import Deciders

S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
T = TypeVar("T")

NEEDS_EVENTS: Final = "needs a strategy that stores events: replaced unfolds do not show an earlier decision"
"""Rule of the access strategy of decisions under an idempotency key."""


@dataclass(frozen=True, kw_only=True)
class Transacted(Generic[S, E]):
    """The outcome of a transaction on a stream.

    Attributes:
        state: state of the stream after the decision.
        events: events that were decided, without timers; nothing was written if the decision made neither events nor
            timers.
        token: token of the stream afterwards, for its ETag or an append of your own; a bare version 0 if there is no
            stream.
        replayed: whether an earlier call with the idempotency key appended the events.
        capacity: capacity that the transaction consumed, loads and refused appends included.
    """

    state: S
    events: tuple[E, ...]
    token: Token
    replayed: bool = field(default=False, compare=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)

    @property
    def version(self) -> int:
        """The stream's next index after the decision."""
        return self.token.version

    @property
    def expected(self) -> ExpectedVersion:
        """Expected version for the next append on exactly this state: the token, or that there is no stream."""
        return NO_STREAM if self.token.etag is None else self.token


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Party(Generic[S, E]):
    """One stream of a joint decision, with the deciders that hold its rules; made by `Deciders.on`.

    Attributes:
        deciders: the deciders whose rules decide on the stream.
        stream: name of the stream.
        expected: version that the stream is expected to have when it is decided on.
    """

    deciders: Deciders[Any, S, E]
    stream: str
    expected: ExpectedVersion = ANY

    def __post_init__(self) -> None:
        check_expected(self.expected)


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class AllTransacted(Generic[T]):
    """The outcome of a joint decision on several streams.

    Attributes:
        parties: outcome for each of the streams decided on, in the order given.
        capacity: capacity that the whole decision consumed.
    """

    parties: T
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """What a decision on the state `base` of a stream stores there, and the state after it."""

    base: Loaded[Any]
    state: Any
    events: tuple[Any, ...] = ()
    append: StreamAppend | None = None
    also: Also = ()

    def outcome(self, token: Token | None) -> Transacted[Any, Any]:
        """Return the outcome of the stream's part once it is stored."""
        return Transacted(state=self.state, events=self.events, token=token or NO_EVENTS)


@dataclass(frozen=True, kw_only=True)
class Plans(Generic[R]):
    """The plan of each stream, or the error that the decision raised.

    Attributes:
        result: what the function returned besides its events.
        streams: plans by stream.
        joint: whether all streams must be unchanged, whether anything is stored or not.
        fault: the error that it raised.
    """

    result: R
    streams: Mapping[str, StreamPlan]
    joint: bool
    fault: Exception | None = None

    @property
    def needs_store(self) -> bool:
        """Whether the store must be asked: to append, or to check that the streams are unchanged."""
        return self.joint or any(plan.append for plan in self.streams.values())


_All = AllTransacted[tuple[Transacted[Any, Any], ...]]


@dataclass(frozen=True, kw_only=True)
class DecisionBase:
    """The states of streams on which a decision is made, and what else it is made on.

    Attributes:
        loaded: states of the streams.
        model: states of projections, if the decision is on those too (`given`).
        confirmed: whether the store has shown all of it in this call, at one moment.
    """

    loaded: tuple[Loaded[Any], ...]
    model: Any = None
    confirmed: bool = True


@dataclass(frozen=True, kw_only=True)
class OnStreams(DecisionSource[DecisionBase, Plans[R], R, _All], Generic[R]):
    """A decision on streams.

    Attributes:
        parties: the streams, with their deciders; exactly one if the decision is not joint.
        streams: store of the streams.
        decision: the function; it returns a result, and the events of its stream, or of each party if it is joint.
        how: how the states are loaded.
        key: idempotency key of the decision; a `str` identifies one on all streams together; None for none.
        with_result: whether the caller wants the function's result, also for a repeat.
        joint: whether `handle_all` makes the decision: the function returns events for each party, and all streams
            must be unchanged.
        place: place in the queues of the streams, whose notes are the streams' tokens; None for none.
    """

    parties: tuple[Party[Any, Any], ...]
    streams: Streams
    decision: Callable[..., tuple[R, Sequence[Any]]]
    how: Load | AllowStale
    key: DecisionKey | str | None = None
    with_result: bool = False
    joint: bool = False
    place: QueuePlace | None = None

    @property
    def driver(self) -> Driver:
        """Driver of the streams."""
        return self.streams.driver

    @property
    def about(self) -> object:
        """The stream, of a decision on one; None for a joint one."""
        return None if self.joint else self.parties[0].stream

    @property
    def queue_keys(self) -> Sequence[tuple[str, ...]]:
        """The streams, each with its table."""
        return [(self.streams.table, party.stream) for party in self.parties]

    def over(self, driver: Driver, place: QueuePlace | None = None) -> Self:
        """Return the same source with all requests of its deciders through another driver."""
        streams = self.streams.on(driver)
        parties = [
            replace(party, deciders=replace(party.deciders, streams=streams)) for party in self.parties
        ]
        return replace(self, streams=streams, parties=tuple(parties), place=place)

    def load(self) -> DecisionBase | Earlier[R, _All]:
        """Load each stream's state, then look up the key; return the base, or an earlier call's answer."""
        return self._unless_decided(
            [
                party.deciders.loader.load(party.stream, self.how, self._latest(party.stream))
                for party in self.parties
            ]
        )

    def confirmed(self, base: DecisionBase) -> bool:
        """Return whether the state of a single stream was read; for a joint decision, the append checks that."""
        return self.joint or base.loaded[0].confirmed

    def confirm(self, base: DecisionBase) -> DecisionBase | Earlier[R, _All]:
        """Read the latest states from the store."""
        loaded = [
            party.deciders.loader.read(party.stream, state)
            for party, state in zip(self.parties, base.loaded, strict=True)
        ]
        return self._unless_decided(loaded, base)

    def plan(self, base: DecisionBase) -> Plans[R]:
        """Check the expected versions, call the user's function, and return a plan of what each stream stores.

        An error of a joint decision is kept in the plan. It is raised only if all streams had these states at one
        moment.
        """
        try:
            for party, loaded in zip(self.parties, base.loaded, strict=True):
                check_state(party.stream, party.expected, token_of(loaded.known_head))
            result, decisions = self._answer([loaded.state for loaded in base.loaded], base.model)
            streams = {
                party.stream: _plan_stream(party, loaded, decision)
                for party, loaded, decision in zip(self.parties, base.loaded, decisions, strict=True)
            }
        except Exception as fault:
            if not self.joint:
                raise
            return Plans(result=cast("R", None), streams={}, joint=True, fault=fault)
        return Plans(result=result, streams=streams, joint=self.joint)

    def conclude_without_append(self, base: DecisionBase, plan: Plans[R]) -> tuple[R, _All]:  # noqa: ARG002  plans have it
        """Return the state that was read, with the stream's token."""
        outcomes = (
            stream_plan.outcome(token_of(stream_plan.base.known_head))
            for stream_plan in plan.streams.values()
        )
        return plan.result, AllTransacted(parties=tuple(outcomes))

    def append(
        self, base: DecisionBase, plan: Plans[R], began: float
    ) -> tuple[R, _All] | Earlier[R, _All] | Moved[DecisionBase, R, _All]:
        """Append the decided events if all streams are as read; return outcome, earlier answer or `Moved`."""
        appends = [stream.append for stream in plan.streams.values() if stream.append]
        if self.key is not None and not all(append.events for append in appends):
            raise InvalidInput("idempotency_key", NEEDS_EVENTS)
        also = [write for stream in plan.streams.values() for write in stream.also]
        outcome = self._append(base, appends, also)
        if isinstance(outcome, Moved):
            return outcome
        if isinstance(outcome, Appended) and outcome.replayed:
            return self._as_earlier(outcome.streams)
        if not isinstance(outcome, Appended):
            heads = _moved_heads(outcome)
            return Moved(name=next(iter(heads)), onward=partial(self._onward, base, heads, began))
        if plan.fault is not None:
            raise plan.fault
        outcomes = []
        for party, stream_plan in zip(self.parties, plan.streams.values(), strict=True):
            appended = outcome.streams.get(party.stream)
            known_head: Known[Head] = stream_plan.base.known_head if appended is None else appended.token
            loaded = replace(stream_plan.base, state=stream_plan.state, known_head=known_head)
            party.deciders.loader.keep(party.stream, loaded, began)
            if self.place is not None:
                self.place.leave_note(token_of(known_head), self.streams.table, party.stream)
            outcomes.append(stream_plan.outcome(token_of(known_head)))
        return plan.result, AllTransacted(parties=tuple(outcomes))

    def _append(
        self, base: DecisionBase, appends: Sequence[StreamAppend], also: Also
    ) -> Outcome | Moved[DecisionBase, R, _All]:
        """Append if the streams have the known heads, with the writes of `also`; return the outcome."""
        known_heads = {
            party.stream: state.known_head for party, state in zip(self.parties, base.loaded, strict=True)
        }
        return self.streams.append_on(known_heads, appends, key=self.key, also=also)

    def _latest(self, stream: str) -> Token | None:
        """Return the token that the last caller in the queue of a stream has left; None if it left none."""
        latest: Token | None = None if self.place is None else self.place.note(self.streams.table, stream)
        return latest

    def _onward(
        self, base: DecisionBase, heads: Mapping[str, Head | None], began: float, newest: bool
    ) -> DecisionBase | Earlier[R, _All]:
        """Return the base with changed streams' states updated, from heads or reads; or an earlier answer."""
        loaded = list(base.loaded)
        for place, party in enumerate(self.parties):
            stream, loader = party.stream, party.deciders.loader
            if stream in heads and newest:
                loaded[place] = loader.make_state(stream, heads[stream], loaded[place], began)
            elif stream in heads:
                loaded[place] = loader.read(stream, loaded[place])
        return self._unless_decided(loaded, base)

    def _unless_decided(
        self, loaded: Sequence[Loaded[Any]], before: DecisionBase | None = None
    ) -> DecisionBase | Earlier[R, _All]:
        """Return the states to decide on, or the answer of an earlier call under the key."""
        if isinstance(self.key, str):
            decision = self.streams.decided_all([party.stream for party in self.parties], self.key)
            if decision is not None:
                return self._as_earlier(decision.streams)
        elif self.key is not None:
            ((party,), (only,)) = self.parties, loaded
            outcome = (
                party.deciders.loader.begin_decision(self.key, only)
                if before is None
                else party.deciders.loader.resume_decision(self.key, before.loaded[0], only)
            )
            if isinstance(outcome, Appended):
                return self._as_earlier({party.stream: outcome})
            loaded = (outcome,)
        return DecisionBase(loaded=tuple(loaded), model=None if before is None else before.model)

    def _answer(self, states: Sequence[Any], model: Any = None) -> tuple[R, Sequence[Decision[None, Any]]]:
        """Call the user's function, and return its result and its decision for each party."""
        arguments = states if model is None else (*states, model.states)
        result, answer = pair_of(self.decision(*arguments))
        if not self.joint:
            return result, (decision_of((None, answer)),)
        must_be_done(answer, "decide")
        must_be(Sequence, answer, "decide", "a function that returns a sequence of events for each party")
        if len(answer) != len(self.parties):
            raise InvalidInput("decide", "must return a sequence of events for each party, in order")
        return result, [decision_of((None, events)) for events in answer]

    def _reconstruct_answer(self, written: Mapping[str, Appended]) -> tuple[R, _All]:
        """Reconstruct the answer of an earlier call with the key from what it wrote."""
        answers = [
            _reconstruct_outcome(party, written[party.stream], whole=self.with_result)
            for party in self.parties
        ]
        outcome: _All = AllTransacted(parties=tuple(transacted for _, transacted in answers))
        result = self._answer([state for state, _ in answers])[0] if self.with_result else cast("R", None)
        return result, outcome


def _moved_heads(outcome: Conflict | Undetermined) -> dict[str, Head | None]:
    """Return the heads of streams that have changed; raise if the decision cannot be made again."""
    if isinstance(outcome, Undetermined):
        stream, undetermined = next(iter(outcome.streams.items()))
        raise OutcomeUndetermined(stream, undetermined.first)
    heads: dict[str, Head | None] = {
        stream: refusing_head(conflict) for stream, conflict in outcome.streams.items()
    }
    for stream, head in heads.items():
        if head is not None and head.deleted:
            raise StreamDeleted(stream, head.version)
    return heads


def _plan_stream(party: Party[S, E], base: Loaded[S], decision: Decision[None, E]) -> StreamPlan:
    """Plan what a decision stores in one stream; return it with the state folded after it."""
    if not decision.writes:
        return StreamPlan(base=base, state=base.state)
    deciders, state = party.deciders, base.state
    events, unfolds = list[E | Later | Event](), None
    decided = tuple(map(untagged, decision.events))
    if decided:
        state = deciders.loader.folder.fold(state, decided)
        transmuted, unfolds = must_be_done(deciders.access.transmute(decided, state), "transmute")
        originals = defaultdict[int, list[Any]](list)
        for event in reversed(decision.events):
            originals[id(untagged(event))].append(event)
        events.extend(originals[id(event)].pop() if originals[id(event)] else event for event in transmuted)
    events.extend(decision.timers)
    if not events and unfolds is None:
        if decision.also:
            raise InvalidInput("also", "must not be given if `transmute` returns no events or unfolds")
        return StreamPlan(base=base, state=base.state)
    append = StreamAppend(
        stream=party.stream,
        events=[encode_event(deciders.codec, event) for event in events],
        unfolds=None if unfolds is None else [_unfold(deciders, event) for event in unfolds],
    )
    return StreamPlan(base=base, state=state, events=decided, append=append, also=decision.also)


def _reconstruct_outcome(party: Party[S, E], written: Appended, *, whole: bool) -> tuple[S, Transacted[S, E]]:
    """Reconstruct the outcome of a stored decision and, with `whole`, the state it was made on.

    Args:
        whole: whether that state is needed. Without it, the state after an append that is still the last is the
            stream's: events that snapshots include may be pruned.
    """
    loader, stream, events = party.deciders.loader, party.stream, tuple[E, ...]()
    if written.version == 0:
        begun = loader.folder.begin()
        return begun, Transacted(state=begun, events=(), token=NO_EVENTS, replayed=True)
    latest = None if whole else loader.read(stream)
    if latest is not None and latest.version == written.version:
        before = state = latest.state
        events = loader.folder.events(stream, written)
    else:
        before, events = loader.folder.replay(stream, written)
        state = loader.folder.fold(before, events)
    return before, Transacted(state=state, events=events, token=written.token, replayed=True)


def encode_event(codec: EventCodec[E] | None, event: E | Later | Event) -> Event:
    """Encode an event or timer that `decide` returned; without a codec, events are encoded already."""
    if isinstance(event, Later):
        from epochal.scheduling import later  # noqa: PLC0415  most decisions set no timer

        inner = [encode_event(codec, inner_event) for inner_event in event.events]
        return later(event.name, inner, at=event.at, tags=event.tags)
    if codec is None or is_timer(event):
        return replace(event, untagged=None) if is_tagged(event) else cast("Event", event)
    encoded_event = must_be_done(codec.encode(untagged(event)), "encode")
    # The decider's codec has the last word: it may seal what the one that tagged the event has not.
    return (
        replace(event, type=encoded_event.type, data=encoded_event.data, untagged=None)
        if is_tagged(event)
        else encoded_event
    )


def _unfold(deciders: Deciders[Any, Any, E], event: E) -> Unfold:
    """Encode a state as an unfold with the mark of its snapshot."""
    encoded_state = encode_event(deciders.codec, event)
    mark = deciders.loader.folder.mark_of(encoded_state.type)
    return Unfold(
        type=encoded_state.type,
        data=encoded_state.data,
        meta=marked(encoded_state.meta, mark),
        timestamp=encoded_state.timestamp,
    )
