"""Decisions on the states of several streams, stored in several of them at once; or on a stream and a query.

The loop is that of `epochal.store.deciding`. What is theirs alone:

    load        each stream as a decider loads it: from the store, from the cache, or assumed empty
    append      to the streams that get something, on exactly the heads that their states were made from;
                and only if the other streams, which were read, are still at theirs
     ├ stored   each state goes into its cache, with the token that came back
     └ moved    the heads of the streams that have moved came back: these states alone are made anew, and they alone
                are read after a long pause. To read all wastes more: the reads of eight writers drift apart

What stands on several streams was decided on what all of them were at one moment, those that are only read among them.
Otherwise two decisions that each write where the other has only read would both be stored, though neither was made
after the other (write skew). A decision that stores nothing, or an error, is answered once a read of all heads together
has shown that they were so at one moment: streams that are read one after another may show what never was.

A decision on a stream and a query of tagged events is stored in the stream, if that is at the head that was read and no
event has come that the query matches. One that stores nothing is answered once the stream's head was read again after
the query, and had not moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

from epochal.errors import InvalidInput, OutcomeUndetermined, TooLarge
from epochal.layout.streams import DecidedBefore, Head, Rejected, Unknown, Written
from epochal.model.kinds import must_be, must_be_done, must_be_list
from epochal.model.versions import NOTHING, Capacity, Conflict, StreamAppend
from epochal.plan.ops import TRANSACTION_ITEMS
from epochal.store.concerning import Forbidden, append_on
from epochal.store.deciders import (
    Party,
    Plan,
    Transacted,
    check_access,
    check_there,
    earlier,
    planned,
    without_result,
)
from epochal.store.deciding import ATTEMPTS, DecisionSource, Earlier, Moved, decision_of
from epochal.store.decisions import Decisions, Model, Projection, caught_up, moved
from epochal.store.driver import Driver
from epochal.store.encoding import check_key
from epochal.store.folding import Loaded
from epochal.store.loading import REQUIRE_LOAD, AllowStale, Load, token_of
from epochal.store.several import layout_of
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents

S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")
S2 = TypeVar("S2")
E2 = TypeVar("E2")
S3 = TypeVar("S3")
E3 = TypeVar("E3")
T = TypeVar("T")


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
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2]]]: ...


@overload
def transact_all(
    parties: tuple[Party[S, E], Party[S2, E2], Party[S3, E3]],
    decide: Callable[[S, S2, S3], tuple[Sequence[E], Sequence[E2], Sequence[E3]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], Transacted[S2, E2], Transacted[S3, E3]]]: ...


@overload
def transact_all(
    parties: Sequence[Party[S, E]],
    decide: Callable[..., Sequence[Sequence[E]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[tuple[Transacted[S, E], ...]]: ...


def transact_all(
    parties: Sequence[Party[Any, Any]],
    decide: Callable[..., Sequence[Sequence[Any]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> AllTransacted[Any]:
    """Store the events that `decide` finds in the states of the parties' streams, all of them or none, once.

    `decide` gets a state for each party, and answers with a sequence of events for each, in their order; each may be
    `deciding.WithAlso`. It is called again whenever another writer was faster, so it must be free of side effects.

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
        StreamDeleted, Contended, ConditionUnmet, OutcomeUndetermined, Unavailable, EventsPruned, UnknownType: as
            `Deciders.transact`.
    """
    decision = partial(without_result, decide)
    return _several(parties, decision, load, idempotency_key).decide(attempts=attempts, metadata=metadata)[1]


def transact_all_result(
    parties: Sequence[Party[Any, Any]],
    decide: Callable[..., tuple[R, Sequence[Sequence[Any]]]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> tuple[R, AllTransacted[tuple[Transacted[Any, Any], ...]]]:
    """`transact_all` with a `decide` that also answers, as `Deciders.transact_result` has it."""
    return _several(parties, decide, load, idempotency_key, answers=True).decide(
        attempts=attempts, metadata=metadata
    )


def _several(
    parties: Sequence[Party[Any, Any]],
    decision: Callable[..., tuple[R, Sequence[Sequence[Any]]]],
    load: Load | AllowStale,
    key: str | None,
    *,
    answers: bool = False,
) -> _SeveralStreams[R]:
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
    layout_of(streams.layout)
    return _SeveralStreams(
        parties=parties, streams=streams, decision=decision, how=load, key=key, answers=answers
    )


_States: TypeAlias = Sequence[Loaded[Any]]
_AllTransacted: TypeAlias = AllTransacted[tuple[Transacted[Any, Any], ...]]


@dataclass(frozen=True, kw_only=True)
class _AllPlans(Generic[R]):
    """The plans of all parties, or the error that the decision raised. Either rests on all streams."""

    result: R
    plans: Sequence[Plan[None, Any, Any]]
    fault: Exception | None = None
    writes: Literal[True] = True


@dataclass(frozen=True, kw_only=True)
class _SeveralStreams(DecisionSource[_States, _AllPlans[R], R, _AllTransacted], Generic[R]):
    """A decision on several streams."""

    takes_also = True

    parties: Sequence[Party[Any, Any]]
    streams: Streams
    decision: Callable[..., tuple[R, Sequence[Sequence[Any]]]]
    how: Load | AllowStale
    key: str | None
    answers: bool

    @property
    def driver(self) -> Driver:
        return self.streams.driver

    def over(self, driver: Driver) -> _SeveralStreams[R]:
        streams = self.streams.on(driver)
        return replace(
            self,
            streams=streams,
            parties=[
                replace(party, deciders=replace(party.deciders, streams=streams)) for party in self.parties
            ],
        )

    def load(self) -> _States | Earlier[R, _AllTransacted]:
        return self._free([party.deciders.loader.load(party.stream, self.how) for party in self.parties])

    def plan(self, base: _States) -> _AllPlans[R]:
        """An error is the domain's, as far as it is one of states that the streams were in at one moment."""
        try:
            result, answered = self._answer(loaded.state for loaded in base)
            decisions = (decision_of((None, events)) for events in answered)
            return _AllPlans(
                result=result,
                plans=[
                    planned(party.deciders, loaded, decision)
                    for party, loaded, decision in zip(self.parties, base, decisions, strict=True)
                ],
            )
        except Exception as fault:  # noqa: BLE001  raised again, as it is, once it is known to stand
            return _AllPlans(result=cast("R", None), plans=(), fault=fault)

    def append(
        self, base: _States, plan: _AllPlans[R], since: float
    ) -> tuple[R, _AllTransacted] | Earlier[R, _AllTransacted] | Moved[_States, R, _AllTransacted]:
        results = self._append(base, plan)
        if isinstance(results, DecidedBefore):
            return self._as_earlier(results)
        moved: dict[str, Head | None] = {}
        for stream, result in results.items():
            if isinstance(result, Unknown):
                raise OutcomeUndetermined(stream, result.first)
            if isinstance(result, Rejected):
                moved[stream] = result.head
        if not moved:
            if plan.fault is not None:
                raise plan.fault
            return plan.result, self._outcome(plan.plans, results, since)
        for stream, head in moved.items():
            check_there(stream, head)

        def onward(newest: bool) -> _States | Earlier[R, _AllTransacted]:
            return self._free(
                [
                    loaded
                    if party.stream not in moved
                    else party.deciders.loader.again(
                        party.stream, moved[party.stream], loaded, since, newest=newest
                    )
                    for party, loaded in zip(self.parties, base, strict=True)
                ]
            )

        return Moved(name=next(iter(moved)), onward=onward)

    def _append(
        self, base: _States, plan: _AllPlans[R]
    ) -> dict[str, Written | Rejected[Head] | Unknown | None] | DecidedBefore:
        """The result of each stream's write, or of the fence around it."""
        writing = {
            party.stream: each for party, each in zip(self.parties, plan.plans, strict=False) if each.writes
        }
        if any(event.tags for each in writing.values() for event in each.stored):
            raise InvalidInput(
                "decide", "must not lead to events with tags on several streams: use one stream"
            )
        if self.key is not None:
            for each in writing.values():
                each.check_key()
        known = {party.stream: each.known for party, each in zip(self.parties, base, strict=True)}
        appends = [
            StreamAppend(stream=stream, events=each.stored, unfolds=each.unfolds)
            for stream, each in writing.items()
        ]
        reads = {stream: each for stream, each in known.items() if stream not in writing}
        also = [each for party in writing.values() for each in party.also]
        written = [known[stream] for stream in writing]
        results = self.streams.append_all_on(written, appends, reads, self.key, also)
        if isinstance(results, DecidedBefore):
            return results
        return dict(zip((*writing, *reads), results, strict=True))

    def _answer(self, states: Iterable[Any]) -> tuple[R, Sequence[Sequence[Any]]]:
        result, answer = must_be_done(self.decision(*states), "decide")
        must_be_done(answer, "decide")
        must_be(Sequence, answer, "decide", "a function that answers with the events of each party")
        if len(answer) != len(self.parties):
            raise InvalidInput("decide", "must answer with the events of each party, in their order")
        return result, answer

    def _outcome(
        self, plans: Sequence[Plan[None, Any, Any]], results: Mapping[str, object], since: float
    ) -> _AllTransacted:
        outcomes = []
        for party, plan in zip(self.parties, plans, strict=True):
            written = results[party.stream]
            known = written.token if isinstance(written, Written) else plan.base.known
            party.deciders.loader.keep(party.stream, replace(plan.base, state=plan.state, known=known), since)
            outcomes.append(plan.outcome(token_of(known)))
        return AllTransacted(parties=tuple(outcomes))

    def _free(self, base: _States) -> _States | Earlier[R, _AllTransacted]:
        """After the loads: an append under the key that these have not seen is found, or in the way."""
        names = [party.stream for party in self.parties]
        made = None if self.key is None else self.streams.decided_all(names, self.key)
        return base if made is None else self._as_earlier(made)

    def _as_earlier(self, before: DecidedBefore) -> Earlier[R, _AllTransacted]:
        return Earlier(answer=partial(self.over(self.driver.telling())._earlier, before))  # noqa: SLF001  its own

    def _earlier(self, before: DecidedBefore) -> tuple[R, _AllTransacted]:
        found = [
            earlier(party.deciders, party.stream, before.streams[party.stream], whole=self.answers)
            for party in self.parties
        ]
        outcome: _AllTransacted = AllTransacted(parties=tuple(transacted for _, transacted in found))
        if not self.answers:
            return cast("R", None), outcome
        return self._answer(state for state, _ in found)[0], outcome


def transact_with(
    party: Party[S, E],
    projections: Mapping[str, Projection[Any]],
    decide: Callable[[S, Mapping[str, Any]], Sequence[E]],
    *,
    load: Load | AllowStale = REQUIRE_LOAD,
    attempts: int = ATTEMPTS,
    metadata: Mapping[str, Any] | None = None,
) -> Transacted[S, E]:
    """Store the events that `decide` finds in a stream's state and in the answers of projections, if both still hold.

    The stream may be in the projections, too: by events of its own that carry tags. It takes no
    idempotency key, nor `deciding.WithAlso`.

    Args:
        projections: over tagged events of the same table; they are the condition of the append.
        load, attempts, metadata: as in `transact_all`.

    Raises:
        InvalidInput: the layout keeps no tags; or what `Deciders.transact` raises it for.
        StreamDeleted, Contended, OutcomeUndetermined, Unavailable, EventsPruned, UnknownType: as `Deciders.transact`.
    """
    return _StreamAndQuery(
        party=party, projections=projections, decision=partial(without_result, decide), how=load
    ).decide(attempts=attempts, metadata=metadata)[1]


@dataclass(frozen=True, kw_only=True)
class _StateAndModel(Generic[S]):
    """A stream's state, and a model that was read after it.

    Attributes:
        confirmed: the stream was seen to be as loaded after the model was read: both were so at one moment.
    """

    loaded: Loaded[S]
    model: Model
    confirmed: bool = False


@dataclass(frozen=True, kw_only=True)
class _StreamAndQuery(
    DecisionSource[_StateAndModel[S], Plan[R, S, E], R, Transacted[S, E]], Generic[R, S, E]
):
    """A decision on a stream and a query."""

    party: Party[S, E]
    projections: Mapping[str, Projection[Any]]
    decision: Callable[[S, Mapping[str, Any]], tuple[R, Sequence[E]]]
    how: Load | AllowStale

    @property
    def driver(self) -> Driver:
        return self.party.deciders.streams.driver

    @property
    def about(self) -> object:
        return self.party.stream

    def over(self, driver: Driver) -> _StreamAndQuery[R, S, E]:
        deciders = self.party.deciders
        own = replace(deciders, streams=deciders.streams.on(driver))
        return replace(self, party=replace(self.party, deciders=own))

    def load(self) -> _StateAndModel[S]:
        loaded = self.party.deciders.loader.load(self.party.stream, self.how)
        return _StateAndModel(loaded=loaded, model=Decisions(store=self._tagged).model(self.projections))

    def confirmed(self, base: _StateAndModel[S]) -> bool:
        return base.confirmed

    def confirm(self, base: _StateAndModel[S]) -> _StateAndModel[S]:
        loaded = self.party.deciders.loader.read(self.party.stream, base.loaded)
        if token_of(loaded.known) == token_of(base.loaded.known):
            return _StateAndModel(loaded=loaded, model=base.model, confirmed=True)
        return _StateAndModel(loaded=loaded, model=self._caught_up(base.model))

    def plan(self, base: _StateAndModel[S]) -> Plan[R, S, E]:
        decision = decision_of(self.decision(base.loaded.state, base.model.states))
        return planned(self.party.deciders, base.loaded, decision)

    def unchanged(self, base: _StateAndModel[S], plan: Plan[R, S, E]) -> tuple[R, Transacted[S, E]]:
        return plan.result, plan.outcome(token_of(base.loaded.known))

    def append(
        self, base: _StateAndModel[S], plan: Plan[R, S, E], since: float
    ) -> tuple[R, Transacted[S, E]] | Moved[_StateAndModel[S], R, Transacted[S, E]]:
        stream, deciders, loaded = self.party.stream, self.party.deciders, base.loaded
        forbidden = Forbidden(fail_if=base.model.query, after=base.model.position)
        one = StreamAppend(stream=stream, events=plan.stored, unfolds=plan.unfolds)
        result = append_on(deciders.streams, loaded.known, one, forbidden)
        match result:
            case Written(token=token):
                deciders.loader.keep(stream, replace(loaded, state=plan.state, known=token), since)
                return plan.result, plan.outcome(token)
            case Unknown(first=first):
                raise OutcomeUndetermined(stream, first)
            case Rejected(head=head):
                check_there(stream, head)

                def onward(newest: bool) -> _StateAndModel[S]:
                    again = deciders.loader.again(stream, head, loaded, since, newest=newest)
                    return _StateAndModel(loaded=again, model=base.model)

                return Moved(name=stream, onward=onward)
            case Conflict() as conflict:

                def after(newest: bool) -> _StateAndModel[S]:
                    model = moved(base.model, self.projections, conflict)
                    model = model if newest else self._caught_up(model)
                    return _StateAndModel(loaded=loaded, model=model)

                return Moved(name=stream, onward=after)

    @property
    def _tagged(self) -> TaggedEvents:
        return self.party.deciders.streams.tagged

    def _caught_up(self, model: Model) -> Model:
        return caught_up(self._tagged, model, self.projections)
