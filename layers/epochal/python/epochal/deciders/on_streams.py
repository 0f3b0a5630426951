"""Deciders on streams: one decider for any number of streams, and one decision on several of them at once.

How a decision is made and stored is in `epochal.deciders.stream_decisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, Generic, Literal, TypeVar, overload

from epochal.deciders.access import UNOPTIMIZED, Access
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec
from epochal.deciders.folding import Folder
from epochal.deciders.loading import REQUIRE_LOAD, AllowStale, Load, Loader, check_load
from epochal.deciders.loop import (
    ATTEMPTS,
    Answer,
    without_result,
)
from epochal.deciders.projections import Projection
from epochal.deciders.stream_decisions import NEEDS_EVENTS, AllTransacted, OnStreams, Party, Transacted
from epochal.errors import InvalidInput, TooLarge
from epochal.layout.decision_keys import DecisionKey
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.expected_version import (
    ANY,
    ExpectedVersion,
)
from epochal.model.kinds import must_be_list, must_be_whole
from epochal.model.moments import AsOf
from epochal.model.plain_functions import must_be_plain
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store.appending import require_transactional_layout
from epochal.store.encoding import check_key
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


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Decider(Generic[C, S, E]):
    """A domain's rules, as three pure functions. None may change a state or event that it is given.

    Attributes:
        initial: function that returns the state of a stream without events.
        evolve: function that returns the state after one more event.
        decide: function that returns the events that a command leads to in a state, and timers (`later`); none if there
            is nothing to do. It may raise the domain's own errors, which pass through.
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
class Deciders(Generic[C, S, E]):
    """Runs one decider on any number of streams. Holds no state but the cache it is given; safe under threads.

    Attributes:
        streams: store of the streams.
        decider: the domain's rules.
        codec: converts the domain's events to stored ones and back.
        access: access strategy: which events are read and what is stored; see `epochal.deciders.access`.
        cache: cache of states, which may be shared with other deciders; None for none.
        attempts: maximum number of times that one command is decided on before `Contended` is raised.
        forget_pruned: whether to begin anew from the initial state if a stream was pruned or emptied, instead of
            raising `EventsPruned`.
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
        """Decide on a command in the latest state and store the events exactly once; return the outcome.

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
                states of projections at the first call are not kept. Make the result from the outcome's `events`.
            load: how the state is loaded: read (`REQUIRE_LOAD`), read at half the price and perhaps late (`ALLOW_LAG`),
                taken from the cache (`AllowStale`), or that of a new stream (`ASSUME_EMPTY`). An old state costs
                another try, and is never stored on.
            expected: expected version of the stream when the decision is made: a token or a version that the caller has
                seen, such as that of an `If-Match`. If the stream has another version, the call raises `ConflictError`.
            metadata: metadata for the events of this decision, however often it is made: what `epochal.metadata` takes.
                They take precedence over a block around the call; an event's own metadata takes precedence over them.
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
            OutcomeUndetermined: a response was lost, and the events that would show the outcome were pruned; or events
                that the key may have appended were pruned.
            Unavailable: the store could not be reached; see `maybe_applied`.
            EventsPruned, UnknownType: the state cannot be made; see `epochal.deciders.folding`.
        """
        decision = decision_function(self.decider, command, decide, with_result=with_result)
        if given is not None and decide is None:
            raise InvalidInput("decide", "must be given with `given`, instead of a command")
        if given is not None and with_result and idempotency_key is not None:
            raise InvalidInput(
                "with_result",
                "must not be combined with `given` and a key: a repeat could not make the result again, since the"
                " states of projections at the first call are not kept. Leave it out, and make the result from the"
                " `events` of the outcome, which a repeat has too; or leave out the key",
            )
        if idempotency_key is not None:
            check_access(self.access)
        source = self._decision_source(given)(
            parties=(self.on(stream, expected=expected),),
            streams=self.streams,
            decision=decision,
            how=load,
            key=self._key_of(stream, idempotency_key, joint=given is not None),
            with_result=with_result,
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
        """Return what `projection` makes of the stream's state, latest or as of a version or moment.

        It raises what loading in `handle` does.

        Args:
            stream: name of the stream.
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
        """Pair a stream with the rules of these deciders, as one party of a joint decision (`handle_all`).

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
        """Return the class or function that builds a decision's source: with projections if `given` is set."""
        if given is None:
            return OnStreams
        from epochal.deciders.on_stream_and_query import OnStreamAndQuery  # noqa: PLC0415  most are on a stream alone

        return partial(OnStreamAndQuery, projections=given)

    def _key_of(self, stream: str, key: str | None, *, joint: bool) -> DecisionKey | str | None:
        """Check a key; return the stream's `DecisionKey`, or the key itself if `joint`; None without a key."""
        if key is None:
            return None
        if not joint:
            return self.streams.decision_key(stream, key)
        check_key(key)
        return key


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
    """Decide on several streams' states and store all events or none, exactly once; return the outcome.

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
    source = _several(parties, decision, load, idempotency_key, with_result=with_result)
    result, outcome = source.decide(attempts=attempts, metadata=metadata)
    return (result, outcome) if with_result else outcome


def _place_of(streams: Streams) -> tuple[object, ...]:
    """Return the identity of a table of streams, which is equal for all stores that use the table."""
    return (streams.driver.place, streams.table, streams.layout.name)


def _several(
    parties: Sequence[Party[Any, Any]],
    decision: Callable[..., tuple[R, Sequence[Sequence[Any]]]],
    load: Load | AllowStale,
    key: str | None,
    *,
    with_result: bool,
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
        raise InvalidInput("parties", "must not name a stream twice")
    streams = parties[0].deciders.streams
    if any(_place_of(party.deciders.streams) != _place_of(streams) for party in parties):
        raise InvalidInput("parties", "must all use the same table of streams")
    require_transactional_layout(streams.layout)
    return OnStreams(
        parties=tuple(parties),
        streams=streams,
        decision=decision,
        how=load,
        key=key,
        with_result=with_result,
        joint=True,
    )


def decision_function(
    decider: Decider[Any, Any, Any], command: object, decide: Callable[..., Any] | None, *, with_result: bool
) -> Callable[..., tuple[Any, Any]]:
    """Return the function that decides, with a result and events: the decider's own, or the caller's.

    Raises:
        InvalidInput: there is neither a command nor a function, or both; or no function that returns a result.
    """
    if decide is None:
        if command is NO_COMMAND:
            raise InvalidInput("command", "must be given, unless `decide` is given")
        if with_result:
            raise InvalidInput("decide", "must be given with `with_result`, instead of a command")
        return partial(without_result, partial(decider.decide, command))
    if command is not NO_COMMAND:
        raise InvalidInput("decide", "must not be given together with a command")
    return decide if with_result else partial(without_result, decide)


def check_access(access: Access[Any, Any]) -> None:
    """Raise `InvalidInput` if a strategy stores no events, so that a repeat under a key could not be answered."""
    if access.state_in_unfolds:
        raise InvalidInput("idempotency_key", NEEDS_EVENTS)
