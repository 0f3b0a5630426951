"""Deciders on streams: a decision on the state of one or several, stored in one or several of them at once.

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
from functools import cached_property, partial
from typing import Any, Final, Generic, Literal, Self, TypeVar, cast, overload

from epochal.deciders.access import UNOPTIMIZED, Access
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec
from epochal.deciders.folding import Folder, Loaded
from epochal.deciders.loading import REQUIRE_LOAD, AllowStale, Load, Loader, check_load
from epochal.deciders.loop import (
    ATTEMPTS,
    Answer,
    Decision,
    DecisionSource,
    Earlier,
    Moved,
    decision_of,
    is_tagged,
    is_timer,
    pair_of,
    untagged,
    without_result,
)
from epochal.deciders.projections import Projection
from epochal.deciders.snapshot_marks import marked
from epochal.errors import InvalidInput, OutcomeUndetermined, StreamDeleted, TooLarge
from epochal.index.checkpoints import AsOf
from epochal.layout.decision_keys import DecisionKey
from epochal.layout.outcomes import refusing_head
from epochal.layout.streams import Also, Head, Known
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Event, Unfold
from epochal.model.kinds import must_be, must_be_list, must_be_whole
from epochal.model.plain_functions import must_be_done, must_be_plain
from epochal.model.timers import Later
from epochal.model.versions import (
    ANY,
    NO_EVENTS,
    NO_STREAM,
    NOTHING,
    Appended,
    Capacity,
    Conflict,
    ExpectedVersion,
    Outcome,
    StreamAppend,
    Token,
    Undetermined,
    check_expected,
    meets,
)
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store.answers import token_of
from epochal.store.appending import several
from epochal.store.driver import Driver
from epochal.store.encoding import check_key
from epochal.store.outcomes import append_error
from epochal.store.streams import Streams

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
S2 = TypeVar("S2")
E2 = TypeVar("E2")
S3 = TypeVar("S3")
E3 = TypeVar("E3")
R = TypeVar("R")
T = TypeVar("T")

NO_COMMAND: Final = object()
"""Stands for a command that is not given: None may be a command."""

_NEEDS_EVENTS: Final = (
    "needs events that make the state: once unfolds are replaced, nothing tells what was decided"
)


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Decider(Generic[C, S, E]):
    """A domain's rules, as three pure functions. None may change a state or event that it is given.

    Attributes:
        initial: the state of a stream without events.
        evolve: the state after one more event.
        decide: the events that a command leads to in a state, and timers (`later`); none where there is
            nothing to do. It may raise the domain's own errors, which pass through.
    """

    initial: Callable[[], S]
    evolve: Callable[[S, E], S]
    decide: Callable[[C, S], Answer[E]]

    def __post_init__(self) -> None:
        """Check that the functions are neither async nor, except `decide`, generators."""
        must_be_plain(self.initial, "initial")
        must_be_plain(self.evolve, "evolve")
        must_be_plain(self.decide, "decide", may_yield=True)


@dataclass(frozen=True, kw_only=True)
class Transacted(Generic[S, E]):
    """The outcome of a transaction on a stream.

    Attributes:
        state: state after the decision.
        events: events that were decided, without timers; if there are neither, nothing was written.
        token: token of the stream afterwards, for its ETag or an append of your own; a bare version 0 if there is no
            stream.
        replayed: whether an earlier call with the idempotency key appended them.
        capacity: what the transaction consumed, loads and refused appends included.
    """

    state: S
    events: tuple[E, ...]
    token: Token
    replayed: bool = field(default=False, compare=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)

    @property
    def version(self) -> int:
        """The stream's next index."""
        return self.token.version

    @property
    def expected(self) -> ExpectedVersion:
        """The expectation for a further write on exactly this state: the token, or that there is no stream."""
        return NO_STREAM if self.token.etag is None else self.token


@dataclass(frozen=True, kw_only=True)
class Deciders(Generic[C, S, E]):
    """Runs one decider on any number of streams. Holds no state but the cache it is given; safe under threads.

    Attributes:
        access: what is read and stored; see `epochal.deciders.access`.
        cache: may be shared with other deciders.
        attempts: decisions on one command before `Contended` is raised.
        forget_pruned: begin anew from the initial state where a stream was pruned or emptied, instead of raising
            `EventsPruned`.
    """

    streams: Streams
    decider: Decider[C, S, E]
    codec: EventCodec[E]
    access: Access[S, E] = UNOPTIMIZED
    cache: Cache | None = None
    attempts: int = ATTEMPTS
    forget_pruned: bool = False

    def __post_init__(self) -> None:
        must_be_whole(self.attempts, "attempts", 1)

    @overload
    def handle(
        self,
        stream: str,
        command: C,
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E]: ...

    @overload
    def handle(
        self,
        stream: str,
        *,
        decide: Callable[[S], Answer[E]],
        with_result: Literal[False] = False,
        load: Load | AllowStale = REQUIRE_LOAD,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E]: ...

    @overload
    def handle(
        self,
        stream: str,
        *,
        decide: Callable[[S], tuple[R, Answer[E]]],
        with_result: Literal[True],
        load: Load | AllowStale = REQUIRE_LOAD,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, Transacted[S, E]]: ...

    @overload
    def handle(
        self,
        stream: str,
        *,
        decide: Callable[[S, Mapping[str, Any]], Answer[E]],
        given: Mapping[str, Projection[Any]],
        with_result: Literal[False] = False,
        load: Load | AllowStale = REQUIRE_LOAD,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E]: ...

    @overload
    def handle(
        self,
        stream: str,
        *,
        decide: Callable[[S, Mapping[str, Any]], tuple[R, Answer[E]]],
        given: Mapping[str, Projection[Any]],
        with_result: Literal[True],
        load: Load | AllowStale = REQUIRE_LOAD,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, Transacted[S, E]]: ...

    def handle(
        self,
        stream: str,
        command: Any = NO_COMMAND,
        *,
        decide: Callable[..., Any] | None = None,
        given: Mapping[str, Projection[Any]] | None = None,
        with_result: bool = False,
        load: Load | AllowStale = REQUIRE_LOAD,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E] | tuple[Any, Transacted[S, E]]:
        """Decide on a command in the stream's latest state, and store the events exactly once.

        The decider's `decide` gets the command and the state. A function given as `decide` takes its place, and gets
        the state. Either returns events and timers (`later`), none if there is nothing to do, or `WithAlso`. It is
        called again whenever another writer was faster, so it must be free of side effects.

        Args:
            stream: name of the stream.
            command: the command for the decider's `decide`.
            decide: function that decides instead of the decider's `decide`, without a command.
            given: projections of tagged events of the same table, by name. `decide` gets their states as its second
                argument, and the events are stored only if no newer event matches them. The stream may be in them, too:
                by events of its own that carry tags.
            with_result: whether `decide` returns a pair of a result and the events. The answer is then a pair of the
                result and the outcome. For a repeat under a key, `decide` is called again on the state of the first
                call, made from all events before it, only for its result. Not with `given` and a key together: the
                states of projections at the first call are not kept.
            load: how the state is loaded: read (`REQUIRE_LOAD`), read at half the price and perhaps late (`ALLOW_LAG`),
                taken from the cache (`AllowStale`), or that of a new stream (`ASSUME_EMPTY`). An old state costs
                another try, and is never stored on.
            expected: what the stream must be when it is decided on: a token or a version that the caller has seen, as
                of an `If-Match`. If it is not, nothing is decided.
            metadata: metadata for the events of this decision, however often it is made: what `epochal.metadata` takes.
                They win over a block around the call, and what an event says itself wins over them.
            idempotency_key: identifies one decision within its stream: for 24 hours, a repeat of the command with its
                key is answered like the first, whatever the stream is by then, or is expected to be, and its events
                exist once. Only the key identifies a repeat, not the command. A decision that stored nothing is made
                again.

        Raises:
            InvalidInput: a malformed stream name, metadata that a block would refuse, an event that cannot be stored; a
                key that was used for an append, with a strategy that stores no events, or for events with tags; with
                `given`, a layout that keeps no tags.
            ConflictError: the stream is not what was expected; carries a `Conflict`.
            StreamDeleted: the stream takes no more events.
            Contended: other writers were faster at every attempt.
            ConditionUnmet: a condition of what goes with the events (`WithAlso`) does not hold.
            OutcomeUndetermined: a response was lost, and the evidence with it; or what a key was used for is pruned.
            Unavailable: the store could not be reached; see `maybe_applied`.
            EventsPruned, UnknownType: the state cannot be made; see `epochal.deciders.folding`.
        """
        decision = decision_function(self.decider, command, decide, with_result=with_result)
        if given is not None and decide is None:
            raise InvalidInput("decide", "must be given with `given`, instead of a command")
        if given is not None and with_result and idempotency_key is not None:
            raise InvalidInput(
                "with_result", "must not be combined with `given` and a key: leave one of them out"
            )
        if idempotency_key is not None:
            check_access(self.access)
        source = self._decision_source(given)(
            parties=(self.on(stream, expected=expected),),
            streams=self.streams,
            decision=decision,
            how=load,
            key=self._key_of(stream, idempotency_key, joint=given is not None),
            answers=with_result,
        )
        result, outcome = source.decide(attempts=self.attempts, metadata=metadata)
        transacted = replace(outcome.parties[0], capacity=outcome.capacity)
        return (result, transacted) if with_result else transacted

    def query(
        self,
        stream: str,
        projection: Callable[[S], R],
        *,
        load: Literal[Load.REQUIRED] | AllowStale = REQUIRE_LOAD,
        as_of: AsOf | None = None,
    ) -> R:
        """Return a view of the stream's state, latest or as of a version or moment.

        It raises what loading in `handle` does.

        Args:
            projection: converts the state into the view.
            load: how the latest state is loaded.
            as_of: a version, for the state of the events before that index; or a moment, a datetime with a time zone or
                ISO 8601 text, for the state of those up to the last one that happened by then. Either is read from the
                store. None is the latest.

        Raises:
            InvalidInput: the stream has not come so far, or the strategy stores no events.
        """
        check_load(load)
        if as_of is not None:
            return projection(self.loader.folder.as_of(stream, as_of))
        return projection(self.loader.load(stream, load).state)

    def on(self, stream: str, *, expected: ExpectedVersion = ANY) -> Party[S, E]:
        """Return the stream with these rules, as a party to `handle_all`.

        Args:
            stream: name of the stream.
            expected: what the stream must be when it is decided on, as in `handle`.
        """
        return Party(deciders=self, stream=stream, expected=expected)

    @cached_property
    def loader(self) -> Loader[S, E]:
        """Loader of states of streams, for decisions that are built on these deciders."""
        folder = Folder(
            streams=self.streams,
            initial=self.decider.initial,
            evolve=self.decider.evolve,
            codec=self.codec,
            access=self.access,
            forget_pruned=self.forget_pruned,
        )
        return Loader(folder=folder, cache=self.cache)

    def _decision_source(self, given: Mapping[str, Projection[Any]] | None) -> Callable[..., OnStreams[Any]]:
        """Return what builds the source of a decision: on the stream alone, or on projections too."""
        if given is None:
            return OnStreams
        from epochal.deciders.on_stream_and_query import OnStreamAndQuery  # noqa: PLC0415  most are on a stream alone

        return partial(OnStreamAndQuery, projections=given)

    def _key_of(self, stream: str, key: str | None, *, joint: bool) -> DecisionKey | str | None:
        """Check a key, and return it as the decision's source takes it: of the stream, or of all that is decided on."""
        if key is None:
            return None
        if not joint:
            return self.streams.decision_key(stream, key)
        check_key(key)
        return key


# No slots, as above.
@dataclass(frozen=True, kw_only=True)
class Party(Generic[S, E]):
    """A stream, and the deciders whose rules its state is made by; made by `Deciders.on`.

    Attributes:
        deciders: the deciders.
        stream: name of the stream.
        expected: what the stream must be when it is decided on.
    """

    deciders: Deciders[Any, S, E]
    stream: str
    expected: ExpectedVersion = ANY

    def __post_init__(self) -> None:
        check_expected(self.expected)


# No slots, as above.
@dataclass(frozen=True, kw_only=True)
class AllTransacted(Generic[T]):
    """The outcome of a joint decision on several streams.

    Attributes:
        parties: outcome of each party, in their order.
        capacity: what all of it consumed.
    """

    parties: T
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@overload
def handle_all(
    parties: tuple[Party[S, E], Party[S2, E2]],
    decide: Callable[[S, S2], tuple[Answer[E], Answer[E2]]],
    *,
    with_result: Literal[False] = False,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2]]]: ...


@overload
def handle_all(
    parties: tuple[Party[S, E], Party[S2, E2], Party[S3, E3]],
    decide: Callable[[S, S2, S3], tuple[Answer[E], Answer[E2], Answer[E3]]],
    *,
    with_result: Literal[False] = False,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2], Transacted[S3, E3]]]: ...


@overload
def handle_all(
    parties: Sequence[Party[S, E]],
    decide: Callable[..., Sequence[Answer[E]]],
    *,
    with_result: Literal[False] = False,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], ...]]: ...


@overload
def handle_all(
    parties: tuple[Party[S, E], Party[S2, E2]],
    decide: Callable[[S, S2], tuple[R, tuple[Answer[E], Answer[E2]]]],
    *,
    with_result: Literal[True],
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> tuple[R, AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2]]]]: ...


@overload
def handle_all(
    parties: tuple[Party[S, E], Party[S2, E2], Party[S3, E3]],
    decide: Callable[[S, S2, S3], tuple[R, tuple[Answer[E], Answer[E2], Answer[E3]]]],
    *,
    with_result: Literal[True],
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> tuple[R, AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2], Transacted[S3, E3]]]]: ...


@overload
def handle_all(
    parties: Sequence[Party[S, E]],
    decide: Callable[..., tuple[R, Sequence[Answer[E]]]],
    *,
    with_result: Literal[True],
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> tuple[R, AllTransacted[tuple[Transacted[S, E], ...]]]: ...


def handle_all(
    parties: Sequence[Party[Any, Any]],
    decide: Callable[..., Any],
    *,
    with_result: bool = False,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[Any] | tuple[Any, AllTransacted[Any]]:
    """Decide on the states of several streams, and store all of the events or none, exactly once.

    `decide` gets a state for each party, and returns a sequence of events for each, in their order; each may be
    `WithAlso`. It is called again whenever another writer was faster, so it must be free of side effects.

    Args:
        parties: streams and their deciders (`Deciders.on`): at most 100, of one store, each another stream; 99 under a
            key.
        decide: function that decides.
        with_result: whether `decide` returns a pair of a result and the events. The answer is then a pair of the result
            and the outcome, as in `Deciders.handle`.
        load: how each state is loaded, as in `Deciders.handle`.
        attempts: number of decisions before `Contended` is raised.
        metadata: metadata for the events of this decision, as in `Deciders.handle`.
        idempotency_key: identifies one decision on these streams together, in whatever order they are named, as in
            `Deciders.handle` for one.

    Raises:
        InvalidInput: parties of several stores, or a stream twice; the layout can append to one stream at a time only;
            or what `Deciders.handle` raises it for.
        ConflictError: a stream is not what was expected of it (`Deciders.on`).
        StreamDeleted, Contended, ConditionUnmet, OutcomeUndetermined, Unavailable, EventsPruned, UnknownType: as
            `Deciders.handle`.
    """
    decision = decide if with_result else partial(without_result, decide)
    source = _several(parties, decision, load, idempotency_key, answers=with_result)
    result, outcome = source.decide(attempts=attempts, metadata=metadata)
    return (result, outcome) if with_result else outcome


def _several(
    parties: Sequence[Party[Any, Any]],
    decision: Callable[..., tuple[R, Sequence[Sequence[Any]]]],
    load: Load | AllowStale,
    key: str | None,
    *,
    answers: bool,
) -> OnStreams[R]:
    """Check the parties of a joint decision, and build its source."""
    must_be_list(Party, parties, "parties")
    if not parties:
        raise InvalidInput("parties", "must not be empty")
    most = TRANSACTION_ITEMS - (key is not None)
    if len(parties) > most:
        raise TooLarge("parties", len(parties), most, "streams")
    if key is not None:
        check_key(key)
        for party in parties:
            check_access(party.deciders.access)
    if len({party.stream for party in parties}) < len(parties):
        raise InvalidInput("parties", "must name a stream once")
    streams = parties[0].deciders.streams
    if any(party.deciders.streams != streams for party in parties):
        raise InvalidInput("parties", "must be of one store of streams")
    several(streams.layout)
    return OnStreams(
        parties=tuple(parties),
        streams=streams,
        decision=decision,
        how=load,
        key=key,
        answers=answers,
        joint=True,
    )


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
        rests: whether the decision depends on all streams, whether anything is stored or not.
        fault: the error that it raised.
    """

    result: R
    streams: Mapping[str, StreamPlan]
    rests: bool
    fault: Exception | None = None

    @property
    def writes(self) -> bool:
        """Whether the store must be asked if the streams are as they were read."""
        return self.rests or any(plan.append for plan in self.streams.values())


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
        decision: answers with the events of each party; with those of its own stream where that is the only one.
        key: of that stream alone, where it is; else of all streams together.
        answers: an answer of `decision` is wanted, of an earlier call too.
        joint: an answer is for each party, and rests on all of them.
    """

    parties: tuple[Party[Any, Any], ...]
    streams: Streams
    decision: Callable[..., tuple[R, Sequence[Any]]]
    how: Load | AllowStale
    key: DecisionKey | str | None = None
    answers: bool = False
    joint: bool = False

    @property
    def driver(self) -> Driver:
        """Driver of the streams."""
        return self.streams.driver

    @property
    def about(self) -> object:
        """The stream, of a decision on one; None for a joint one."""
        return None if self.joint else self.parties[0].stream

    def over(self, driver: Driver) -> Self:
        """Return the same source with all requests of its deciders through another driver."""
        streams = self.streams.on(driver)
        parties = [
            replace(party, deciders=replace(party.deciders, streams=streams)) for party in self.parties
        ]
        return replace(self, streams=streams, parties=tuple(parties))

    def load(self) -> DecisionBase | Earlier[R, _All]:
        """Load the state of each stream, then look up the key."""
        return self._free([party.deciders.loader.load(party.stream, self.how) for party in self.parties])

    def confirmed(self, base: DecisionBase) -> bool:
        """Return whether a single stream was read; for several, the append finds out."""
        return self.joint or base.loaded[0].confirmed

    def confirm(self, base: DecisionBase) -> DecisionBase | Earlier[R, _All]:
        """Read the latest states from the store."""
        loaded = [
            party.deciders.loader.read(party.stream, state)
            for party, state in zip(self.parties, base.loaded, strict=True)
        ]
        return self._free(loaded, base)

    def plan(self, base: DecisionBase) -> Plans[R]:
        """Let the function decide, and plan what each stream stores.

        An error of a joint decision is kept: it stands only if all streams were as it saw them at one moment.
        """
        try:
            for party, loaded in zip(self.parties, base.loaded, strict=True):
                _check_is(party.stream, party.expected, token_of(loaded.known))
            result, decisions = self._answer([loaded.state for loaded in base.loaded], base.model)
            streams = {
                party.stream: _plan_stream(party, loaded, decision)
                for party, loaded, decision in zip(self.parties, base.loaded, decisions, strict=True)
            }
        except Exception as fault:
            if not self.joint:
                raise
            return Plans(result=cast("R", None), streams={}, rests=True, fault=fault)
        return Plans(result=result, streams=streams, rests=self.joint)

    def unchanged(self, base: DecisionBase, plan: Plans[R]) -> tuple[R, _All]:  # noqa: ARG002  plans have it
        """Return the state that was read, with the stream's token."""
        outcomes = (
            stream_plan.outcome(token_of(stream_plan.base.known)) for stream_plan in plan.streams.values()
        )
        return plan.result, AllTransacted(parties=tuple(outcomes))

    def append(
        self, base: DecisionBase, plan: Plans[R], since: float
    ) -> tuple[R, _All] | Earlier[R, _All] | Moved[DecisionBase, R, _All]:
        """Append to the streams that get events, if all streams are as they were read.

        Returns the outcome, an earlier call's answer, or which streams have moved.
        """
        appends = [stream.append for stream in plan.streams.values() if stream.append]
        if self.key is not None and not all(append.events for append in appends):
            raise InvalidInput("idempotency_key", _NEEDS_EVENTS)
        also = [write for stream in plan.streams.values() for write in stream.also]
        outcome = self._append(base, appends, also)
        if isinstance(outcome, Moved):
            return outcome
        if isinstance(outcome, Appended) and outcome.replayed:
            return self._as_earlier(outcome.streams)
        if not isinstance(outcome, Appended):
            heads = _moved_heads(outcome)
            return Moved(name=next(iter(heads)), onward=partial(self._onward, base, heads, since))
        if plan.fault is not None:
            raise plan.fault
        outcomes = []
        for party, stream_plan in zip(self.parties, plan.streams.values(), strict=True):
            appended = outcome.streams.get(party.stream)
            known: Known[Head] = stream_plan.base.known if appended is None else appended.token
            loaded = replace(stream_plan.base, state=stream_plan.state, known=known)
            party.deciders.loader.keep(party.stream, loaded, since)
            outcomes.append(stream_plan.outcome(token_of(known)))
        return plan.result, AllTransacted(parties=tuple(outcomes))

    def _append(
        self, base: DecisionBase, appends: Sequence[StreamAppend], also: Also
    ) -> Outcome | Moved[DecisionBase, R, _All]:
        """Send the append; return the outcome, with that of each stream."""
        known = {party.stream: state.known for party, state in zip(self.parties, base.loaded, strict=True)}
        return self.streams.append_on(known, appends, key=self.key, also=also)

    def _onward(
        self, base: DecisionBase, heads: Mapping[str, Head | None], since: float, newest: bool
    ) -> DecisionBase | Earlier[R, _All]:
        """Update the states of streams that have changed, from heads received or by reading them."""
        loaded = list(base.loaded)
        for place, party in enumerate(self.parties):
            stream, loader = party.stream, party.deciders.loader
            if stream in heads and newest:
                loaded[place] = loader.make_state(stream, heads[stream], loaded[place], since)
            elif stream in heads:
                loaded[place] = loader.read(stream, loaded[place])
        return self._free(loaded, base)

    def _free(
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
        must_be(Sequence, answer, "decide", "a function that answers with the events of each party")
        if len(answer) != len(self.parties):
            raise InvalidInput("decide", "must answer with the events of each party, in their order")
        return result, [decision_of((None, events)) for events in answer]

    def _earlier(self, written: Mapping[str, Appended]) -> tuple[R, _All]:
        """Reconstruct the answer of an earlier call with the key from what it wrote."""
        answers = [_earlier(party, written[party.stream], whole=self.answers) for party in self.parties]
        outcome: _All = AllTransacted(parties=tuple(transacted for _, transacted in answers))
        result = self._answer([state for state, _ in answers])[0] if self.answers else cast("R", None)
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


def _check_is(stream: str, expected: ExpectedVersion, token: Token | None) -> None:
    """Raise `ConflictError` if the loaded state is not what the caller expects."""
    if isinstance(expected, Token):
        version, etag = (0, None) if token is None else (token.version, token.etag)
        holds = version == expected.version and expected.etag in (None, etag)
    else:
        holds = meets(expected, None if token is None else token.version)
    if not holds:
        conflict = Conflict(version=0 if token is None else token.version, token=token)
        raise append_error(stream, conflict, expected)


def _plan_stream(party: Party[S, E], base: Loaded[S], decision: Decision[None, E]) -> StreamPlan:
    """Plan what a decision stores in one stream, and fold the state after it."""
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
            raise InvalidInput("also", "needs events to go with, of which transmute has left none")
        return StreamPlan(base=base, state=base.state)
    append = StreamAppend(
        stream=party.stream,
        events=[encode_event(deciders.codec, event) for event in events],
        unfolds=None if unfolds is None else [_unfold(deciders, event) for event in unfolds],
    )
    return StreamPlan(base=base, state=state, events=decided, append=append, also=decision.also)


def _earlier(party: Party[S, E], written: Appended, *, whole: bool) -> tuple[S, Transacted[S, E]]:
    """Reconstruct the state on which an appended decision was made, and its outcome.

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


def decision_function(
    decider: Decider[Any, Any, Any], command: object, decide: Callable[..., Any] | None, *, with_result: bool
) -> Callable[..., tuple[Any, Any]]:
    """Return the function that decides and returns a result and events: the decider's own, or the caller's.

    Raises:
        InvalidInput: there is neither a command nor a function, or both; or no function that returns a result.
    """
    if decide is None:
        if command is NO_COMMAND:
            raise InvalidInput("command", "must be given, or a function as `decide`")
        if with_result:
            raise InvalidInput("decide", "must be given with `with_result`, instead of a command")
        return partial(without_result, partial(decider.decide, command))
    if command is not NO_COMMAND:
        raise InvalidInput("decide", "must not be given with a command, on which the decider decides")
    return decide if with_result else partial(without_result, decide)


def check_access(access: Access[Any, Any]) -> None:
    """Raise `InvalidInput` if a strategy stores no events, so that a repeat under a key could not be answered."""
    if access.state_in_unfolds:
        raise InvalidInput("idempotency_key", _NEEDS_EVENTS)


def encode_event(codec: EventCodec[E] | None, event: E | Later | Event) -> Event:
    """Encode a part of a decision's answer as it is appended; without a codec it is encoded already."""
    if isinstance(event, Later):
        from epochal.scheduling import later  # noqa: PLC0415  most decisions set no timer

        inner = [encode_event(codec, inner_event) for inner_event in event.events]
        return later(event.name, inner, at=event.at, tags=event.tags)
    if codec is None or is_timer(event):
        return cast("Event", event)
    encoded_event = must_be_done(codec.encode(untagged(event)), "encode")
    # The decider's codec has the last word: it may seal what the one that tagged the event has not.
    return (
        replace(event, type=encoded_event.type, data=encoded_event.data)
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
