from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise
from math import inf

import pytest

from epochal.errors import InvalidInput
from epochal.feed.page_filling import PageBounds
from epochal.feed.results import FeedItem, PartitionTail
from epochal.feed.stream_history import StreamHistory
from epochal.feed.waiting import LONGER, LONGEST_POLL, POLL_SECONDS
from epochal.index.checkpoints import BEGINNING, Checkpoint, epoch_stream
from epochal.index.checkpoints import TIP as TIP_INDEX
from epochal.index.entries import Entry
from epochal.index.epochs import EpochLimits
from epochal.index.feed_walk import PlacedEntry
from epochal.index.tip import read_tip
from epochal.index.tip_writes import put_calf
from epochal.layout.registry import partition_of
from epochal.model.events import Event, Unfold
from epochal.plan.ops import Get, Op, Put, Reply
from epochal.plan.values import Item, item_size
from epochal.testing.feeds import MemoryStore
from tests.core.feed.feeds import Feeds, head, record
from tests.support.examples import seeds

pytestmark = pytest.mark.usefixtures("one_thread")

Where = tuple[str, int]


def indexed(*batches: list[str], **limits: int) -> Feeds:
    """One batch after another; `"A:3"` appends three events to stream A."""
    feeds = Feeds(limits=EpochLimits(**limits))
    feeds.indexer().register()
    for batch in batches:
        index(feeds, *batch)
    return feeds


def index(feeds: Feeds, *appends: str) -> None:
    since = len(feeds.tables.changes("streams"))
    for each in appends:
        stream, _, count = each.partition(":")
        feeds.append(stream, *(f"T{k}" for k in range(int(count or 1))))
    feeds.indexer().index(feeds.records(since))


def many(batches: int, **limits: int) -> Feeds:
    """So many entries of one to four events, of four streams."""
    return indexed(*([f"{'ABCD'[k % 4]}-1:{k % 4 + 1}"] for k in range(batches)), **limits)


def by_one_process(count: int, **limits: int) -> Feeds:
    """So many entries of one event and some 400 bytes."""
    feeds = Feeds(limits=EpochLimits(**limits))
    indexer, rng = feeds.indexer(), random.Random(1)
    for k in range(count):
        indexer.index([record(k, head("S-1", k + 1, rng.randbytes(200).hex()))])
    return feeds


def where(items: tuple[FeedItem, ...]) -> list[Where]:
    return [(item.stream, item.index) for item in items]


def everything(feeds: Feeds, start: Checkpoint = BEGINNING) -> list[Where]:
    return [place for page in feeds.reader().read(0, start=start) for place in where(page.items)]


# --------------------------------------------------------------------------------------------------------------- pages


def test_from_the_beginning_everything_comes_in_the_order_of_each_stream() -> None:
    feeds = many(40, entries=6)
    found = everything(feeds)
    reached = dict.fromkeys("ABCD", 0)
    for stream, position in found:
        assert position == reached[stream[0]]
        reached[stream[0]] += 1
    assert reached == {"A": 10, "B": 20, "C": 30, "D": 40}


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50, 1_000])
def test_every_checkpoint_ever_returned_resumes_exactly(limit: int) -> None:
    feeds = many(30, entries=4)
    whole = everything(feeds)
    taken: list[Where] = []
    for page in feeds.reader().read(0, limit=limit):
        taken += where(page.items)
        assert everything(feeds, page.next) == whole[len(taken) :]
    assert taken == whole


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 9])
def test_a_page_ends_with_the_entry_that_reaches_the_limit(limit: int) -> None:
    feeds = indexed(["A-1:2", "B-1:3"], ["A-1:1"], ["B-1:4"], ["C-1:1"])
    sizes = [5, 1, 4, 1]
    page = feeds.reader().page(0, limit=limit)
    entries = next(n for n in range(1, 5) if sum(sizes[:n]) >= limit)
    assert len(page.items) == sum(sizes[:entries])
    assert page.next == Checkpoint.of(0, entries)
    assert not page.at_tail


def test_a_page_that_ends_with_the_last_entry_is_at_the_tail() -> None:
    feeds = indexed(["A-1:2"], ["A-1:2"])
    page = feeds.reader().page(0, limit=4)
    assert (len(page.items), page.at_tail, page.next) == (4, True, Checkpoint.of(0, 2))


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="limit"):
        Feeds().reader().page(0, limit=0)


def test_from_the_tail_nothing_comes_until_there_is_something() -> None:
    feeds = many(9, entries=4)
    ((partition, tail),) = [(found.partition, found.tail) for found in feeds.reader().partitions()]
    page = feeds.reader().page(partition, start=tail)
    assert (page.items, page.next, page.at_tail) == ((), tail, True)
    index(feeds, "E-1:2")
    assert where(feeds.reader().page(partition, start=page.next).items) == [("E-1", 0), ("E-1", 1)]


def test_a_page_goes_over_from_one_epoch_to_the_next() -> None:
    feeds = indexed(*([f"A-{k}"] for k in range(6)), entries=2)
    page = feeds.reader().page(0)
    assert where(page.items) == [(f"A-{k}", 0) for k in range(6)]
    assert (page.next, page.at_tail) == (Checkpoint.of(3, 0), True)


def test_a_reader_at_the_end_of_a_closed_epoch_waits_in_the_next_and_misses_nothing() -> None:
    feeds = indexed(["A-1"], ["A-1"], entries=2)
    page = feeds.reader().page(0)
    assert (page.next, page.at_tail) == (Checkpoint.of(1, 0), True)
    index(feeds, "A-1")
    assert where(feeds.reader().page(0, start=page.next).items) == [("A-1", 2)]


def test_a_checkpoint_taken_before_the_epoch_closed_goes_on_in_the_next() -> None:
    feeds = indexed(["A-1"], entries=2)
    before = feeds.reader().page(0).next
    index(feeds, "A-1")
    index(feeds, "A-1")
    assert everything(feeds, before) == [("A-1", 1), ("A-1", 2)]


def test_a_page_moves_on_to_the_next_epoch_though_nothing_has_come_there() -> None:
    feeds = indexed(["A-1"], ["A-1"], entries=2)
    page = feeds.reader().page(0, start=Checkpoint.of(0, 2))
    assert (page.items, page.next, page.at_tail) == ((), Checkpoint.of(1, 0), True)


def test_a_partition_that_does_not_exist_is_empty_and_at_its_tail() -> None:
    page = indexed(["A-1"]).reader().page(7)
    assert (page.items, page.next, page.at_tail) == ((), BEGINNING, True)


def test_an_index_without_an_indexer_has_no_partitions_and_one_without_events_has_empty_ones() -> None:
    feeds = Feeds(partitions=2)
    assert feeds.reader().partitions() == ()
    feeds.indexer().register()
    assert feeds.reader().partitions() == tuple(
        PartitionTail(partition=number, tail=BEGINNING) for number in (0, 1)
    )


def test_partitions_together_hold_every_event_once() -> None:
    feeds = Feeds(partitions=3, limits=EpochLimits(entries=3))
    feeds.indexer().register()
    for k in range(60):
        index(feeds, f"S-{k % 20}")
    tails = feeds.reader().partitions()
    assert [each.partition for each in tails] == [0, 1, 2]
    found = []
    for each in tails:
        pages = list(feeds.reader().read(each.partition))
        assert pages[-1].next == each.tail
        mine = [place for page in pages for place in where(page.items)]
        assert {partition_of(stream, 3) for stream, _ in mine} == {each.partition}
        found += mine
    assert sorted(found) == sorted((f"S-{k}", index) for k in range(20) for index in range(3))


@pytest.mark.slow
def test_reading_on_takes_what_was_read_already_and_pays_for_nothing_twice() -> None:
    feeds = by_one_process(900, entries=450)

    def price(limit: int) -> float:
        before = feeds.meter.units.read
        assert sum(len(page.items) for page in feeds.reader().read(0, limit=limit)) == 900
        return feeds.meter.units.read - before

    assert price(1) == price(7) == price(10_000)


@pytest.mark.slow
def test_of_a_page_alone_little_is_read_beyond_its_limit() -> None:
    feeds = by_one_process(2_000)
    size = sum(len(str(item)) for item in feeds.tables.items("index"))
    before = feeds.meter.units.read
    assert len(feeds.reader().page(0, limit=1).items) == 1
    assert feeds.meter.units.read - before <= size / 4_096 / 5


def test_countthat_a_page_has_no_room_for_are_decoded_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    feeds, decoded = many(60), Counter[str]()
    entry = PlacedEntry.entry

    def count(self: PlacedEntry) -> Entry:
        decoded[str(self.after)] += 1
        return entry(self)

    monkeypatch.setattr(PlacedEntry, "entry", count)
    pages = list(feeds.reader().read(0, limit=5))
    assert len(pages) > 20
    assert set(decoded.values()) == {1}
    assert len(decoded) == 60


# ------------------------------------------------------------------------------------------------------------- filters


def test_a_category_is_what_precedes_the_first_hyphen() -> None:
    feeds = indexed(["Order-1", "OrderLine-1", "Order-2-x"], ["Order"])
    found = feeds.reader().page(0, categories=["Order"])
    assert where(found.items) == [("Order-1", 0), ("Order-2-x", 0), ("Order", 0)]


def test_several_categories_and_a_predicate_apply_together() -> None:
    feeds = many(20)
    page = feeds.reader().page(0, categories={"A", "B"}, predicate=lambda span: span.index % 2 == 0)
    whole = [(stream, position) for stream, position in everything(feeds) if stream in ("A-1", "B-1")]
    assert where(page.items) == [place for place in whole if place[0] == "B-1" or place[1] % 2 == 0]


def test_a_filter_moves_the_checkpoint_past_what_it_drops() -> None:
    feeds = many(12, entries=5)
    page = feeds.reader().page(0, categories=["None"])
    assert (page.items, page.at_tail) == ((), True)
    assert page.next == feeds.reader().page(0).next
    assert everything(feeds, page.next) == []


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_a_filtered_page_is_filled_with_what_is_wanted_and_resumes_exactly(limit: int) -> None:
    feeds = many(40, entries=7)
    wanted = [place for place in everything(feeds) if place[0] == "B-1"]
    taken = []
    for page in feeds.reader().read(0, limit=limit, categories=["B"]):
        taken += where(page.items)
        assert page.at_tail or len(page.items) >= limit
    assert taken == wanted


def test_a_page_that_takes_too_long_ends_where_it_has_got_to() -> None:
    feeds = many(60, entries=5)

    def slowly(_: object) -> None:
        feeds.clock.now += 1.0

    feeds.fault = slowly
    page = feeds.reader().page(0, categories=["None"], seconds=3.0)
    assert page.items == ()
    assert not page.at_tail
    assert BEGINNING < page.next < Checkpoint.of(4, 0)
    feeds.fault = lambda _: None
    assert everything(feeds, page.next) == everything(feeds)[-len(everything(feeds, page.next)) :]


# -------------------------------------------------------------------------------------------------------------- waiting


def test_a_page_at_the_tail_waits_as_long_as_asked_and_ends_empty() -> None:
    feeds = many(3)
    tail = feeds.reader().page(0).next
    page = feeds.reader().page(0, start=tail, wait=5.0)
    assert (page.items, page.next, page.at_tail) == ((), tail, True)
    assert feeds.clock.now == pytest.approx(5.0)


def test_a_page_ends_its_waiting_as_soon_as_something_comes() -> None:
    feeds = many(3)
    tail = feeds.reader().page(0).next

    def something() -> None:
        if feeds.clock.sleeps == 3:
            index(feeds, "E-1")

    feeds.clock.at_sleep = something
    page = feeds.reader().page(0, start=tail, wait=20.0)
    assert where(page.items) == [("E-1", 0)]
    assert feeds.clock.now == pytest.approx(POLL_SECONDS * (1 + LONGER + LONGER**2))


def test_what_a_filter_drops_does_not_end_the_waiting() -> None:
    feeds = many(3)
    tail = feeds.reader().page(0).next

    def something() -> None:
        index(feeds, "E-1" if feeds.clock.sleeps < 4 else "F-1")

    feeds.clock.at_sleep = something
    page = feeds.reader().page(0, start=tail, wait=20.0, categories=["F"])
    assert where(page.items) == [("F-1", 0)]
    assert feeds.clock.sleeps == 4


def test_a_page_with_items_does_not_wait() -> None:
    feeds = many(3)
    assert feeds.reader().page(0, wait=20.0).items
    assert feeds.clock.sleeps == 0


def test_waiting_crosses_into_an_epoch_that_begins_meanwhile() -> None:
    feeds = indexed(["A-1"], ["A-1"], entries=2)
    tail = feeds.reader().page(0).next
    feeds.clock.at_sleep = lambda: index(feeds, "A-1")
    assert where(feeds.reader().page(0, start=tail, wait=20.0).items) == [("A-1", 2)]


def test_who_follows_without_waiting_looks_for_every_page() -> None:
    feeds = many(1)
    pages = feeds.reader().follow(0, start=feeds.reader().page(0).next, wait=0.0)
    assert not next(pages).items
    index(feeds, "E-1")
    assert where(next(pages).items) == [("E-1", 0)]


def large(feeds: Feeds, kilobytes: int, seed: int = 1) -> None:
    """Index an append that leaves the newest epoch's Tip with so many KB at least."""
    types = [random.Random(seed * 10_000 + k).randbytes(250).hex() for k in range(4 * kilobytes)]
    feeds.indexer().index([record(seed, head(f"L-{seed}", len(types), *types))])


TIP = epoch_stream(0, 0)


def foreign(item: Item) -> Item:
    """A Tip as another program writes it, without ids of appends."""
    events = [
        {"M": {name: each for name, each in event["M"].items() if name != "k"}} for event in item["e"]["L"]
    ]
    return {**item, "e": {"L": events}}


def units_a_second(feeds: Feeds, seconds: float = 3_600.0) -> float:
    """What a reader that waits takes."""
    reader = feeds.reader()
    tail, before = reader.page(0).next, reader.driver.meter.units.read
    assert reader.page(0, start=tail, wait=seconds, seconds=seconds).items == ()
    return (reader.driver.meter.units.read - before) / seconds


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [0, 5, 30, 250])
def test_a_thousand_readers_that_wait_take_300_read_units_a_second_at_most_whatever_the_tip_has(
    kilobytes: int,
) -> None:
    feeds = many(3)
    if kilobytes:
        large(feeds, kilobytes)
        assert item_size(feeds.tip(TIP) or {}) > kilobytes * 1_000
    assert 1_000 * units_a_second(feeds) <= 300


def test_of_a_large_tip_that_another_program_wrote_looks_are_more_seldom_and_see_what_is_added_to_it() -> (
    None
):
    feeds = many(1)
    large(feeds, 30)
    feeds.tables.execute(Put(table="index", item=foreign(feeds.tip(TIP) or {})))
    assert 1_000 * units_a_second(feeds) <= 300
    came = list[float]()

    def something() -> None:
        if feeds.clock.now > 5_000 and not came:
            came.append(feeds.clock.now)
            tip = feeds.tip(TIP) or {}
            put = {"e": tip["e"]["L"][:1], "c": tip["c"]["L"][:1]}
            more: Item = {name: {"L": [*tip[name]["L"], *put[name]]} for name in ("e", "c")}
            following = {"N": str(int(tip["n"]["N"]) + 1)}
            feeds.tables.execute(Put(table="index", item={**tip, **more, "n": following}))

    feeds.clock.at_sleep = something
    page = feeds.reader().page(0, start=feeds.reader().page(0).next, wait=10_000.0)
    assert where(page.items)[0] == ("L-1", 0)
    assert feeds.clock.now <= came[0] + 9 * LONGEST_POLL


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [0, 4, 30])
@pytest.mark.parametrize("first", [4, 5, 30, 250])
def test_whatever_comes_behind_a_large_tip_is_seen_at_the_next_look(first: int, kilobytes: int) -> None:
    feeds = many(3)
    large(feeds, first)
    came = list[float]()

    def something() -> None:
        if feeds.clock.now > 30 and not came:
            came.append(feeds.clock.now)
            large(feeds, kilobytes, 2) if kilobytes else index(feeds, "E-1")

    feeds.clock.at_sleep = something
    page = feeds.reader().page(0, start=feeds.reader().page(0).next, wait=100.0)
    assert page.items
    assert feeds.clock.now <= came[0] + LONGEST_POLL


def test_a_calf_whose_writer_died_before_the_tip_is_no_entry_and_costs_readers_no_more() -> None:
    feeds = many(1)
    large(feeds, 30)
    tip = read_tip(feeds.tip(TIP) or {})
    feeds.tables.execute(put_calf("index", TIP, tip.span))
    assert 1_000 * units_a_second(feeds) <= 300
    feeds.clock.at_sleep = lambda: feeds.clock.sleeps % 7 or index(feeds, "E-1")
    page = feeds.reader().page(0, start=feeds.reader().page(0).next, wait=100.0)
    assert where(page.items)[0] == ("E-1", 0)


def test_a_tip_that_lags_behind_its_calf_hides_nothing() -> None:
    feeds = many(1)
    large(feeds, 30)
    before, came, perform = feeds.tables.copy(), list[float](), feeds.tables.execute

    def something() -> None:
        if feeds.clock.now > 30 and not came:
            came.append(feeds.clock.now)
            index(feeds, "E-1")

    def lagging(op: Op) -> Reply:
        late = isinstance(op, Get) and op.key["i"]["N"] == str(TIP_INDEX) and not op.consistent
        return before.execute(op) if late else perform(op)

    feeds.clock.at_sleep = something
    reader = feeds.reader()
    reader = replace(reader, driver=replace(reader.driver, execute=lagging))
    assert where(reader.page(0, start=reader.page(0).next, wait=100.0).items) == [("E-1", 0)]
    assert feeds.clock.now <= came[0] + LONGEST_POLL


def test_a_large_tip_itself_is_read_now_and_then_whatever_its_calf_tells() -> None:
    feeds = many(1)
    large(feeds, 30)
    tail = feeds.reader().page(0).next
    feeds.ops.clear()
    times = [feeds.clock.now]
    feeds.clock.at_sleep = lambda: times.append(feeds.clock.now)
    feeds.reader().page(0, start=tail, wait=1_200.0)
    assert max(later - before for before, later in pairwise(times)) <= LONGEST_POLL + 0.001
    tips = [op for op in feeds.ops if isinstance(op, Get) and op.key["i"]["N"] == str(TIP_INDEX)]
    assert 4 <= len(tips) <= 7


def test_an_entry_makes_looks_frequent_again() -> None:
    feeds = many(3)
    came = list[float]()

    def something() -> None:
        if feeds.clock.now > 30 and not came:
            came.append(feeds.clock.now)
            index(feeds, "E-1")

    feeds.clock.at_sleep = something
    pages = feeds.reader().follow(0, wait=60.0, start=feeds.reader().page(0).next)
    assert where(next(pages).items) == [("E-1", 0)]
    assert feeds.clock.now <= came[0] + LONGEST_POLL
    feeds.clock.at_sleep = lambda: index(feeds, "E-1")
    begun = feeds.clock.now
    next(pages)
    assert feeds.clock.now == pytest.approx(begun + POLL_SECONDS)


@pytest.mark.slow
@seeds(20, 6)
def test_looks_that_lag_lose_nothing_and_give_nothing_twice(seed: int) -> None:
    feeds, luck = indexed(["A-1"], entries=3), random.Random(seed)
    before = [feeds.tables.copy()]
    perform, looks = feeds.tables.execute, list[bool]()

    def lagging(op: Op) -> Reply:
        if isinstance(op, Get):
            looks.append(op.consistent)
            return perform(op) if op.consistent else luck.choice(before).execute(op)
        return perform(op)

    def something() -> None:
        before.append(feeds.tables.copy())
        if luck.random() < 0.6 and len(before) < 40:
            if luck.random() < 0.3:
                large(feeds, luck.choice((4, 8)), len(before))
            else:
                index(feeds, *[luck.choice(("A-1", "B-1"))] * luck.randrange(1, 3))

    feeds.clock.at_sleep = something
    reader = feeds.reader()
    reader = replace(reader, driver=replace(reader.driver, execute=lagging))
    met = list[tuple[str, int]]()
    for page in reader.follow(0, wait=30.0):
        met += where(page.items)
        if not page.items:
            break
    assert met == where(feeds.reader().page(0, limit=10_000).items)
    assert len(met) > 10
    assert looks.count(False) > 5
    assert looks[0], "what a reader is given is not known to exist"
    assert looks[-1], "an empty page says where the tail is"


def test_following_gives_what_is_there_then_what_comes() -> None:
    feeds = indexed(["A-1"], ["A-1"])
    feeds.clock.at_sleep = lambda: index(feeds, "B-1") if feeds.clock.sleeps == 2 else None
    pages = list(islice(feeds.reader().follow(0, wait=1.0), 3))
    assert [where(page.items) for page in pages] == [[("A-1", 0), ("A-1", 1)], [("B-1", 0)], []]
    assert pages[-1].at_tail


# ---------------------------------------------------------------------------------------------------------------- data


def test_events_come_with_their_data_from_the_store() -> None:
    feeds = indexed(["A-1:2", "B-1"], ["A-1"])
    page = feeds.reader(feeds.streams).page(0, data=True)
    assert [(item.event and item.event.data) for item in page.items] == [b"T0", b"T1", b"T0", b"T0"]
    for item in page.items:
        assert item.event is not None
        assert (item.event.stream, item.event.index, item.event.type) == (item.stream, item.index, item.type)
        assert not item.omitted


def test_events_pruned_since_come_without_data_and_are_not_called_omitted() -> None:
    feeds = indexed(["A-1:3", "B-1"])
    feeds.streams.prune("A-1", 2)
    page = feeds.reader(feeds.streams).page(0, data=True)
    assert [(item.event is None, item.omitted) for item in page.items] == [
        (True, False),
        (True, False),
        (False, False),
        (False, False),
    ]


def test_events_of_a_deleted_stream_come_without_data() -> None:
    feeds = indexed(["A-1:3"])
    feeds.streams.delete("A-1")
    items = feeds.reader(feeds.streams).page(0, data=True).items
    assert [(item.index, item.event) for item in items] == [(0, None), (1, None), (2, None)]


@pytest.mark.slow
def test_events_are_found_in_calves_too() -> None:
    feeds = indexed(["A-1:1"])
    for _ in range(400):
        feeds.append("A-1", "T0")
    since = len(feeds.tables.changes("streams"))
    assert sum(item["p"]["S"] == "A-1" for item in feeds.tables.items("streams")) > 1
    feeds.append("A-1", "T0")
    feeds.indexer().index(feeds.records(since))
    items = [item for page in feeds.reader(feeds.streams).read(0, data=True, limit=50) for item in page.items]
    assert [item.event and item.event.index for item in items] == list(range(402))


def test_asking_for_data_without_a_store_is_refused_before_anything_is_read() -> None:
    feeds = indexed(["A-1"])
    start = len(feeds.ops)
    with pytest.raises(InvalidInput, match="data"):
        feeds.reader().page(0, data=True)
    assert feeds.ops[start:] == []


@pytest.mark.parametrize("limit", [1, 3])
def test_a_page_with_a_limit_counts_removals_also_where_it_ends_by_its_room(limit: int) -> None:
    feed = MemoryStore()
    names = [f"Cart-{number}" for number in range(8)]
    for name in names:
        feed.streams.append(name, [Event(type="Opened"), Event(type="Paid")])
    feed.index()
    tails = {each.partition: each.tail for each in feed.feed.partitions()}
    for name in names:
        feed.streams.prune(name, 1)
        feed.index()
    room = PageBounds(max_bytes=1_000_000, largest=1_000, size_of=lambda _: 1, until=inf)
    counts = list[tuple[int, int]]()
    for partition, tail in tails.items():
        whole, page = (
            feed.feed.page_within(room, partition, start=tail, removals=True, limit=most)
            for most in (1_000, limit)
        )
        assert all(item.removal is not None for item in whole.items)
        counts.append((len(whole.items), len(page.items)))
    assert sum(whole for whole, _ in counts) == len(names)
    assert all(items == min(limit, whole) for whole, items in counts)


@pytest.mark.parametrize("limit", [1, 1_000])
def test_backward_pages_have_events_and_removals_in_the_reverse_of_their_order(limit: int) -> None:
    feed = MemoryStore()
    for number in range(3):
        feed.streams.append("Cart-1", [Event(type=f"Opened{number}"), Event(type=f"Paid{number}")])
        feed.streams.prune("Cart-1", 2 * number + 1)
    feed.index()  # all of it in one entry
    (partition,) = (each.partition for each in feed.feed.partitions() if each.tail)
    forward = feed.feed.page(partition, removals=True).items
    backward, at = list[FeedItem](), None
    while at is None or int(at):
        page = feed.feed.page(partition, start=at, direction="backward", removals=True, limit=limit)
        backward += page.items
        at = page.next
    assert len(forward) == 9
    assert [(item.type, item.index) for item in reversed(backward)] == [
        (item.type, item.index) for item in forward
    ]


@pytest.mark.parametrize("unfolds", [0, 1])
@pytest.mark.parametrize("layout", ["streams", "tips"])
def test_a_stream_that_was_pruned_of_all_events_is_emptied_only_where_it_has_no_unfolds_either(
    layout: str, unfolds: int
) -> None:
    feed = MemoryStore()
    store = getattr(feed, layout)
    events = [Event(type="Opened"), Event(type="Paid")]
    store.append("Cart-1", events, unfolds=[Unfold(type="Total", data=b"2")] * unfolds)
    store.prune("Cart-1", 2)
    removal = StreamHistory(store).removal_of("Cart-1")
    assert removal is not None
    assert (removal.kind, removal.end) == ("pruned" if unfolds else "emptied", 2)
