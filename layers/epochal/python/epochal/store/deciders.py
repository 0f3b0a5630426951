"""Deciders on streams: a decision on the state of one, stored in it.

Decisions are made in the loop of `epochal.store.deciding`. What is theirs alone:

    load        from the head, one request, which may lag; or from the cache, none; or assumed empty, none
    append      on exactly the head that the state was made from, one request
     └ stored   the state goes into the cache with the token that came back

Under an idempotency key the append is made once, and nothing is decided on a state that may have it (`layout.once`):

    before deciding   the key's record is put, one request; where it is there, the stream is searched for the append
    there             it is answered: its events as they are stored, on the state that they were decided on
    not there         as above; each head that the decision goes on with is searched, too
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, Generic, Literal, TypeVar, cast

from epochal.errors import InvalidInput, OutcomeUndetermined, StreamDeleted
from epochal.layout.once import DecisionKey
from epochal.layout.streams import Head, Rejected, Unknown, Written
from epochal.model.events import Event, Unfold
from epochal.model.kinds import must_be_done, must_be_plain, must_be_whole
from epochal.model.versions import NOTHING, Capacity, Token
from epochal.store.codecs import EventCodec
from epochal.store.deciding import ATTEMPTS, Decision, DecisionSource, Earlier, Moved, decision_of
from epochal.store.driver import Driver
from epochal.store.folding import UNOPTIMIZED, Access, Folder, Loaded
from epochal.store.loading import REQUIRE_LOAD, AllowStale, Cache, Load, Loader, token_of
from epochal.store.streams import Streams

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
T = TypeVar("T")

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
        decide: the events that a command leads to in a state; none where there is nothing to do. It may raise the
            domain's own errors, which pass through.
    """

    initial: Callable[[], S]
    evolve: Callable[[S, E], S]
    decide: Callable[[C, S], Sequence[E]]

    def __post_init__(self) -> None:
        """Refuse functions that nothing would await."""
        must_be_plain(self.initial, "initial")
        must_be_plain(self.evolve, "evolve")
        must_be_plain(self.decide, "decide", may_yield=True)


@dataclass(frozen=True, kw_only=True)
class Transacted(Generic[S, E]):
    """A transaction's outcome.

    Attributes:
        state: after the decision.
        events: that were decided; where there are none nothing was written.
        token: of the stream after it, for its ETag or an append of one's own; None where there is no stream.
        replayed: an earlier call with the idempotency key appended them.
        capacity: what the transaction consumed: its loads, and appends that were refused.
    """

    state: S
    events: tuple[E, ...]
    token: Token | None
    replayed: bool = field(default=False, compare=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)

    @property
    def version(self) -> int:
        """The stream's next index."""
        return 0 if self.token is None else self.token.version


@dataclass(frozen=True, kw_only=True)
class Deciders(Generic[C, S, E]):
    """Runs one decider on any number of streams. Holds no state but the cache it is given; safe under threads.

    Attributes:
        access: what is read and stored; see `epochal.store.folding`.
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

    def handle(
        self,
        stream: str,
        command: C,
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E]:
        """Let the decider decide on a command; see `transact`."""
        return self.transact(
            stream,
            partial(self.decider.decide, command),
            load=load,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )

    def transact(
        self,
        stream: str,
        decide: Callable[[S], Sequence[E]],
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Transacted[S, E]:
        """Store the events that `decide` answers with, on the stream's latest state, once.

        `decide` gets the state, and answers with the events, none where there is nothing to do, or with
        `deciding.WithAlso`. It is called again whenever another writer was faster, so it must be free of side effects.

        Args:
            load: how the state is got at: read (`REQUIRE_LOAD`), read at half the price and perhaps late (`ALLOW_LAG`),
                taken from the cache (`AllowStale`), or that of a new stream (`ASSUME_EMPTY`). An old state costs
                another try, and is never stored on.
            metadata: of the events of this decision, however often it is made: what `store.context.metadata` takes.
                They win over a block around the call, and what an event says itself wins over them.
            idempotency_key: one decision within its stream: for 24 hours, a repeat of the command with its key is
                answered like the first, whatever the stream is by then, and its events are there once. The key alone
                tells a repeat, not the command. A decision that stored nothing is made again.

        Raises:
            InvalidInput: a malformed stream name, metadata that a block would refuse, an event that cannot be stored; a
                key that was used for an append, with a strategy that stores no events, or for events with tags.
            StreamDeleted: the stream takes no more events.
            Contended: other writers were faster at every attempt.
            ConditionUnmet: a condition of what goes with the events (`deciding.WithAlso`) does not hold.
            OutcomeUndetermined: a response was lost, and the evidence with it; or what a key was used for is pruned.
            Unavailable: the store could not be reached; see `maybe_applied`.
            EventsPruned, UnknownType: the state cannot be made; see `epochal.store.folding`.
        """
        decision = partial(without_result, decide)
        return self._on(stream, decision, load, idempotency_key).decide(
            attempts=self.attempts, metadata=metadata
        )[1]

    def transact_result(
        self,
        stream: str,
        decide: Callable[[S], tuple[R, Sequence[E]]],
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, Transacted[S, E]]:
        """`transact` with a `decide` that also answers; the answer given with the decision that stands.

        For a repeat `decide` is asked again on the state of the first, from all events before it, for its answer alone.
        """
        return self._on(stream, decide, load, idempotency_key, answers=True).decide(
            attempts=self.attempts, metadata=metadata
        )

    def query(
        self,
        stream: str,
        projection: Callable[[S], R],
        *,
        load: Literal[Load.REQUIRED] | AllowStale = REQUIRE_LOAD,
    ) -> R:
        """A view of the stream's state; raises what loading in `transact` does."""
        return projection(self.loader.load(stream, load).state)

    def on(self, stream: str) -> Party[S, E]:
        """The stream, with these rules, as a party to `transact_all`."""
        return Party(deciders=self, stream=stream)

    @cached_property
    def loader(self) -> Loader[S, E]:
        """Loads states of streams, for decisions that are built on these deciders."""
        folder = Folder(
            streams=self.streams,
            initial=self.decider.initial,
            evolve=self.decider.evolve,
            codec=self.codec,
            access=self.access,
            forget_pruned=self.forget_pruned,
        )
        return Loader(folder=folder, cache=self.cache)

    def _on(
        self,
        stream: str,
        decision: Callable[[S], tuple[R, Sequence[E]]],
        load: Load | AllowStale,
        key: str | None,
        *,
        answers: bool = False,
    ) -> _OneStream[R, S, E]:
        if key is not None:
            check_access(self.access)
        return _OneStream(
            deciders=self,
            stream=stream,
            decision=decision,
            how=load,
            key=None if key is None else self.streams.decision_key(stream, key),
            answers=answers,
        )


# No slots, as above.
@dataclass(frozen=True, kw_only=True)
class Party(Generic[S, E]):
    """A stream, and the deciders whose rules its state is made by; made by `Deciders.on`."""

    deciders: Deciders[Any, S, E]
    stream: str


@dataclass(frozen=True, kw_only=True)
class Plan(Decision[R, E], Generic[R, S, E]):
    """What a decision on the state `base` stores, and the state after it."""

    base: Loaded[S]
    state: S
    stored: tuple[Event, ...] = ()
    unfolds: tuple[Unfold, ...] | None = None

    @property
    def writes(self) -> bool:
        """Whether anything is stored."""
        return bool(self.stored) or self.unfolds is not None

    def check_key(self) -> None:
        """Raise `InvalidInput` where a decision under a key stores unfolds alone."""
        if not self.stored:
            raise InvalidInput("idempotency_key", _NEEDS_EVENTS)

    def outcome(self, token: Token | None) -> Transacted[S, E]:
        """The answer once it is stored."""
        return Transacted(state=self.state, events=self.events, token=token)


@dataclass(frozen=True, kw_only=True)
class _OneStream(DecisionSource[Loaded[S], Plan[R, S, E], R, Transacted[S, E]], Generic[R, S, E]):
    """A decision on one stream.

    Attributes:
        answers: an answer of `decision` is wanted, of an earlier call too.
    """

    takes_also = True

    deciders: Deciders[Any, S, E]
    stream: str
    decision: Callable[[S], tuple[R, Sequence[E]]]
    how: Load | AllowStale
    key: DecisionKey | None
    answers: bool

    @property
    def driver(self) -> Driver:
        return self.deciders.streams.driver

    @property
    def about(self) -> object:
        return self.stream

    def over(self, driver: Driver) -> _OneStream[R, S, E]:
        streams = self.deciders.streams.on(driver)
        return replace(self, deciders=replace(self.deciders, streams=streams))

    def load(self) -> Loaded[S] | Earlier[R, Transacted[S, E]]:
        loaded = self.deciders.loader.load(self.stream, self.how)
        return loaded if self.key is None else self._free(self.deciders.loader.begun(self.key, loaded))

    def confirmed(self, base: Loaded[S]) -> bool:
        return base.confirmed

    def confirm(self, base: Loaded[S]) -> Loaded[S] | Earlier[R, Transacted[S, E]]:
        return self._resumed(base, self.deciders.loader.read(self.stream, base))

    def plan(self, base: Loaded[S]) -> Plan[R, S, E]:
        return planned(self.deciders, base, decision_of(self.decision(base.state)))

    def unchanged(self, base: Loaded[S], plan: Plan[R, S, E]) -> tuple[R, Transacted[S, E]]:
        return plan.result, plan.outcome(token_of(base.known))

    def append(
        self, base: Loaded[S], plan: Plan[R, S, E], since: float
    ) -> tuple[R, Transacted[S, E]] | Earlier[R, Transacted[S, E]] | Moved[Loaded[S], R, Transacted[S, E]]:
        if self.key is not None:
            plan.check_key()
        stream, loader = self.stream, self.deciders.loader
        match self.deciders.streams.append_on(
            base.known, stream, plan.stored, plan.unfolds, decided=self.key, also=plan.also
        ):
            case Written(token=token, replayed=False):
                loader.keep(stream, replace(base, state=plan.state, known=token), since)
                return plan.result, plan.outcome(token)
            case Written() as written:
                return self._as_earlier(written)
            case Unknown(first=first):
                raise OutcomeUndetermined(stream, first)
            case Rejected(head=head):
                check_there(stream, head)

                def onward(newest: bool) -> Loaded[S] | Earlier[R, Transacted[S, E]]:
                    return self._resumed(base, loader.again(stream, head, base, since, newest=newest))

                return Moved(name=stream, onward=onward)

    def _resumed(self, before: Loaded[S], loaded: Loaded[S]) -> Loaded[S] | Earlier[R, Transacted[S, E]]:
        return self._free(self.deciders.loader.resumed(self.key, before, loaded))

    def _free(self, found: Loaded[S] | Written) -> Loaded[S] | Earlier[R, Transacted[S, E]]:
        return self._as_earlier(found) if isinstance(found, Written) else found

    def _as_earlier(self, written: Written) -> Earlier[R, Transacted[S, E]]:
        return Earlier(answer=partial(self.over(self.driver.telling())._earlier, written))  # noqa: SLF001  its own

    def _earlier(self, written: Written) -> tuple[R, Transacted[S, E]]:
        before, transacted = earlier(self.deciders, self.stream, written, whole=self.answers)
        if not self.answers:
            return cast("R", None), transacted
        return decision_of(self.decision(before)).result, transacted


def planned(deciders: Deciders[Any, S, E], base: Loaded[S], decision: Decision[R, E]) -> Plan[R, S, E]:
    """What a decision stores, and what that leaves."""
    plan = Plan(
        result=decision.result, events=decision.events, also=decision.also, base=base, state=base.state
    )
    if not decision.events:
        return plan
    state = deciders.loader.folder.fold(base.state, decision.events)
    events, unfolds = must_be_done(deciders.access.transmute(decision.events, state), "transmute")
    if not events and unfolds is None:
        if plan.also:
            raise InvalidInput("also", "needs events to go with, of which transmute has left none")
        return replace(plan, events=())
    return replace(
        plan,
        state=state,
        stored=tuple(_encoded(deciders.codec, event) for event in events),
        unfolds=None if unfolds is None else tuple(_unfold(deciders.codec, event) for event in unfolds),
    )


def earlier(
    deciders: Deciders[Any, S, E], stream: str, written: Written, *, whole: bool
) -> tuple[S, Transacted[S, E]]:
    """The state that a decision was made on which has been appended, and its outcome.

    Args:
        whole: the former is wanted. Without it, the state after an append that is still the last is the stream's:
            what snapshots hold may be pruned.
    """
    loader, events = deciders.loader, tuple[E, ...]()
    if written.version == 0:
        begun = loader.folder.begin()
        return begun, Transacted(state=begun, events=(), token=None, replayed=True)
    latest = None if whole else loader.read(stream)
    if latest is not None and latest.version == written.version:
        before = state = latest.state
        events = loader.folder.events(stream, written)
    else:
        before, events = loader.folder.replayed(stream, written)
        state = loader.folder.fold(before, events)
    return before, Transacted(state=state, events=events, token=written.token, replayed=True)


def without_result(decide: Callable[..., T], *states: Any) -> tuple[None, T]:
    """What a function without an answer decides, as one that has none."""
    return None, decide(*states)


def check_access(access: Access[Any, Any]) -> None:
    """Raise `InvalidInput` where a decision leaves nothing to answer a repeat under a key from."""
    if access.state_in_unfolds:
        raise InvalidInput("idempotency_key", _NEEDS_EVENTS)


def check_there(stream: str, head: Head | None) -> None:
    """Raise where a decision that was refused cannot be made again."""
    if head is not None and head.deleted:
        raise StreamDeleted(stream, head.version)


def _encoded(codec: EventCodec[E], event: E) -> Event:
    return must_be_done(codec.encode(event), "encode")


def _unfold(codec: EventCodec[E], event: E) -> Unfold:
    encoded = _encoded(codec, event)
    return Unfold(type=encoded.type, data=encoded.data, meta=encoded.meta, timestamp=encoded.timestamp)
