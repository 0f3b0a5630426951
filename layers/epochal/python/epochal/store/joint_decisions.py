"""Decisions on the states of several streams, stored in several of them at once.

    load        each stream as a decider loads it: from the store, from the cache, or assumed empty
    decide      the user's function, on all states
    append      to the streams that get something, on exactly the heads that their states were made from;
                and only if the other streams, which were read, are still at theirs
     ├ stored      done; each state goes into its cache, with the token that came back
     ├ refused     the heads of the streams that have moved came back: these states alone are made anew, and all are
     │             decided on again; from the second time on after a pause, from the third on after a pause and a read
     └ untellable  `OutcomeUndetermined`

So whatever stands was decided on what all streams were at one moment, those that are only read among them. Otherwise
two decisions that each write where the other has only read would both be stored, though neither was made after the
other (write skew). A decision that stores nothing, or an error, is told once a read of all heads together has shown
that they were so at one moment: streams that are read one after another may show what never was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar, overload

from epochal.errors import InvalidInput, OutcomeUndetermined, TooLarge
from epochal.layout.streams import DecidedBefore, Head, Rejected, Unknown, Written
from epochal.model.kinds import must_be, must_be_done, must_be_list
from epochal.model.outcomes import NOTHING, Capacity
from epochal.model.several import StreamAppend
from epochal.plan.ops import TRANSACTION_ITEMS
from epochal.store.backoff import give_way
from epochal.store.deciders import Deciders, Plan, Transacted, check_attempts, decision_of
from epochal.store.encoding import block_of, check_key
from epochal.store.folding import Loaded
from epochal.store.loading import REQUIRE_LOAD, AllowStale, Load, token_of
from epochal.store.several import layout_of
from epochal.store.streams import Streams

S = TypeVar("S")
E = TypeVar("E")
S2 = TypeVar("S2")
E2 = TypeVar("E2")
S3 = TypeVar("S3")
E3 = TypeVar("E3")
T = TypeVar("T")

_Decide: TypeAlias = Callable[..., Sequence[Sequence[Any]]]


@dataclass(frozen=True, kw_only=True)
class Party(Generic[S, E]):
    """A stream, and the deciders whose rules its state is made by; made by `Deciders.on`."""

    deciders: Deciders[Any, S, E]
    stream: str


@dataclass(frozen=True, kw_only=True)
class AllTransacted(Generic[T]):
    """A joint decision's outcome.

    Attributes:
        parties: for each of them its own `Transacted`, in their order.
        capacity: what all of it consumed.
    """

    parties: T
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@overload
def transact_all(
    parties: tuple[Party[S, E], Party[S2, E2]],
    decide: Callable[[S, S2], tuple[Sequence[E], Sequence[E2]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = 10,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2]]]: ...


@overload
def transact_all(
    parties: tuple[Party[S, E], Party[S2, E2], Party[S3, E3]],
    decide: Callable[[S, S2, S3], tuple[Sequence[E], Sequence[E2], Sequence[E3]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = 10,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2], Transacted[S3, E3]]]: ...


@overload
def transact_all(
    parties: Sequence[Party[S, E]],
    decide: Callable[..., Sequence[Sequence[E]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = 10,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], ...]]: ...


def transact_all(
    parties: Sequence[Party[Any, Any]],
    decide: _Decide,
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = 10,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[Any]:
    """Store the events that `decide` finds in the states of the parties' streams, all of them or none, once.

    `decide` gets a state for each party, and answers with a sequence of events for each, in their order. It is called
    again whenever another writer was faster, so it must be free of side effects.

    Args:
        parties: at most 100, of one store, each another stream; 99 under a key.
        load: how each state is got at, as in `Deciders.transact`.
        attempts: decisions before `Contended` is raised.
        metadata: of the events of this decision, as in `Deciders.transact`.
        idempotency_key: one decision on these streams together, in whatever order they are named, as
            `Deciders.transact` has it for one.

    Raises:
        InvalidInput: parties of several stores, or a stream twice; the layout can append to one stream at a time only;
            or what `Deciders.transact` raises it for.
        StreamDeleted, Contended, OutcomeUndetermined, Unavailable, EventsPruned, UnknownType: as `Deciders.transact`.
    """
    streams, meter = _store_of(parties, idempotency_key).metered()
    if attempts < 1:
        raise InvalidInput("attempts", "must be at least 1")
    with meter, block_of(metadata):
        metered = [replace(each, deciders=replace(each.deciders, streams=streams)) for each in parties]
        outcomes = _Joint(
            parties=metered, streams=streams, decide=decide, attempts=attempts, key=idempotency_key
        ).run(load)
    return AllTransacted(parties=outcomes, capacity=meter.capacity)


def _store_of(parties: Sequence[Party[Any, Any]], key: str | None) -> Streams:
    must_be_list(Party, parties, "parties")
    if not parties:
        raise InvalidInput("parties", "must not be empty")
    most = TRANSACTION_ITEMS - (key is not None)
    if len(parties) > most:
        raise TooLarge("parties", len(parties), most, "streams")
    if key is not None:
        check_key(key)
        for party in parties:
            party.deciders.check_key()
    names = [party.stream for party in parties]
    if len(set(names)) < len(names):
        raise InvalidInput("parties", "must name a stream once")
    streams = parties[0].deciders.streams
    if any(party.deciders.streams != streams for party in parties):
        raise InvalidInput("parties", "must be of one store of streams")
    layout_of(streams.layout)
    return streams


@dataclass(frozen=True, kw_only=True)
class _Decided:
    """The plans of all parties, or the error that the decision raised."""

    plans: Sequence[Plan[None, Any, Any]] = ()
    fault: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class _Joint:
    parties: Sequence[Party[Any, Any]]
    streams: Streams
    decide: _Decide
    attempts: int
    key: str | None

    def run(self, load: Load | AllowStale) -> tuple[Transacted[Any, Any], ...]:
        loaded = [party.deciders.loader.load(party.stream, load) for party in self.parties]
        attempt = 0
        while True:
            # After the loads: an append under the key that these have not seen is found, or in the way.
            before = None if self.key is None else self.streams.decided_all(self._names, self.key)
            if before is not None:
                return self._earlier(before)
            attempt += 1
            decided = self._decided(loaded)
            as_of = self.streams.driver.clock()
            told = self._stored(loaded, decided)
            if isinstance(told, DecidedBefore):
                return self._earlier(told)
            moved = {
                place: found.head
                for place, party in enumerate(self.parties)
                if isinstance(found := told[party.stream], Rejected)
            }
            if not moved:
                if decided.fault is not None:
                    raise decided.fault
                return self._outcomes(decided.plans, told, as_of)
            for place, head in moved.items():
                check_attempts(self.parties[place].stream, attempt, self.attempts, head)
            newest = give_way(self.streams.driver, attempt, as_of)
            for place, head in moved.items():
                stream, loader = self.parties[place].stream, self.parties[place].deciders.loader
                loaded[place] = loader.again(stream, head, loaded[place], as_of, newest=newest)

    @property
    def _names(self) -> list[str]:
        return [party.stream for party in self.parties]

    def _earlier(self, before: DecidedBefore) -> tuple[Transacted[Any, Any], ...]:
        """The answer of an earlier call with the same key."""
        told, streams = [], self.streams.on(self.streams.driver.telling())
        for party in self.parties:
            deciders, written = replace(party.deciders, streams=streams), before.streams[party.stream]
            if written.version == 0:
                begun = deciders.loader.folder.begin()
                told.append(Transacted[Any, Any](state=begun, events=(), token=None, replayed=True))
            else:
                told.append(deciders.earlier(party.stream, written, whole=False)[1])
        return tuple(told)

    def _decided(self, loaded: Sequence[Loaded[Any]]) -> _Decided:
        """An error is the domain's, as far as it is one of states that the streams were in at one moment."""
        try:
            answer = self._answer(loaded)
            return _Decided(plans=tuple(map(_planned, self.parties, loaded, answer)))
        except Exception as fault:  # noqa: BLE001  raised again, as it is, once it is known to stand
            return _Decided(fault=fault)

    def _answer(self, loaded: Sequence[Loaded[Any]]) -> Sequence[Sequence[Any]]:
        answer = must_be_done(self.decide(*(each.state for each in loaded)), "decide")
        must_be(Sequence, answer, "decide", "a function that answers with the events of each party")
        if len(answer) != len(self.parties):
            raise InvalidInput("decide", "must answer with the events of each party, in their order")
        return answer

    def _stored(
        self, loaded: Sequence[Loaded[Any]], decided: _Decided
    ) -> dict[str, Written | Rejected[Head] | None] | DecidedBefore:
        """The result of each stream's write."""
        writing = {
            party.stream: plan
            for party, plan in zip(self.parties, decided.plans, strict=False)
            if plan.writes
        }
        for plan in writing.values():
            plan.check_key(self.key)
        known = {party.stream: each.known for party, each in zip(self.parties, loaded, strict=True)}
        appends = [
            StreamAppend(stream=stream, events=plan.events, unfolds=plan.unfolds)
            for stream, plan in writing.items()
        ]
        reads = {stream: each for stream, each in known.items() if stream not in writing}
        results = self.streams.append_all_on([known[stream] for stream in writing], appends, reads, self.key)
        if isinstance(results, DecidedBefore):
            return results
        told: dict[str, Written | Rejected[Head] | None] = {}
        for stream, result in zip((*writing, *reads), results, strict=True):
            if isinstance(result, Unknown):
                raise OutcomeUndetermined(stream, result.first)
            told[stream] = result
        return told

    def _outcomes(
        self,
        plans: Sequence[Plan[None, Any, Any]],
        told: dict[str, Written | Rejected[Head] | None],
        as_of: float,
    ) -> tuple[Transacted[Any, Any], ...]:
        outcomes = []
        for party, plan in zip(self.parties, plans, strict=True):
            written = told[party.stream]
            known = written.token if isinstance(written, Written) else plan.base.known
            party.deciders.loader.keep(party.stream, replace(plan.base, state=plan.state, known=known), as_of)
            outcomes.append(plan.outcome(token_of(known)))
        return tuple(outcomes)


def _planned(party: Party[Any, Any], loaded: Loaded[Any], events: Sequence[Any]) -> Plan[None, Any, Any]:
    _, decided = decision_of((None, events))
    return party.deciders.planned(loaded, None, decided)
