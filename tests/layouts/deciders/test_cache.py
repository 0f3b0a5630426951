"""The cache: bounded, shared, and never the reason for a wrong decision."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.cache import Cache, CachedState, approximate_size
from epochal.deciders.loading import AllowStale
from epochal.errors import EventsPruned, InvalidInput
from epochal.model.events import Unfold
from epochal.model.tokens import Token
from epochal.plan.ops import Op, Update
from tests.layouts.deciders.tally import (
    DECIDER,
    STRATEGIES,
    Added,
    Refused,
    Store,
    Tally,
    TallyEvent,
    add,
    clear,
    total,
)

S = "Tally-1"
STALE = AllowStale()


def entry(state: object, version: int = 1, as_of: float = 0.0) -> CachedState:
    token = Token(version=version, etag="0" * 32)
    return CachedState(state=state, token=token, low_water=0, as_of=as_of, begun=as_of)


# -------------------------------------------------------------------------------------------- bounds


def test_what_was_used_least_recently_goes_first() -> None:
    cache = Cache(entries=2)
    cache.put("a", entry("A"))
    cache.put("b", entry("B"))
    cache.get("a")
    cache.put("c", entry("C"))
    assert [cache.get(key) is not None for key in "abc"] == [True, False, True]
    assert len(cache) == 2


def test_a_cache_bounded_by_size_holds_no_more() -> None:
    cache = Cache(max_bytes=100, size_of=len)
    for key, size in (("a", 60), ("b", 30), ("c", 20)):
        cache.put(key, entry("x" * size))
    assert [cache.get(key) is not None for key in "abc"] == [False, True, True]
    assert cache.bytes == 50
    cache.put("b", entry("x" * 10))
    assert cache.bytes == 30, "a state that is replaced no longer counts"
    cache.put("d", entry("x" * 101))
    assert cache.get("d") is None, "what alone exceeds the bound is not kept"


def test_sizes_are_reckoned_by_what_a_state_refers_to() -> None:
    @dataclass(frozen=True)
    class Basket:
        owner: Tally
        items: tuple[str, ...]

    small, large = Basket(Tally(1), ("x",)), Basket(Tally(1), tuple(f"{n:0100}" for n in range(1000)))
    assert approximate_size(large) - approximate_size(small) > 100 * 1000
    assert approximate_size(small) < 10_000, "classes and modules are not part of a state"
    cache = Cache(max_bytes=50_000)
    cache.put("small", entry(small))
    cache.put("large", entry(large))
    assert cache.get("large") is None


def test_what_occurs_twice_counts_once() -> None:
    body = bytes(10_000)
    assert approximate_size((body, body)) < 11_000


def test_an_older_state_does_not_replace_a_later_one() -> None:
    cache = Cache()
    cache.put("a", entry("later", version=2, as_of=1.0))
    cache.put("a", entry("earlier", version=1, as_of=2.0))
    assert cache.get("a") == entry("later", version=2, as_of=1.0)
    cache.put("a", entry("as late", version=2, as_of=0.5))
    assert cache.get("a") == entry("later", version=2, as_of=1.0)


def test_a_cache_can_be_emptied() -> None:
    cache = Cache(max_bytes=1000)
    cache.put("a", entry("A"))
    cache.clear()
    assert (len(cache), cache.bytes, cache.get("a")) == (0, 0, None)


def test_a_cache_without_room_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Cache(entries=0)
    with pytest.raises(InvalidInput):
        Cache(max_bytes=0)


class Interrupted:
    """A key; at the nth look that the cache takes at it, another thread gets its chance to do something."""

    def __init__(self, work: Callable[[Interrupted], None]) -> None:
        self.looks_left = 0
        self.thread = threading.Thread(target=work, args=(self,))

    def __hash__(self) -> int:
        self.looks_left -= 1
        if self.looks_left == 0:
            self.thread.start()
            self.thread.join(timeout=0.1)
        return 1


@pytest.mark.parametrize("nth", [1, 2])
def test_what_is_being_looked_up_is_not_pushed_out_meanwhile(nth: int) -> None:
    cache = Cache()
    key = Interrupted(lambda _: cache.clear())
    cache.put(key, entry("A"))
    key.looks_left = nth
    assert cache.get(key) == entry("A")
    key.thread.join()
    assert len(cache) == 0


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_two_who_put_at_once_are_reckoned_once(nth: int) -> None:
    cache = Cache(max_bytes=1000, size_of=len)
    key = Interrupted(lambda key: cache.put(key, entry("x" * 20)))
    key.looks_left = nth
    cache.put(key, entry("x" * 10))
    key.thread.join()
    held = cache.get(key)
    assert held is not None
    assert cache.bytes == len(held.state)


# ------------------------------------------------------------------------ stale states and decisions


def behind(strategy: str, decided_elsewhere: int) -> tuple[Store, Cache]:
    """A cache that holds a total of 5, and a stream that others have moved on from there."""
    store, cache = Store(layout=Tips(calving=Fixed(max_events=4))), Cache()
    store.tallies(STRATEGIES[strategy], cache=cache).handle(S, decide=add(5))
    store.elsewhere(STRATEGIES[strategy]).handle(S, decide=add(decided_elsewhere))
    store.requests()
    return store, cache


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_appended_from_a_stale_state_is_decided_on_the_latest(strategy: str) -> None:
    store, cache = behind(strategy, 10)
    tallies = store.tallies(STRATEGIES[strategy], cache=cache)
    assert tallies.handle(S, decide=add(1), load=STALE).events == (Added(1, 16),)
    assert store.requests() == ["Update", "Update"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refusal_decided_on_a_stale_state_is_decided_again(strategy: str) -> None:
    store, cache = behind(strategy, 10)
    tallies = store.tallies(STRATEGIES[strategy], cache=cache)
    assert tallies.handle(S, decide=add(-12), load=STALE).state == Tally(3)
    assert store.requests() == ["Get", "Update"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refusal_that_the_latest_state_confirms_stands(strategy: str) -> None:
    store, cache = behind(strategy, 1)
    with pytest.raises(Refused, match="6"):
        store.tallies(STRATEGIES[strategy], cache=cache).handle(S, decide=add(-12), load=STALE)
    assert store.requests() == ["Get"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_to_do_in_a_stale_state_is_decided_again(strategy: str) -> None:
    store, cache = Store(), Cache()
    tallies = store.tallies(STRATEGIES[strategy], cache=cache)
    tallies.handle(S, decide=add(5))
    tallies.handle(S, decide=clear)
    store.elsewhere(STRATEGIES[strategy]).handle(S, decide=add(7))
    outcome = tallies.handle(S, decide=clear, load=STALE)
    assert (outcome.state, len(outcome.events)) == (Tally(), 1)
    assert tallies.handle(S, decide=clear, load=STALE).events == ()


def test_a_lost_answer_before_another_unfolds_leaves_nothing_in_the_cache_to_write_over_it() -> None:
    store, cache = Store(), Cache()
    tallies = store.tallies(STRATEGIES["custom"], cache=cache)
    tallies.handle(S, decide=add(5))
    losses = iter([True])

    def overtaken(op: Op) -> bool:
        lost = isinstance(op, Update) and next(losses, False)
        if lost:
            unseen = Unfold(type="Snapshotted", data=b'{"total":100}')
            store.others.append(S, [], unfolds=[unseen])
        return lost

    store.lose = overtaken
    assert tallies.handle(S, decide=add(1)).state == Tally(6)
    assert tallies.handle(S, decide=add(1), load=STALE).state == Tally(101)


def test_an_answer_given_without_an_event_is_of_the_latest_state() -> None:
    store, cache = behind("unoptimized", 10)
    assert (
        store.tallies(cache=cache).handle(
            S, decide=lambda state: (state.total, []), load=STALE, with_result=True
        )[0]
        == 15
    )


def test_an_own_append_leaves_the_cache_ready_for_the_next() -> None:
    store = Store(layout=Tips(calving=Fixed()))
    tallies = store.tallies(cache=Cache())
    tallies.handle(S, decide=add(1))
    store.requests()
    assert tallies.query(S, total) == 1
    assert tallies.query(S, total, load=STALE) == 1
    assert store.requests() == ["Get"]


# --------------------------------------------------------------------------------------------- age


def test_a_state_is_used_for_so_long_after_its_first_event_was_read_however_often_it_was_moved_on() -> None:
    """Or what was forgotten since would stay in it for as long as there is always something new."""
    store = Store()
    tallies = store.tallies(cache=Cache(max_seconds=300.0))
    tallies.handle(S, decide=add(1))
    for now in (100.0, 200.0, 299.0):
        store.now = now
        tallies.handle(S, decide=add(1), load=STALE)
    store.requests()
    tallies.query(S, total, load=STALE)
    assert store.requests() == []
    store.now = 300.0
    assert tallies.query(S, total, load=STALE) == 4
    assert store.requests() == ["Get"]
    store.now = 599.0
    assert tallies.query(S, total, load=STALE) == 4
    assert store.requests() == []


def test_a_state_in_use_while_its_time_ends_takes_its_age_along() -> None:
    store, cache = Store(), Cache(max_seconds=300.0)
    tallies = store.tallies(cache=cache)
    tallies.handle(S, decide=add(1))

    def slowly(state: Tally) -> Sequence[TallyEvent]:
        store.now = 301.0
        assert tallies.query(S, total) == 1
        return add(1)(state)

    store.now = 299.0
    tallies.handle(S, decide=slowly, load=STALE)
    store.requests()
    store.now = 302.0
    assert tallies.query(S, total, load=STALE) == 2
    assert store.requests() == ["Get"]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_cache_that_keeps_nothing_for_any_time_is_none(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="max_seconds: must be (more than 0 )?seconds"):
        Cache(max_seconds=seconds)


# ------------------------------------------------------------------------ what a cache must not hide


def test_a_cache_does_not_bring_back_what_was_pruned() -> None:
    store = Store()
    tallies = store.tallies(cache=Cache())
    tallies.handle(S, decide=add(1))
    tallies.handle(S, decide=add(2))
    store.others.prune(S, before=1)
    for load in (STALE, None):
        with pytest.raises(EventsPruned) as raised:
            tallies.handle(S, decide=add(1)) if load is None else tallies.handle(S, decide=add(1), load=load)
        assert (raised.value.needed, raised.value.low_water) == (0, 1)
    assert store.tallies(STRATEGIES["latest known event"]).query(S, total) == 3


def test_a_stream_that_is_emptied_and_left_open_begins_anew_where_that_is_chosen() -> None:
    store = Store()
    tallies = store.tallies(cache=Cache(), forget_pruned=True)
    tallies.handle(S, decide=add(1))
    store.others.delete(S, leave_open=True)
    assert tallies.handle(S, decide=add(5), load=STALE).state == Tally(5)
    assert tallies.query(S, total) == 5
    assert [event.index for event in store.others.read(S)] == [1]


def test_an_emptied_rolling_state_begins_anew() -> None:
    store = Store()
    tallies = store.tallies(STRATEGIES["rolling state"], cache=Cache())
    tallies.handle(S, decide=add(1))
    store.others.append(S, [], unfolds=())
    assert tallies.handle(S, decide=add(5), load=STALE).state == Tally(5)


def test_a_snapshot_that_was_replaced_is_taken_though_no_event_was_added() -> None:
    """As by a program that writes snapshots anew."""
    store = Store()
    tallies = store.tallies(replace(STRATEGIES["snapshot"], trust_unmarked=True), cache=Cache())
    tallies.handle(S, decide=add(1))
    store.others.append(S, [], unfolds=[Unfold(type="Snapshotted", data=b'{"total":100}')])
    assert tallies.query(S, total) == 100


def test_a_snapshot_outlives_the_events_it_holds() -> None:
    store = Store()
    tallies = store.tallies(STRATEGIES["snapshot"], cache=Cache())
    for _ in range(3):
        tallies.handle(S, decide=add(1))
    store.others.prune(S, before=3)
    assert tallies.handle(S, decide=add(1)).state == Tally(4)
    assert store.tallies(STRATEGIES["snapshot"]).query(S, total) == 4


def test_a_snapshot_older_than_what_was_pruned_is_not_folded_over_the_hole() -> None:
    store = Store()
    store.tallies(STRATEGIES["snapshot"]).handle(S, decide=add(1))
    for _ in range(3):
        store.tallies().handle(S, decide=add(1))
    store.others.prune(S, before=3)
    with pytest.raises(EventsPruned) as raised:
        store.tallies(STRATEGIES["snapshot"]).query(S, total)
    assert (raised.value.needed, raised.value.low_water) == (1, 3)


def test_where_what_is_pruned_may_be_forgotten_a_snapshot_older_than_that_is_too() -> None:
    store = Store()
    store.tallies(STRATEGIES["snapshot"]).handle(S, decide=add(1))
    for _ in range(3):
        store.tallies().handle(S, decide=add(1))
    store.others.prune(S, before=3)
    seen: list[TallyEvent] = []

    def counting(state: Tally, event: TallyEvent) -> Tally:
        seen.append(event)
        return DECIDER.evolve(state, event)

    tallies = store.tallies(STRATEGIES["snapshot"], forget_pruned=True)
    assert replace(tallies, decider=replace(DECIDER, evolve=counting)).query(S, total) == 4
    assert seen == [Added(1, 4)]


def test_pruned_events_come_from_the_archive() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    archive = Store()
    with_archive = replace(store.tallies(), streams=replace(store.streams, archive=archive.streams))
    for _ in range(7):
        store.tallies().handle(S, decide=add(1))
        archive.tallies().handle(S, decide=add(1))
    store.others.prune(S, before=5)
    folded = list[TallyEvent]()

    def counting(_: Tally, event: TallyEvent) -> Tally:
        folded.append(event)
        return Tally(event.total if isinstance(event, Added) else 0)

    assert replace(with_archive, decider=replace(DECIDER, evolve=counting)).query(S, total) == 7
    assert folded == [Added(1, step) for step in range(1, 8)]


def test_a_store_that_is_an_earlier_one_again_is_read_anew() -> None:
    """As after a restore from a backup."""
    store = Store()
    tallies = store.tallies(cache=Cache())
    for _ in range(3):
        tallies.handle(S, decide=add(1))
    store.tables = Store().tables
    store.others = replace(store.others, driver=replace(store.others.driver, execute=store.tables.execute))
    store.elsewhere().handle(S, decide=add(40))
    assert tallies.query(S, total) == 40
    store.tables = Store().tables
    assert tallies.query(S, total) == 0


def test_deciders_of_other_rules_or_stores_share_a_cache_without_meeting() -> None:
    cache = Cache()
    store, other = Store(), Store()
    store.tallies(cache=cache).handle(S, decide=add(1))
    other.tallies(cache=cache).handle(S, decide=add(2))

    def twice(state: Tally, event: TallyEvent) -> Tally:
        return Tally(2 * DECIDER.evolve(state, event).total)

    doubled = replace(store.tallies(cache=cache), decider=replace(DECIDER, evolve=twice))
    assert doubled.query(S, total, load=STALE) == 2
    assert store.tallies(cache=cache).query(S, total, load=STALE) == 1
    assert other.tallies(cache=cache).query(S, total, load=STALE) == 2
    assert len(cache) == 3


def test_deciders_made_anew_for_each_request_find_their_states() -> None:
    store, cache = Store(), Cache()
    store.tallies(cache=cache).handle(S, decide=add(1))
    store.requests()
    later = replace(store.tallies(cache=cache), streams=store.streams.within(5.0))
    assert later.query(S, total, load=STALE) == 1
    assert store.requests() == []


def test_streams_have_states_of_their_own() -> None:
    store, cache = Store(), Cache()
    tallies = store.tallies(cache=cache)

    def totals(names: Sequence[str]) -> list[int]:
        return [tallies.query(name, total, load=STALE) for name in names]

    tallies.handle("Tally-1", decide=add(1))
    tallies.handle("Tally-2", decide=add(2))
    assert totals(["Tally-1", "Tally-2"]) == [1, 2]
