"""Deciders on streams: load a state, decide on it, store what was decided, and decide again where another was faster.

    load        from the head, one request, which may lag; or from the cache, none; or assumed empty, none
    decide      the user's function, on a state that may be an old one where nothing was read, or the read may lag
    nothing     to store, or an error: a state that may be old is first compared with the head, and decided on again
    append      on exactly the head the state was made from, one request
     ├ stored      done; the state goes into the cache with the token that came back
     ├ refused     by the head that came back: its state is decided on, without a second read (DESIGN §5.2); from the
     │             second time on after a pause, from the third on after a pause and a read
     └ untellable  `OutcomeUndetermined`

Under an idempotency key the append is made once, and nothing is decided on a state that may have it (`layout.once`):

    before deciding   the key's record is put, one request; where it is there, the stream is searched for the append
    there             it is answered: its events as they are stored, on the state that they were decided on
    not there         as above; each head that the decision goes on with is searched, too

So whatever a transaction answers was decided on the stream's latest state, at the moment of the append or of the read.
Each attempt is an append of its own, made exactly once by `Streams` (DESIGN §5.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from epochal.errors import Contended, InvalidInput, OutcomeUndetermined, StreamDeleted
from epochal.layout.streams import Head, Rejected, Unknown, Written
from epochal.model.events import Event, Unfold
from epochal.model.kinds import must_be_done, must_be_events, must_be_plain
from epochal.model.outcomes import NOTHING, Capacity
from epochal.model.versions import Token
from epochal.store.backoff import give_way
from epochal.store.codecs import EventCodec
from epochal.store.encoding import block_of
from epochal.store.folding import UNOPTIMIZED, Access, Folder, Loaded
from epochal.store.loading import REQUIRE_LOAD, AllowStale, Cache, Load, Loader, token_of
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.layout.once import DecisionKey
    from epochal.store.joint_decisions import Party

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")


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
    attempts: int = 10
    forget_pruned: bool = False

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidInput("attempts", "must be at least 1")

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
        """Store the events that `decide` finds in the stream's state, once.

        `decide` is called again whenever another writer was faster, so it must be free of side effects.

        Args:
            metadata: of the events of this decision, however often it is made: what `store.context.metadata` takes.
                They win over a block around the call, and what an event says itself wins over them.
            idempotency_key: one decision within its stream: for 24 hours, a repeat of the command with its key is
                answered like the first, whatever the stream is by then, and its events are there once. The key alone
                tells a repeat, not the command. A decision that stored nothing is made again.

        Raises:
            InvalidInput: a malformed stream name, metadata that a block would refuse, an event that cannot be stored; a
                key that was used for an append, or with a strategy that stores no events.
            StreamDeleted: the stream takes no more events.
            Contended: other writers were faster at every attempt.
            OutcomeUndetermined: a response was lost, and the evidence with it; or what a key was used for is pruned.
            Unavailable: the store could not be reached; see `maybe_applied`.
            EventsPruned, UnknownType: the state cannot be made; see `epochal.store.folding`.
        """
        return self._transact(
            stream, lambda state: (None, decide(state)), load, metadata, idempotency_key, answers=False
        )[1]

    def transact_result(
        self,
        stream: str,
        decide: Callable[[S], tuple[R, Sequence[E]]],
        *,
        load: Load | AllowStale = REQUIRE_LOAD,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> R:
        """`transact` with a `decide` that also answers; the answer given with the decision that stands.

        For a repeat `decide` is asked again on the state of the first, from all events before it, for its answer alone.
        """
        return self._transact(stream, decide, load, metadata, idempotency_key, answers=True)[0]

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
        """The stream, with these rules, as a party to `epochal.store.joint_decisions.transact_all`."""
        from epochal.store.joint_decisions import Party  # noqa: PLC0415  most decisions are on one stream

        return Party(deciders=self, stream=stream)

    def _transact(
        self,
        stream: str,
        decide: Callable[[S], tuple[R, Sequence[E]]],
        load: Load | AllowStale,
        metadata: Mapping[str, Any] | None,
        key: str | None,
        *,
        answers: bool,
    ) -> tuple[R, Transacted[S, E]]:
        streams, meter = self.streams.metered()
        with meter, block_of(metadata):
            own = replace(self, streams=streams)
            result, transacted = own._run(stream, decide, load, key, answers=answers)  # noqa: SLF001  its own
        return result, replace(transacted, capacity=meter.capacity)

    def _run(
        self,
        stream: str,
        decide: Callable[[S], tuple[R, Sequence[E]]],
        load: Load | AllowStale,
        key: str | None,
        *,
        answers: bool,
    ) -> tuple[R, Transacted[S, E]]:
        loader, attempt = self.loader, 0
        known_by = None if key is None else self._known_by(stream, key)
        loaded = loader.load(stream, load)
        found = loaded if known_by is None else loader.begun(known_by, loaded)
        while not isinstance(found, Written):
            loaded = found
            plan = self._plan(loaded, decide)
            if plan is None:
                found = loader.resumed(known_by, loaded, loader.read(stream, loaded))
                continue
            if not plan.writes:
                return plan.result, plan.outcome(token_of(loaded.known))
            plan.check_key(key)
            attempt += 1
            as_of = loader.now()
            match self.streams.append_on(loaded.known, stream, plan.events, plan.unfolds, decided=known_by):
                case Written(token=token, replayed=False):
                    loader.keep(stream, replace(loaded, state=plan.state, known=token), as_of)
                    return plan.result, plan.outcome(token)
                case Written() as earlier:
                    found = earlier
                case Unknown(first=first):
                    raise OutcomeUndetermined(stream, first)
                case Rejected(head=head):
                    check_attempts(stream, attempt, self.attempts, head)
                    newest = give_way(self.streams.driver, attempt, as_of)
                    found = loader.resumed(
                        known_by, loaded, loader.again(stream, head, loaded, as_of, newest=newest)
                    )
        telling = replace(self, streams=self.streams.on(self.streams.driver.telling()))
        before, transacted = telling.earlier(stream, found, whole=answers)
        if not answers:
            return cast("R", None), transacted
        return decision_of(decide(before))[0], transacted

    def earlier(self, stream: str, written: Written, *, whole: bool) -> tuple[S, Transacted[S, E]]:
        """The state that a decision was made on which has been appended, and its outcome.

        Args:
            whole: the former is wanted. Without it, the state after an append that is still the last is the stream's:
                what snapshots hold may be pruned.
        """
        loader, events = self.loader, tuple[E, ...]()
        latest = None if whole else loader.read(stream)
        if latest is not None and latest.version == written.version:
            before = state = latest.state
            events = loader.folder.events(stream, written)
        else:
            before, events = loader.folder.replayed(stream, written)
            state = loader.folder.fold(before, events)
        return before, Transacted(state=state, events=events, token=written.token, replayed=True)

    def _known_by(self, stream: str, key: str) -> DecisionKey:
        self.check_key()
        return self.streams.decision_key(stream, key)

    def _plan(self, base: Loaded[S], decide: Callable[[S], tuple[R, Sequence[E]]]) -> Plan[R, S, E] | None:
        """A decision that may stand: the store holds what writes to its state. Others need a confirmed one: None."""
        try:
            result, decided = decision_of(decide(base.state))
            plan = self.planned(base, result, decided)
        except Exception:
            if base.confirmed:
                raise
            return None
        return plan if plan.writes or base.confirmed else None

    def planned(self, base: Loaded[S], result: R, decided: tuple[E, ...]) -> Plan[R, S, E]:
        """The plan of a decision on a state: its events, unfolds and new state."""
        nothing: Plan[R, S, E] = Plan(base=base, result=result, state=base.state)
        if not decided:
            return nothing
        state = self.loader.folder.fold(base.state, decided)
        events, unfolds = must_be_done(self.access.transmute(decided, state), "transmute")
        if not events and unfolds is None:
            return nothing
        return replace(
            nothing,
            state=state,
            decided=decided,
            events=tuple(map(self._encoded, events)),
            unfolds=None if unfolds is None else tuple(map(self._unfold, unfolds)),
        )

    def _encoded(self, event: E) -> Event:
        return must_be_done(self.codec.encode(event), "encode")

    def _unfold(self, event: E) -> Unfold:
        encoded = self._encoded(event)
        return Unfold(type=encoded.type, data=encoded.data, meta=encoded.meta, timestamp=encoded.timestamp)

    def check_key(self) -> None:
        """Raise `InvalidInput` where a decision leaves nothing to answer a repeat from."""
        if self.access.state_in_unfolds:
            raise InvalidInput("idempotency_key", _NEEDS_EVENTS)

    @property
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


_NEEDS_EVENTS = "needs events that make the state: once unfolds are replaced, nothing tells what was decided"


def check_attempts(stream: str, attempt: int, most: int, head: Head | None) -> None:
    """Raise where a decision that was refused cannot be made again."""
    if head is not None and head.deleted:
        raise StreamDeleted(stream, head.version)
    if attempt == most:
        raise Contended(stream, attempt)


def decision_of(answer: tuple[R, Sequence[E]]) -> tuple[R, tuple[E, ...]]:
    """A decision's answer and its events; raises `InvalidInput` for a coroutine."""
    result, events = must_be_done(answer, "decide")
    return result, tuple(must_be_events(events))


@dataclass(frozen=True, kw_only=True)
class Plan(Generic[R, S, E]):
    """What a decision on the state `base` stores, and the answer once it is stored."""

    base: Loaded[S]
    result: R
    state: S
    decided: tuple[E, ...] = ()
    events: tuple[Event, ...] = ()
    unfolds: tuple[Unfold, ...] | None = None

    @property
    def writes(self) -> bool:
        """Whether anything is stored."""
        return bool(self.events) or self.unfolds is not None

    def check_key(self, key: str | None) -> None:
        """Raise `InvalidInput` where a decision under a key stores unfolds alone."""
        if key is not None and not self.events:
            raise InvalidInput("idempotency_key", _NEEDS_EVENTS)

    def outcome(self, token: Token | None) -> Transacted[S, E]:
        """The answer once the plan is stored."""
        return Transacted(state=self.state, events=self.decided, token=token)
