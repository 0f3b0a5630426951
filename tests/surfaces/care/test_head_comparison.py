"""Heads that are compared with the index say what it lacks, of small tables and of large ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from epochal.care.head_comparison import HeadComparison, compare_heads
from epochal.care.mender import Mender
from epochal.index.moments import SKEW
from epochal.index.series import read_series
from epochal.layout.source import Source
from epochal.model.events import Event
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds
from epochal.plan.ops import Op, Reply, Scan
from epochal.store.driver import Driver
from epochal.testing.feeds import MemoryStore

NOON = 1_357_041_600


@dataclass
class World:
    """A feed of pages, and of tips; scans bring so many items at once. `seconds` is the time since noon."""

    feed: MemoryStore = field(default_factory=MemoryStore)
    seconds: float = 0.0
    at_once: int = 1_000
    scans: int = 0

    def __post_init__(self) -> None:
        vars(self.feed).update(
            tips=replace(self.feed.tips, now=self.now), streams=replace(self.feed.streams, now=self.now)
        )
        self.feed._indexer = replace(self.feed._indexer, now=self.now)  # noqa: SLF001  it goes by the machine's clock

    def now(self) -> int:
        return int((NOON + self.seconds) * 10**9)

    def execute(self, op: Op) -> Reply:
        if isinstance(op, Scan):
            self.scans += 1
            op = replace(op, limit=self.at_once)
        return self.feed.feed.driver.execute(op)

    def source(self, name: str) -> Source:
        return next(each for each in self.feed._indexer.sources if each.name == name)  # noqa: SLF001

    def compare(self, name: str = "pages") -> HeadComparison:
        driver = replace(self.feed.feed.driver, execute=self.execute)
        assert isinstance(driver, Driver)
        mender = Mender(driver=driver, index_table=self.feed.feed.table)
        return compare_heads(mender, self.source(name), driver.run(read_series(self.feed.feed.table)))

    def append(self, stream: str, count: int = 1) -> None:
        self.feed.streams.append(stream, [Event(type="Noted")] * count)


@pytest.fixture
def world() -> World:
    world = World()
    for number in range(8):
        world.append(f"Cart-{number}")
    world.feed.index()
    return world


def at(seconds: float) -> Ticks:
    return Ticks(from_unix_nanoseconds(int((NOON + seconds) * 10**9)))


def test_an_index_that_has_all_lacks_nothing(world: World) -> None:
    assert world.compare() == HeadComparison(streams=8, whole=True, lacking=0, events=0, oldest=None)
    assert world.compare("tips") == HeadComparison(streams=0, whole=True, lacking=0, events=0, oldest=None)


def test_what_an_index_lacks_is_counted_with_the_time_of_the_oldest(world: World) -> None:
    for world.seconds, stream in ((10, "Cart-1"), (20, "Cart-2"), (30, "New-1")):
        world.append(stream, 3)
    assert world.compare() == HeadComparison(streams=9, whole=True, lacking=3, events=9, oldest=at(10))


def test_of_a_layout_that_keeps_no_times_the_events_are_counted_alone(world: World) -> None:
    world.feed.tips.append("Cart-1", [Event(type="Noted")])
    assert world.compare("tips") == HeadComparison(streams=1, whole=True, lacking=1, events=1, oldest=None)


def test_events_that_are_gone_again_are_not_missing(world: World) -> None:
    world.append("Cart-1", 3)
    world.feed.streams.prune("Cart-1", 4)
    found = world.compare()
    assert (found.lacking, found.events) == (1, 0)


def test_of_a_large_table_four_requests_are_made(world: World) -> None:
    world.at_once = 2
    found = world.compare()
    assert (found.streams, found.whole, world.scans) == (8, False, 4)
    world.at_once = 3
    assert world.compare().whole


def test_of_a_large_table_the_heads_that_are_newer_than_the_index_are_lacking(world: World) -> None:
    world.at_once, world.seconds = 2, 1_000
    for number in range(8):
        world.append(f"Cart-{number}")
    found = world.compare()
    assert (found.whole, found.lacking, found.events, found.oldest) == (False, 8, 8, at(1_000))


def test_of_a_large_table_clocks_may_differ_by_a_minute(world: World) -> None:
    world.seconds = 100
    world.append("Cart-1")
    world.seconds += SKEW / PER_SECOND - 1
    world.feed.index()
    world.at_once, world.seconds = 2, 101
    world.append("Cart-2")
    assert world.compare().lacking == 1


def test_of_a_large_table_the_newest_epochs_are_read_only_where_a_head_is_newer(world: World) -> None:
    world.seconds = 1_000
    world.append("Cart-1")
    world.feed.index()
    asked: list[object] = []
    world.at_once = 2
    reading = Mender.behind

    def noted(mender: Mender, source: Source, partition: int, heads: list[object]) -> object:
        asked.extend(heads)
        return reading(mender, source, partition, heads)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Mender, "behind", noted)
        assert world.compare().lacking == 0
    assert len(asked) <= 1
