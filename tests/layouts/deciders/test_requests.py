"""What a state and a decision cost, by the requests that are sent."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.access import LATEST_KNOWN_EVENT, UNOPTIMIZED, Access, custom, snapshot
from epochal.deciders.cache import Cache
from epochal.deciders.loading import ASSUME_EMPTY, AllowStale
from epochal.deciders.on_streams import Decider, Deciders
from epochal.model.capacity import Capacity
from epochal.model.tokens import Token
from epochal.pages.layout import Pages
from epochal.plan.ops import Get, Query, Transact, Update
from epochal.plan.values import item_size
from tests.layouts.deciders.tally import (
    CODEC,
    STRATEGIES,
    Added,
    Cleared,
    Snapshotted,
    Store,
    Tally,
    TallyEvent,
    add,
    clear,
    evolve,
    is_snapshot,
    to_snapshot,
    total,
)

S = "Tally-1"


def fill(store: Store, strategy: str, count: int) -> None:
    tallies = store.elsewhere(STRATEGIES[strategy])
    for _ in range(count):
        tallies.handle(S, decide=add(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", ["snapshot", "multi-snapshot", "rolling state", "custom", "latest known event"]
)
def test_a_state_with_an_unfold_is_one_request_of_one_item_however_long_the_stream(strategy: str) -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=3)))
    fill(store, strategy, 100)
    before = store.streams.driver.meter.units
    assert store.tallies(STRATEGIES[strategy]).query(S, total) == 100
    assert store.requests() == ["Get"]
    assert (store.streams.driver.meter.units - before).read == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_decision_is_one_request_to_read_and_one_to_append(strategy: str) -> None:
    store = Store()
    tallies = store.tallies(STRATEGIES[strategy])
    tallies.handle(S, decide=add(1))
    assert store.requests() == ["Get", "Put"]
    tallies.handle(S, decide=add(1))
    assert store.requests() == ["Get", "Update"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_append_on_a_cached_token_is_one_request(strategy: str) -> None:
    store = Store(layout=Tips(calving=Fixed()))
    tallies = store.tallies(STRATEGIES[strategy], cache=Cache())
    tallies.handle(S, decide=add(1))
    store.requests()
    before = store.streams.driver.meter.units
    for expected in range(2, 5):
        assert tallies.handle(S, decide=add(1), load=AllowStale()).state.total == expected
        assert store.requests() == ["Update"]
    cost = store.streams.driver.meter.units - before
    assert (cost.write, cost.read) == (3, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stream_that_is_new_as_assumed_takes_one_request(strategy: str) -> None:
    store = Store()
    assert store.tallies(STRATEGIES[strategy]).handle(S, decide=add(5), load=ASSUME_EMPTY).state == Tally(5)
    assert store.requests() == ["Put"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stream_that_is_not_new_after_all_costs_no_read(strategy: str) -> None:
    store = Store()
    fill(store, strategy, 3)
    outcome = store.tallies(STRATEGIES[strategy]).handle(S, decide=add(5), load=ASSUME_EMPTY)
    assert outcome.state == Tally(8)
    assert store.requests() == ["Put", "Update"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_conflict_costs_no_read(strategy: str) -> None:
    store = Store()
    fill(store, strategy, 3)
    racers = iter([10])

    def overtake(state: Tally) -> list[TallyEvent]:
        by = next(racers, None)
        if by is not None:
            store.elsewhere(STRATEGIES[strategy]).handle(S, decide=add(by))
        return [Added(1, state.total + 1)]

    assert store.tallies(STRATEGIES[strategy]).handle(S, decide=overtake).state == Tally(14)
    assert store.requests() == ["Get", "Update", "Update"]


def test_from_the_second_conflict_on_the_head_is_read_since_others_went_on_during_the_pause() -> None:
    store = Store()
    fill(store, "unoptimized", 3)
    racers = iter([10, 20, 30])

    def overtake(state: Tally) -> list[TallyEvent]:
        by = next(racers, None)
        if by is not None:
            store.elsewhere().handle(S, decide=add(by))
        return [Added(1, state.total + 1)]

    assert store.tallies().handle(S, decide=overtake).state == Tally(64)
    assert store.requests() == ["Get", "Update", "Update", "Get", "Update", "Get", "Update"]


def test_a_conflict_whose_events_were_calved_reads_these_and_not_the_tip() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    fill(store, "unoptimized", 9)
    once = iter([None])

    def overtake(state: Tally) -> list[TallyEvent]:
        for _ in once:
            fill(store, "unoptimized", 7)
        return [Added(1, state.total + 1)]

    assert store.tallies().handle(S, decide=overtake).state == Tally(17)
    kinds = [type(op) for op in store.ops]
    assert kinds.count(Get) == 1
    assert isinstance(store.ops[-1], Transact), "the last append calves, from the Tip that was handed back"
    refused = kinds.index(Update)
    missing = [op for op in store.ops[refused:] if isinstance(op, Query)]
    assert len(missing) == 2, "where the first missing event is, and the calves from there on"
    assert missing[1].sort is not None
    assert missing[1].sort[1] == {"N": "10"}, "event 9 came with the calf that was looked for"


def counting(
    store: Store, access: Access[int, TallyEvent] = UNOPTIMIZED
) -> tuple[Deciders[object, int, TallyEvent], list[TallyEvent]]:
    """Deciders that keep a list of the events folded."""
    folded: list[TallyEvent] = []

    def count(state: int, event: TallyEvent) -> int:
        folded.append(event)
        return evolve(Tally(state), event).total

    decider: Decider[object, int, TallyEvent] = Decider(initial=int, evolve=count, decide=lambda _, __: [])
    deciders = Deciders(streams=store.streams, decider=decider, codec=CODEC, access=access, cache=Cache())
    return deciders, folded


@pytest.mark.parametrize("access", [UNOPTIMIZED, LATEST_KNOWN_EVENT, snapshot(is_snapshot, Snapshotted)])
def test_a_cached_state_that_is_the_latest_is_confirmed_by_one_request_and_folds_nothing(
    access: Access[int, TallyEvent],
) -> None:
    store = Store()
    fill(store, "snapshot", 50)
    deciders, folded = counting(store, access)
    assert deciders.query(S, int) == 50
    store.requests()
    folded.clear()
    assert deciders.query(S, int) == 50
    assert store.requests() == ["Get"]
    assert folded == []


def test_a_cached_state_is_moved_on_by_the_new_events_alone() -> None:
    store = Store()
    fill(store, "unoptimized", 50)
    deciders, folded = counting(store)
    deciders.query(S, int)
    fill(store, "unoptimized", 2)
    store.requests()
    folded.clear()
    assert deciders.query(S, int) == 52
    assert store.requests() == ["Get"]
    assert folded == [Added(1, 51), Added(1, 52)]


def test_a_cached_state_of_a_stream_that_was_pruned_before_is_moved_on_too() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    fill(store, "unoptimized", 20)
    store.others.prune(S, before=5)
    tallies = store.tallies(cache=Cache(), forget_pruned=True)
    tallies.query(S, total)
    fill(store, "latest known event", 1)
    store.requests()
    assert tallies.query(S, total) == 21
    assert store.requests() == ["Get"]


def test_a_decision_for_nothing_on_a_cached_state_costs_one_read_of_the_tip() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    fill(store, "unoptimized", 20)
    tallies = store.tallies(cache=Cache())
    tallies.query(S, total)
    store.requests()
    assert tallies.handle(S, decide=add(0), load=AllowStale()).state == Tally(20)
    assert store.requests() == ["Get"]


def test_without_origins_a_stream_is_read_forward_so_that_it_need_not_be_held() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    fill(store, "unoptimized", 20)
    assert store.tallies().query(S, total) == 20
    queries = [op for op in store.ops if isinstance(op, Query)]
    assert queries
    assert all(query.forward for query in queries)


def test_a_query_of_a_young_enough_state_asks_nobody() -> None:
    store = Store()
    fill(store, "unoptimized", 1)
    tallies = store.tallies(cache=Cache())
    tallies.query(S, total)
    fill(store, "unoptimized", 1)
    store.requests()
    store.now = 10.0
    assert tallies.query(S, total, load=AllowStale(max_age=10.0)) == 1
    assert store.requests() == []
    store.now = 10.1
    assert tallies.query(S, total, load=AllowStale(max_age=10.0)) == 2
    assert store.requests() == ["Get"]


def test_confirming_a_cached_state_makes_it_young_again() -> None:
    store = Store()
    fill(store, "unoptimized", 1)
    tallies = store.tallies(cache=Cache())
    tallies.query(S, total)
    store.now = 100.0
    tallies.query(S, total)
    store.requests()
    tallies.query(S, total, load=AllowStale(max_age=1.0))
    assert store.requests() == []


@pytest.mark.parametrize(
    "access",
    [
        snapshot(lambda event: isinstance(event, Cleared), to_snapshot),
        custom(lambda event: isinstance(event, Cleared), lambda events, _: (events, None)),
    ],
)
def test_a_search_for_an_origin_among_events_stops_at_the_newest(access: Access[Tally, TallyEvent]) -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    fill(store, "unoptimized", 20)
    store.elsewhere().handle(S, decide=clear)
    fill(store, "unoptimized", 3)
    assert store.tallies(access).query(S, total) == 3
    assert store.requests() == ["Get", "Query"]
    store.others.prune(S, before=5)
    assert store.tallies(access).query(S, total) == 3, "what went before the origin is not missed"


def test_a_short_stream_is_read_to_its_first_event_and_no_further() -> None:
    store = Store()
    fill(store, "unoptimized", 3)
    assert store.tallies(STRATEGIES["snapshot"]).query(S, total) == 3
    assert store.requests() == ["Get"]


def test_an_event_of_latest_interest_is_found_past_a_tip_without_events() -> None:
    store = Store()
    fill(store, "unoptimized", 3)
    store.others.append(S, [], unfolds=[])
    assert store.tallies(LATEST_KNOWN_EVENT).query(S, total) == 3
    assert store.requests() == ["Get"]


def test_nothing_decided_is_nothing_written() -> None:
    store = Store()
    for access in STRATEGIES.values():
        outcome = store.tallies(access).handle(S, decide=clear)
        assert outcome.events == ()
        assert (outcome.token, outcome.version) == (Token(version=0), 0)
        assert store.requests() == ["Get"]
    assert store.others.load(S) is None


def test_a_decision_that_is_transmuted_into_nothing_is_not_written() -> None:
    store = Store()
    mute: Access[Tally, TallyEvent] = custom(is_snapshot, lambda _events, _state: ((), None))
    outcome = store.tallies(mute).handle(S, decide=add(1))
    assert (outcome.state, outcome.events) == (Tally(), ())
    assert store.requests() == ["Get"]


def test_a_calve_needs_no_second_read_of_the_tip_that_was_loaded() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2, mode="two-step")))
    fill(store, "unoptimized", 2)
    store.tallies(UNOPTIMIZED).handle(S, decide=add(1))
    kinds = [type(op) for op in store.ops]
    assert kinds.count(Get) == 1
    assert len(kinds) == 3, "load, calf, Tip"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_transaction_carries_what_it_consumed_its_refusals_included(strategy: str) -> None:
    store = Store()
    fill(store, strategy, 3)
    once = iter([5])

    def overtake(state: Tally) -> list[TallyEvent]:
        for by in once:
            store.elsewhere(STRATEGIES[strategy]).handle(S, decide=add(by))
        return [Added(1, state.total + 1)]

    before = store.streams.driver.meter.units
    outcome = store.tallies(STRATEGIES[strategy]).handle(S, decide=overtake)
    spent = store.streams.driver.meter.units - before
    assert outcome.capacity == Capacity(read=spent.read, write=spent.write, requests=3)
    assert (outcome.capacity.read, outcome.capacity.write) == (1, 2)


def test_a_state_of_all_events_of_a_short_stream_of_pages_is_one_request() -> None:
    store = Store(layout=Pages(), kind="streams")
    for number in range(1, 60):
        store.others.append(S, [replace(CODEC.encode(Added(1, number)), meta=Random(number).randbytes(300))])
        if number == 20:
            assert store.tallies().query(S, total) == 20
            assert store.requests() == ["Query"]
    spent = store.streams.driver.meter.units

    assert store.tallies().query(S, total) == 59
    assert store.requests() == ["Query", "Query", "Query"], "the first pages, the last one, those between"
    stored = sum(item_size(item) for item in store.tables.items("streams"))
    assert (store.streams.driver.meter.units - spent).read <= stored / 4096 + 3
