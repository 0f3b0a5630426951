"""Deciders on streams over HTTP: load, fold, decide, and append on exactly that state, again where it has moved.

`deciders.Deciders` works on the items of a table: it folds from the page that came back with a refusal, and stores
snapshots beside events. Neither comes through the API, so this loop is another one, and a smaller one: a state is
folded from all events of its stream, and after a refusal the new events are read. Each attempt is an append of its own,
repeated under a key of its own where an answer is lost, so a decision is stored exactly once. A decision under a key of
the caller's, which would answer a repeat of the whole call, is not to be had here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar, overload

from epochal.contrib.http_client.streams import HttpStreams
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loop import ATTEMPTS, Answer, decision_of, untagged
from epochal.deciders.on_streams import NO_COMMAND, Decider, decision_function
from epochal.deciders.stream_decisions import Transacted, encode_event
from epochal.errors import Contended, InvalidInput, StreamDeleted
from epochal.lazy_dataclasses import dataclass
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion, check_expected
from epochal.model.kinds import must_be_whole
from epochal.model.outcomes import Appended, Conflict
from epochal.model.plain_functions import must_be_done, must_be_state
from epochal.model.stream_names import TIMERS
from epochal.model.tokens import NO_EVENTS, Token
from epochal.store.context import block_of
from epochal.store.driver import Patience
from epochal.store.outcomes import append_error, check_state

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")

_PAUSES: Final = Patience(first=0.02, longest=0.2)
"""Pauses before a decision is made again, as long as a few requests."""

_AT_ONCE: Final = 1
"""Refusals after which a decision is made again without a pause."""


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class _Loaded(Generic[S]):
    """A state, and the token that it was made at; None for no stream."""

    state: S
    token: Token | None
    capacity: Capacity = NOTHING

    @property
    def version(self) -> int:
        """The stream's next index."""
        return 0 if self.token is None else self.token.version


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class HttpDeciders(Generic[C, S, E]):
    """Runs one decider on any number of streams behind an HTTP API. Holds no state; safe under threads.

    Attributes:
        streams: the store of streams behind the API.
        decider: the domain's rules.
        codec: codec of the domain's events.
        attempts: number of decisions on one command before `Contended` is raised.
    """

    streams: HttpStreams
    decider: Decider[C, S, E]
    codec: EventCodec[E]
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        must_be_whole(self.attempts, "attempts", 1)

    @overload
    def handle(
        self,
        stream: str,
        command: C,
        *,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
    ) -> Transacted[S, E]: ...

    @overload
    def handle(
        self,
        stream: str,
        *,
        decide: Callable[[S], Answer[E]],
        with_result: Literal[False] = False,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
    ) -> Transacted[S, E]: ...

    @overload
    def handle(
        self,
        stream: str,
        *,
        decide: Callable[[S], tuple[R, Answer[E]]],
        with_result: Literal[True],
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[R, Transacted[S, E]]: ...

    def handle(
        self,
        stream: str,
        command: Any = NO_COMMAND,
        *,
        decide: Callable[[S], Any] | None = None,
        with_result: bool = False,
        expected: ExpectedVersion = ANY,
        metadata: Mapping[str, Any] | None = None,
    ) -> Transacted[S, E] | tuple[Any, Transacted[S, E]]:
        """Decide on a command in a stream's latest state, store the events exactly once; return the outcome.

        The decider's `decide` gets the command and the state; a function given as `decide` takes its place, and gets
        the state. Either returns events and timers (`later`), none if there is nothing to do. It is called again
        whenever another writer was faster, so it must be free of side effects.

        Args:
            stream: name of the stream.
            command: the command for the decider's `decide`.
            decide: function that decides instead of the decider's `decide`, without a command.
            with_result: whether `decide` returns a pair of a result and the events. The answer is then a pair of the
                result and the outcome.
            expected: what the stream must be when it is decided on. If it is not, nothing is decided.
            metadata: metadata for the events of this decision, as for `Deciders.handle`.

        Raises:
            InvalidInput: a malformed stream name, an event that cannot be stored, `WithAlso`.
            ConflictError: the stream is not what was expected; carries a `Conflict`.
            StreamDeleted: the stream takes no more events.
            Contended: other writers were faster at every attempt.
            Unavailable: see `maybe_applied`.
            EventsPruned, UnknownType: the state cannot be made.
        """
        decision = decision_function(self.decider, command, decide, with_result=with_result)
        result, transacted = self._decided(stream, decision, expected, metadata)
        return (result, transacted) if with_result else transacted

    def _decided(
        self,
        stream: str,
        decide: Callable[[S], tuple[R, Answer[E]]],
        expected: ExpectedVersion,
        metadata: Mapping[str, Any] | None,
    ) -> tuple[R, Transacted[S, E]]:
        """Load, decide and append, again where another writer was faster; return the result and the outcome."""
        check_expected(expected)
        loaded = self._load(stream)
        for attempt in range(1, self.attempts + 1):
            check_state(stream, expected, loaded.token)
            decision = decision_of(decide(loaded.state))
            if decision.also:
                raise InvalidInput("also", "must be empty: the API writes to no other tables")
            events = tuple(map(untagged, decision.events))
            state = self._fold(loaded.state, events)
            if not decision.writes:
                return decision.result, Transacted(
                    state=state, events=(), token=loaded.token or NO_EVENTS, capacity=loaded.capacity
                )
            appended = [encode_event(self.codec, one) for one in (*decision.events, *decision.timers)]
            with block_of(metadata):
                outcome = self.streams.try_append(
                    stream, appended, expected=NO_STREAM if loaded.token is None else loaded.token
                )
            if isinstance(outcome, Appended):
                spent = loaded.capacity + outcome.capacity
                return decision.result, Transacted(
                    state=state, events=events, token=outcome.token, capacity=spent
                )
            if not isinstance(outcome, Conflict) or outcome.deleted or outcome.events:
                raise append_error(stream, outcome, loaded.token or NO_STREAM)
            if attempt == self.attempts:
                break
            if attempt > _AT_ONCE:
                api = self.streams.api
                api.sleep(_PAUSES.wait(attempt - _AT_ONCE, api.luck()))
            loaded = self._load(stream, loaded)
        raise Contended(stream, self.attempts)

    def query(self, stream: str, projection: Callable[[S], R]) -> R:
        """Return what `projection` makes of a stream's latest state; raise what loading in `handle` does.

        Args:
            stream: name of the stream.
            projection: converts the state into the view.
        """
        return projection(self._load(stream).state)

    def _load(self, stream: str, before: _Loaded[S] | None = None) -> _Loaded[S]:
        """Load the latest state of a stream, from the events since the state `before` if there is one."""
        start = 0 if before is None else before.version
        loaded = self.streams.load(stream, start=start)
        state = must_be_done(self.decider.initial(), "initial") if before is None else before.state
        spent = NOTHING if before is None else before.capacity
        if loaded is None:
            return _Loaded(state=state, token=None, capacity=spent)
        if loaded.deleted:
            raise StreamDeleted(stream, loaded.version)
        events = (self.codec.read(event) for event in loaded.events if event.type not in TIMERS)
        state = self._fold(state, (event for event in events if event is not None))
        return _Loaded(state=state, token=loaded.token, capacity=spent + loaded.capacity)

    def _fold(self, state: S, events: Iterable[E]) -> S:
        """Fold events into a state, and return the new state."""
        for event in events:
            state = must_be_state(self.decider.evolve(state, event), state, self.decider.initial, event)
        return state
