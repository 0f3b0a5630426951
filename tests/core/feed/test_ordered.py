"""Readers of several partitions in one order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import pytest

from epochal.errors import InvalidInput
from epochal.feed import ordered
from epochal.feed.indexer import Indexer
from epochal.feed.ordered import (
    LONGEST,
    OrderedCheckpoint,
    OrderedPage,
    OrderedReader,
    Released,
    begin_partition,
)
from epochal.feed.page_filling import PageBounds
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem
from epochal.feed.stream_records import Record
from epochal.feed.whole import WholeFeed
from epochal.index.checkpoints import Checkpoint
from epochal.layout.registry import partition_of
from epochal.model.events import Event
from epochal.model.moments import PER_SECOND
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_deployment, memory_tables

pytestmark = pytest.mark.usefixtures("one_thread")

BEGIN = 1_356_998_400


@dataclass
class World:
    """Streams in two partitions, and every clock.

    Attributes:
        now: seconds since the beginning.
    """

    now: float = 0.0
    tables: MemoryTables = field(default_factory=memory_tables)

    def __post_init__(self) -> None:
        self.place = memory_deployment(self.tables, pages_partitions=2)
        self.streams = replace(self.place.streams, now=self.clock)
        self.indexer: Indexer = replace(self.place.indexer, now=self.clock)
        self.indexer.register()
        self.told = 0

    def clock(self) -> int:
        return int((BEGIN + self.now) * 1e9)

    def append(self, stream: str, at: float, **more: Any) -> None:
        """Append an event at a time by its writer's clock."""
        store = replace(self.streams, now=lambda: int((BEGIN + at) * 1e9))
        store.append(stream, [Event(type="Happened", **more)])

    def index(self, at: float) -> None:
        """Index what was appended since the last time."""
        self.now = at
        changes = self.tables.changes("streams")
        self.indexer.index(
            Record(table="streams", sequence_number=str(number), image=changes[number])
            for number in range(self.told, len(changes))
        )
        self.told = len(changes)

    def pages(self, at: float, start: OrderedCheckpoint | None = None, **options: Any) -> list[OrderedPage]:
        self.now = at
        begin = OrderedCheckpoint() if start is None else start
        given = {"within": 5.0, "now": self.clock, "partitions": (30_000, 30_001), **options}
        return list(self.place.feed.ordered(start=begin, **given))

    def read(self, at: float, start: OrderedCheckpoint | None = None, **options: Any) -> list[str]:
        return [place for page in self.pages(at, start, **options) for place in places(page.items)]


def places(items: tuple[FeedItem, ...]) -> list[str]:
    return [f"{item.stream}@{item.index}" for item in items]


def partition(stream: str) -> int:
    return partition_of(stream, 2, 30_000)


A, B, C = "A-1", "B-1", "B-2"
"""The second is in one partition, the others are in the other."""


def test_streams_of_these_tests_are_in_two_partitions() -> None:
    assert [partition(stream) for stream in (A, B, C)] == [30_001, 30_000, 30_001]


def test_partitions_come_in_one_order_which_is_that_of_their_writes() -> None:
    world = World()
    for at, stream in enumerate([B, A, B, C, A]):
        world.append(stream, at)
    world.index(4.5)
    assert world.read(20) == ["B-1@0", "A-1@0", "B-1@1", "B-2@0", "A-1@1"]


def test_what_was_written_before_and_indexed_later_comes_first_within_the_window() -> None:
    world = World()
    world.append(A, 2)
    world.index(2.1)
    world.append(B, 1)
    world.index(6)
    assert world.read(20) == ["B-1@0", "A-1@0"]
    assert world.read(20, within=1.0) == ["A-1@0", "B-1@0"]


def test_an_event_is_held_back_until_the_window_has_passed_since_it_was_written() -> None:
    world = World()
    world.append(A, 1)
    world.index(1.5)
    (page,) = world.pages(5.9)
    assert (page.items, page.at_tail) == ((), True)
    assert world.read(6.0, page.next) == ["A-1@0"]


def test_a_reader_that_follows_waits_for_what_is_held_back() -> None:
    world = World()
    world.append(A, 1)
    world.index(1.5)

    def sleep(seconds: float) -> None:
        world.now += seconds

    driver = replace(world.place.driver, sleep=sleep, clock=lambda: world.now)
    feed: FeedReader = world.place.feed.on(driver)
    pages = feed.ordered(within=5.0, follow=True, wait=20.0, now=world.clock)
    assert places(next(pages).items) == ["A-1@0"]
    assert 6.0 <= world.now <= 6.5
    assert next(pages).items == ()
    assert world.now >= 26


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_reader_that_stops_within_a_window_neither_skips_nor_repeats(limit: int) -> None:
    world = World()
    for at, stream in enumerate([A, B, A, C, A, B]):
        world.append(stream, at)
    world.index(5.5)
    world.append(B, 5.6)
    world.append(A, 0.7)
    world.index(5.7)
    whole = world.read(20)
    found: list[str] = []
    start = OrderedCheckpoint()
    for at in range(5, 25):
        world.now = at
        page = next(world.place.feed.ordered(within=5.0, start=start, limit=limit, now=world.clock))
        assert len(page.items) <= limit
        found += places(page.items)
        start = OrderedCheckpoint.parse(str(page.next))
    assert found == whole
    assert sorted(whole) == sorted({*whole})
    assert len(whole) == 8


def test_a_reader_whose_time_is_over_at_once_keeps_what_its_checkpoint_says() -> None:
    world = World()
    world.append(A, 1)
    world.index(2)
    start = OrderedCheckpoint({30_000: Released(ahead={A: 1}), 30_001: Released()})
    reader = reader_of(world, start)
    page = reader.page(10, -1.0, 0.0)
    assert (page.items, page.next) == ((), start)


def reader_of(world: World, start: OrderedCheckpoint) -> OrderedReader:
    feed = world.place.feed
    every: Callable[[Any], bool] = lambda _: True  # noqa: E731
    return OrderedReader(
        driver=feed.driver,
        table=feed.table,
        window=5 * PER_SECOND,
        partitions=[
            begin_partition(number, feed.hydrate(number), every, start) for number in (30_000, 30_001)
        ],
        now=world.clock,
    )


def test_a_cause_comes_before_its_effect_whatever_clocks_say() -> None:
    world = World()
    world.append(B, 3)
    world.append(A, 1, causation_id="B-1@0")
    world.append(C, 2)
    world.index(4)
    assert world.read(20) == ["B-1@0", "A-1@0", "B-2@0"]


@pytest.mark.parametrize("effects", [1, 2])
def test_an_effect_waits_with_its_cause_for_the_cause_of_that(effects: int) -> None:
    world = World()
    world.append(C, -10, causation_id="A-1@0")
    world.index(0)
    for number in range(effects):
        world.append(f"B-{number + 5}", -8, causation_id=f"B-{number + 4}@0" if number else "B-2@0")
    world.index(1)
    assert world.read(4.9) == []
    world.append(A, 2)
    world.index(3)
    assert world.read(20) == ["A-1@0", "B-2@0", "B-5@0", "B-6@0"][: 2 + effects]


def test_an_effect_that_is_indexed_first_waits_with_its_cause_for_the_cause_of_that() -> None:
    world = World()
    world.append("B-6", -7, causation_id="B-5@0")
    world.append("B-5", -8, causation_id="B-2@0")
    world.append("B-6", -7)
    world.index(1)
    world.append(C, -10, causation_id="A-1@0")
    world.index(4)
    assert world.read(8) == []
    world.append(A, 2)
    world.index(8.5)
    assert world.read(20) == ["A-1@0", "B-2@0", "B-5@0", "B-6@0", "B-6@1"]


def test_what_follows_an_effect_in_its_entry_comes_after_it() -> None:
    world = World()
    world.append(C, -10, causation_id="A-1@0")
    world.index(0)
    world.append("B-5", -8, causation_id="B-2@0")
    world.append("B-7", -7)
    world.index(1)
    world.append(A, -9)
    world.index(3)
    found = world.read(20)
    assert found.index("B-5@0") < found.index("B-7@0")


@pytest.mark.parametrize("limit", [1, 7])
def test_a_page_has_no_more_than_its_limit_whatever_its_events_come_after(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    for _ in range(10):
        world.append(A, 3)
    world.append(B, 1, causation_id="A-1@9")
    world.index(3)
    for at, most_held in ((20, ordered.MOST_HELD), (3, 10)):
        monkeypatch.setattr(ordered, "MOST_HELD", most_held)
        (first, *_) = world.pages(at, limit=limit)
        assert len(first.items) == limit
        assert first.early == (limit if at == 3 else 0)
        found = places(first.items)
        for page in world.pages(20, OrderedCheckpoint.parse(str(first.next)), limit=limit):
            assert len(page.items) <= limit
            found += places(page.items)
        assert found == [*(f"A-1@{index}" for index in range(10)), "B-1@0"]


def test_an_effect_waits_for_a_cause_that_is_indexed_after_it() -> None:
    world = World()
    world.append(B, -10, causation_id="A-1@0")
    world.index(2)
    assert world.read(6.5) == []
    world.append(A, 1)
    world.index(6.9)
    assert world.read(12) == ["A-1@0", "B-1@0"]


def test_an_effect_whose_cause_was_released_does_not_wait_for_it() -> None:
    world = World()
    world.append(A, 1)
    world.index(1.1)
    pages = world.place.feed.ordered(within=5.0, follow=True, wait=0, now=world.clock)
    world.now = 7
    assert places(next(pages).items) == ["A-1@0"]
    world.append(B, 7, causation_id="A-1@0")
    world.index(11)
    world.now = 12
    assert places(next(pages).items) == ["B-1@0"]


def test_what_precedes_a_cause_in_its_stream_comes_before_the_effect_too() -> None:
    world = World()
    world.append(A, 6)
    world.append(A, 7)
    world.append(B, 1, causation_id="A-1@1")
    world.index(8)
    assert world.read(20) == ["A-1@0", "A-1@1", "B-1@0"]


def test_events_that_name_one_another_as_their_cause_keep_the_order_of_their_streams() -> None:
    world = World()
    world.append(A, 1, causation_id="B-1@1")
    world.append(B, 1.5)
    world.append(A, 2)
    world.append(B, 2.5, causation_id="A-1@1")
    world.index(4)
    found = world.read(20)
    assert sorted(found) == ["A-1@0", "A-1@1", "B-1@0", "B-1@1"]
    assert found.index("A-1@0") < found.index("A-1@1")
    assert found.index("B-1@0") < found.index("B-1@1")


def test_an_event_is_not_placed_after_its_entry_whatever_its_writers_clock_says() -> None:
    world = World()
    world.append(A, 5_000)
    world.index(2)
    world.append(B, 3)
    world.index(3.5)
    assert world.read(20) == ["A-1@0", "B-1@0"]


def test_an_entry_of_an_indexer_whose_clock_is_ahead_releases_nothing_too_soon() -> None:
    world = World()
    world.append(A, 1)
    world.index(4_000)
    world.now = 2.0
    (page,) = world.pages(2.0, partitions=[30_000])
    assert page.items == ()


def test_what_is_gone_comes_at_the_time_of_its_entry() -> None:
    world = World()
    world.append(A, 1)
    world.append(A, 2)
    world.append(B, 3)
    world.index(4)
    world.streams.prune(A, before=1)
    found = [item for page in world.pages(20) for item in page.items]
    assert [(item.stream, item.gone) for item in found] == [(B, None), (A, "pruned"), (A, None)]


def test_a_window_without_room_releases_the_oldest_early_and_says_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ordered, "MOST_HELD", 2)
    world = World()
    for at in range(5):
        world.append(A, at)
    world.index(5)
    (page,) = world.pages(5)
    assert (places(page.items), page.early) == (["A-1@0", "A-1@1", "A-1@2"], 2)
    assert world.read(20, page.next) == ["A-1@3", "A-1@4"]


def test_bodies_without_room_are_released_early_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "MOST_BYTES", 150)
    world = World()
    for at in range(3):
        world.append(A, at, data=bytes(100))
    world.index(5)
    (page,) = world.pages(5)
    assert (places(page.items), page.early) == (["A-1@0", "A-1@1"], 1)


def test_a_reader_keeps_nothing_of_what_was_released_but_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "RECENT", 3)
    world = World()
    for at in range(20):
        world.append(f"{'AB'[at % 2]}-{at}", at)
        world.index(at + 0.1)
    reader = reader_of(world, OrderedCheckpoint())
    world.now = 60
    assert len(reader.page(100, 10.0, 0.0).items) == 20
    assert (reader._heap, reader._named, reader._held, reader._bytes) == ([], {}, 0, 0)  # noqa: SLF001
    assert len(reader._recent) == 3  # noqa: SLF001
    for each in reader.partitions:
        assert (each.streams, each.left, list(each.entries)) == ({}, reader.partitions[0].left, [])


def test_a_cause_that_came_before_its_time_is_kept_without_its_bodies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ordered, "MOST_HELD", 1)
    world = World()
    world.append(B, 8, causation_id="A-1@0")
    world.index(8.5)
    world.append(A, 9, data=bytes(100))
    world.index(10)
    reader = reader_of(world, OrderedCheckpoint())
    world.now = 11
    page = reader.page(100, 10.0, 0.0)
    assert [item.event is not None for item in page.items] == [True, True]
    assert [(held.released, held.item.event) for *_, held in reader._heap] == [(True, None)]  # noqa: SLF001


def test_the_checkpoint_moves_past_what_is_not_wanted() -> None:
    world = World()
    for at, stream in enumerate([A, B, A, B]):
        world.append(stream, at)
        world.index(at + 0.1)
    (page,) = world.pages(20, categories=["A"])
    assert places(page.items) == ["A-1@0", "A-1@1"]
    assert str(page.next) == '{"30000":["0@2"],"30001":["0@2"]}'


def test_a_reader_begins_at_a_place_that_any_reader_begins_at() -> None:
    world = World()
    world.append(A, 1)
    world.append(B, 1)
    world.index(2)
    now = 20.0
    (page,) = world.place.feed.ordered(within=5.0, start="tail", now=lambda: int((BEGIN + now) * 1e9))
    assert page.items == ()
    world.append(A, 3)
    world.append(B, 4)
    world.index(5)
    assert world.read(20, page.next) == ["A-1@1", "B-1@1"]


def test_a_checkpoint_is_text_and_back() -> None:
    checkpoint = OrderedCheckpoint(
        {30_000: Released(checkpoint=Checkpoint.of(7, 120), ahead={"Straße-1": 3}), 30_001: Released()}
    )
    assert str(checkpoint) == '{"30000":["7@120",{"Straße-1":3}],"30001":["0@0"]}'
    assert OrderedCheckpoint.parse(str(checkpoint)) == checkpoint
    assert OrderedCheckpoint.parse("{}") == OrderedCheckpoint()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7@120",
        '{"a":["0@0"]}',
        '{"1":[]}',
        '{"1":["x"]}',
        '{"1":["0@0",{"A":0}]}',
        '{"1":["0@0",{"A":true}]}',
        '{"1":["0@0",[1]]}',
    ],
)
def test_another_text_is_no_checkpoint(text: str) -> None:
    with pytest.raises(InvalidInput, match="from"):
        OrderedCheckpoint.parse(text)


@pytest.mark.parametrize("within", [-1.0, LONGEST + 1])
def test_a_window_has_bounds(within: float) -> None:
    with pytest.raises(InvalidInput, match="within"):
        World().pages(1, within=within)


def test_a_reader_in_order_needs_the_stores() -> None:
    world = World()
    bare = FeedReader(driver=world.place.driver, table="index")
    with pytest.raises(InvalidInput, match="data"):
        next(bare.ordered(within=5.0))


def plainly(world: World) -> list[str]:
    return [place for page in world.place.feed.read(30_001) for place in places(page.items)]


def test_what_a_lost_record_told_is_indexed_at_its_time_among_what_others_tell() -> None:
    world = World()
    for at, stream in enumerate([A, C, A, C, A]):
        world.append(stream, at)
    told = world.tables.changes("streams")
    world.indexer.index(
        Record(table="streams", sequence_number=str(number), image=told[number]) for number in (1, 3, 4)
    )
    assert plainly(world) == ["A-1@0", "B-2@0", "A-1@1", "B-2@1", "A-1@2"]


def count_of(names: list[str], stream: str) -> int:
    return sum(name.startswith(f"{stream}@") for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_pages_that_end_where_their_room_does_have_all_once_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    world.append("S-0", at=0)
    for moment in range(40):
        world.append(
            f"S-{rng.randrange(6)}",
            at=moment + rng.random() * 4,
            data=bytes(rng.randrange(1, 60)),
            causation_id="S-0@0" if moment and rng.random() < 0.3 else None,
        )
        if rng.random() < 0.4:
            world.index(moment)
    world.index(40)
    whole = world.read(90)

    def size(item: FeedItem) -> int:
        assert item.event is not None
        return len(item.event.content)

    found, start = list[FeedItem](), OrderedCheckpoint()
    at_tail = False
    while not at_tail:
        room = PageBounds(max_bytes=100, largest=50, size_of=size, until=inf)
        page = WholeFeed(world.place.feed).ordered_within(
            room, within=5.0, start=start, partitions=(30_000, 30_001)
        )
        shown = [size(item) for item in page.items if not item.omitted]
        assert len(shown) == 1 or sum(shown) <= 100
        found += page.items
        start, at_tail = OrderedCheckpoint.parse(str(page.next)), page.at_tail
    names = places(tuple(found))
    assert sorted(names) == sorted(whole)
    for stream in {item.stream for item in found}:
        assert [item.index for item in found if item.stream == stream] == list(range(count_of(names, stream)))
    for number, item in enumerate(found):
        cause = item.event and item.event.causation_id
        assert cause is None or cause == names[number] or cause in names[:number]
    assert 0 < sum(item.omitted for item in found) < len(found)
    assert all(item.event is None for item in found if item.omitted)
    assert max(size(item) for item in found if item.event) <= 50
