"""A decision answers events and timers: stored together, in the domain's own events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.state_codecs import json_state
from epochal.contrib.subjects.sealing import sealed_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.contrib.timers.stores import timers_of
from epochal.deciders.access import rolling_state, snapshot
from epochal.deciders.codecs import json_codec
from epochal.deciders.loop import Answer, WithAlso
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.deciders.projections import projection
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.stream_names import TIMER_CANCELLED, TIMER_SET
from epochal.model.timers import Later
from epochal.scheduling import after, cancel, later, pending, query_of
from epochal.store.also import put
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams, memory_tables
from tests.support.async_deciders import async_deciders


@dataclass(frozen=True)
class Lent:
    to: str


@dataclass(frozen=True)
class Returned:
    pass


@dataclass(frozen=True)
class Reminded:
    times: int


@dataclass(frozen=True)
class Loans:
    to: str = ""
    reminded: int = 0


LoanEvent = Lent | Returned | Reminded
CODEC = json_codec(Lent, Returned, Reminded)
REMINDER = Later("reminder", [Reminded(1)], at=after(days=14))


def evolve(state: Loans, event: LoanEvent) -> Loans:
    match event:
        case Lent(to=to):
            return Loans(to=to)
        case Returned():
            return Loans()
        case Reminded(times=times):
            return Loans(to=state.to, reminded=times)


def decide(command: str, state: Loans) -> Answer[LoanEvent]:
    if command == "return":
        return [Returned(), cancel("reminder")] if state.to else []
    if command == "remind later":
        return [REMINDER]
    return [Lent(command), REMINDER]


DECIDER = Decider(initial=Loans, evolve=evolve, decide=decide)


def loans(streams: Streams, **how: Any) -> Deciders[str, Loans, LoanEvent]:
    return Deciders(streams=streams, decider=DECIDER, codec=CODEC, **how)


def types(streams: Streams, stream: str = "Loan-17") -> list[str]:
    return [event.type for event in streams.read(stream)]


def test_a_decision_stores_its_events_and_its_timers_in_one_append() -> None:
    streams = memory_streams()
    lent = loans(streams).handle("Loan-17", "ada")
    assert (lent.events, lent.state, lent.version) == ((Lent("ada"),), Loans("ada"), 2)
    assert types(streams) == ["Lent", TIMER_SET]
    (timer,) = timers_of(streams).pending("Loan-17")
    assert timer.events == (CODEC.encode(Reminded(1)),)
    loans(streams).handle("Loan-17", "return")
    assert types(streams)[2:] == ["Returned", TIMER_CANCELLED]
    assert timers_of(streams).pending("Loan-17") == ()


def test_what_a_timer_has_appended_is_folded_like_any_event() -> None:
    streams = memory_streams()
    loans(streams).handle("Loan-17", "ada")
    (timer,) = timers_of(streams).pending("Loan-17")
    streams.append("Loan-17", timer.firing())
    assert loans(streams).query("Loan-17", lambda state: state) == Loans("ada", reminded=1)


def test_a_decision_of_timers_alone_is_stored_and_changes_no_state() -> None:
    streams = memory_streams()
    loans(streams).handle("Loan-17", "ada")
    again = loans(streams).handle("Loan-17", "remind later")
    assert (again.events, again.state, again.version) == ((), Loans("ada"), 3)
    assert [timer.setting for timer in timers_of(streams).pending("Loan-17")] == [2]


ACCESSES = {
    "snapshot": snapshot(lambda event: isinstance(event, Lent), lambda state: Lent(state.to)),
    "rolling": rolling_state(lambda state: Lent(state.to)),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_strategies_see_no_timers_and_keep_them(name: str) -> None:
    streams = memory_streams()
    deciders = loans(streams, access=ACCESSES[name])
    deciders.handle("Loan-17", "ada")
    deciders.handle("Loan-17", "remind later")
    assert deciders.query("Loan-17", lambda state: state.to) == "ada"
    (timer,) = timers_of(streams).pending("Loan-17")
    streams.append("Loan-17", timer.firing())
    assert deciders.query("Loan-17", lambda state: state) == Loans("ada", reminded=1)


def test_a_repeat_under_a_key_is_answered_like_the_first_and_sets_no_other_timer() -> None:
    streams = memory_streams()
    first = loans(streams).handle("Loan-17", "ada", idempotency_key="k")
    second = loans(streams).handle("Loan-17", "ada", idempotency_key="k")
    assert (second.replayed, second.events, second.state) == (True, first.events, first.state)
    only = loans(streams).handle("Loan-18", "remind later", idempotency_key="k")
    repeated = loans(streams).handle("Loan-18", "remind later", idempotency_key="k")
    assert (repeated.replayed, repeated.events, repeated.version) == (True, (), only.version)
    assert types(streams, "Loan-18") == [TIMER_SET]


def test_a_timer_may_be_made_by_hand_and_set_the_next() -> None:
    streams = memory_streams()
    weekly = Later(
        "weekly", [Reminded(1), Later("weekly", [Reminded(2)], at=after(weeks=1))], at=after(weeks=1)
    )
    byhand = later("raw", [CODEC.encode(Reminded(3))], at=after(days=30))
    loans(streams).handle("Loan-17", decide=lambda _: [weekly, byhand])
    first, raw = timers_of(streams).pending("Loan-17")
    assert raw.events == (CODEC.encode(Reminded(3)),)
    streams.append("Loan-17", first.firing())
    second = timers_of(streams).pending("Loan-17")[0]
    assert (second.name, second.events) == ("weekly", (CODEC.encode(Reminded(2)),))


def test_a_decision_with_answer_and_with_items_of_ones_own_may_set_timers() -> None:
    streams = memory_streams(memory_tables(members="id"))
    row = put("members", {"id": "ada"})
    result, lent = loans(streams).handle(
        "Loan-17", decide=lambda _: (7, WithAlso([Lent("ada"), REMINDER], [row])), with_result=True
    )
    assert (result, lent.events) == (7, (Lent("ada"),))
    loans(streams).handle("Loan-18", decide=lambda _: WithAlso([REMINDER], [row]))
    assert [len(timers_of(streams).pending(name)) for name in ("Loan-17", "Loan-18")] == [1, 1]


def test_a_decision_on_several_streams_sets_timers_in_each() -> None:
    streams = memory_streams()
    deciders = loans(streams)
    parties = deciders.on("Loan-17"), deciders.on("Loan-18")
    done = handle_all(parties, lambda _one, _two: ([Lent("ada"), REMINDER], [cancel("reminder")]))
    assert [each.events for each in done.parties] == [(Lent("ada"),), ()]
    assert types(streams, "Loan-18") == [TIMER_CANCELLED]
    assert len(timers_of(streams).pending("Loan-17")) == 1


SEATS = projection(tags=["seat:1"], on={"Taken": lambda count, _: count + 1}, initial=0)


def test_a_decision_on_tags_sets_timers_of_them() -> None:
    tagged = memory_streams().tagged
    taken = Event(type="Taken", tags=("seat:1",))
    lapsed = Later("hold", [Event(type="Lapsed", tags=("seat:1",))], at=after(minutes=10), tags=("seat:1",))

    def take(states: Mapping[str, Any]) -> list[Event | Later]:
        return [] if states["seats"] else [taken, lapsed]

    decisions = Decisions(store=tagged)
    decided = decisions.handle({"seats": SEATS}, take, idempotency_key="k")
    assert [event.type for event in decided.events] == ["Taken", TIMER_SET]
    assert decisions.handle({"seats": SEATS}, take, idempotency_key="k").replayed
    (timer,) = pending(tagged.read(query_of(["seat:1"])).events)
    assert timer.events[0].type == "Lapsed"
    decisions.handle({"seats": SEATS}, lambda _: [cancel("hold", tags=["seat:1"])])
    assert timers_of(tagged).pending(["seat:1"]) == ()


def test_a_decision_on_a_stream_and_tags_sets_timers_of_the_stream() -> None:
    streams = memory_streams()
    loans(streams).handle(
        "Loan-17", given={"seats": SEATS}, decide=lambda _state, _seats: [Lent("ada"), REMINDER]
    )
    assert len(timers_of(streams).pending("Loan-17")) == 1


def test_a_decision_that_is_awaited_sets_timers() -> None:
    streams = memory_streams()
    asyncio.run(async_deciders(loans(streams)).handle("Loan-17", "ada"))
    assert len(timers_of(streams).pending("Loan-17")) == 1


def test_aggregates_have_no_timers() -> None:
    store = memory_aggregates()
    deciders = AggregateDeciders(store=store, decider=DECIDER, codec=CODEC, state=json_state(Loans))
    with pytest.raises(InvalidInput, match="aggregates have none"):
        deciders.handle(aggregate_id("Loan", "17"), "ada")


def test_a_timer_without_events_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidInput, match="list of events"):
        Later("reminder", Reminded(1), at=after(days=1))
    with pytest.raises(InvalidInput, match="events"):
        loans(memory_streams()).handle("Loan-17", decide=lambda _: [Later("reminder", [], at=after(days=1))])


def test_of_a_person_who_is_forgotten_a_timers_events_cannot_be_read_either() -> None:
    subjects, streams = memory_subjects(), memory_streams()
    codec = sealed_codec(
        CODEC, subjects, subject_of=lambda _: "ada", shredded=lambda _stored, _shredded: Returned()
    )
    deciders = Deciders(streams=streams, decider=DECIDER, codec=codec)
    deciders.handle(
        "Loan-17", decide=lambda _: [Lent("ada"), Later("r", [Lent("ada in secret")], at=after(days=14))]
    )
    stored = b"".join(event.content for event in streams.read("Loan-17"))
    assert b"secret" not in stored
    (timer,) = timers_of(streams).pending("Loan-17")
    assert subjects.unseal(timer.events[0].content) == CODEC.encode(Lent("ada in secret")).data
    subjects.forget("ada")
    assert subjects.unseal(timer.events[0].content) == subjects.unseal(next(streams.read("Loan-17")).content)
    streams.append("Loan-17", timer.firing())
    assert deciders.query("Loan-17", lambda state: state) == Loans()
