"""An append tells its position once it is indexed, and who has a position can compare it with another."""

from __future__ import annotations

import random

import pytest

from epochal.errors import InvalidInput
from epochal.feed.whole import LOOK_BACK_SECONDS
from epochal.index.checkpoints import FeedPosition
from epochal.index.epochs import EpochLimits
from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore
from tests.core.feed.feeds import Feeds, is_read
from tests.support.examples import seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def holds(feeds: Feeds, position: FeedPosition, stream: str, version: int) -> bool:
    """Whether all events of a stream below a version are before a position."""
    ((partition, end),) = position.items()
    page = feeds.reader().page(partition, start=end, direction="backward", limit=10**6)
    return {each.index for each in page.items if each.stream == stream} >= set(range(version))


@pytest.mark.slow
@seeds(12, 4)
def test_every_event_that_is_indexed_has_a_position_behind_it(seed: int) -> None:
    rng = random.Random(seed)
    feeds = Feeds(partitions=rng.choice([1, 3]), limits=EpochLimits(entries=rng.randint(1, 9)))
    feeds.indexer().register()
    versions = dict[str, int]()
    for _ in range(30):
        stream, since = f"A-{rng.randrange(6)}", len(feeds.tables.changes("streams"))
        versions[stream] = feeds.append(stream, *"x" * rng.randint(1, 3)).version
        feeds.indexer().index(feeds.records(since))
    for stream, version in versions.items():
        for wanted in range(1, version + 1):
            position = feeds.reader().wait_for(stream, wanted, source="tips")
            assert position is not None
            assert holds(feeds, position, stream, wanted)
        earliest = feeds.reader().wait_for(stream, version, source="tips")
        assert earliest is not None
        ((partition, at),) = earliest.items()
        before = FeedPosition({partition: type(at)(at - 1)})
        assert not holds(feeds, before, stream, version)
        assert earliest.covers(before)
        assert not before.covers(earliest)
        assert feeds.reader().wait_for(stream, version + 1, source="tips", seconds=0.0) is None


def test_an_append_is_waited_for_until_it_is_indexed() -> None:
    feeds = Feeds()
    feeds.indexer().register()
    for name in ("A-1", "B-1"):
        feeds.append(name, "x")
    feeds.indexer().index(feeds.records())
    appended = feeds.append("A-1", "y")

    def later() -> None:
        if feeds.clock.sleeps == 3:
            feeds.indexer().index(feeds.records(2))

    feeds.clock.at_sleep = later
    start = len(feeds.ops)
    position = feeds.reader().wait_for("A-1", appended.version, source="tips")
    assert position is not None
    assert holds(feeds, position, "A-1", 2)
    assert feeds.clock.sleeps == 3
    assert sum(map(is_read, feeds.ops[start:])) < 20


@pytest.mark.parametrize("known", [True, False], ids=["a stream that is known", "a new stream"])
def test_what_does_not_come_is_none_after_the_time(known: bool) -> None:
    feeds = Feeds()
    feeds.indexer().register()
    feeds.append("A-1", "x")
    feeds.indexer().index(feeds.records())
    assert feeds.reader().wait_for("A-1" if known else "A-2", 2, source="tips", seconds=7.0) is None
    assert 7.0 <= feeds.clock.now <= 7.5


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [60.0, 1.0, 0.0])
def test_an_append_of_long_ago_is_found_after_a_short_wait(seconds: float) -> None:
    feeds = Feeds(limits=EpochLimits(entries=3))
    feeds.indexer().register()
    feeds.append("Old-1", "x")
    for number in range(60):
        feeds.append(f"A-{number}", "x")
    for record in feeds.records():
        feeds.indexer().index([record])
    position = feeds.reader().wait_for("Old-1", 1, source="tips", seconds=seconds)
    assert position == {0: 1}
    assert feeds.clock.now <= min(seconds, LOOK_BACK_SECONDS) + 0.5


def test_a_reader_that_has_come_to_a_position_has_seen_what_was_appended() -> None:
    feed = MemoryStore()
    appended = feed.streams.append("Order-1", [Event(type="Placed")])
    feed.index()
    position = feed.feed.wait_for("Order-1", appended.version)
    assert position is not None
    seen = FeedPosition({each.partition: each.tail for each in feed.feed.partitions()})
    assert seen.covers(position)
    assert not FeedPosition().covers(position)


def test_an_append_to_tags_has_a_position_by_the_version_of_each() -> None:
    feed = MemoryStore()
    appended = feed.tagged.append([Event(type="Seen", data=b"{}", tags=("user:1", "page:2"))])
    feed.index()
    for tag, version in appended.versions.items():
        assert feed.feed.wait_for(f"$tag-{tag}", version) is not None
        assert feed.feed.wait_for(f"$tag-{tag}", version + 1, seconds=0.0) is None


def test_a_layout_that_is_not_on_record_and_a_version_of_nothing_are_refused() -> None:
    with pytest.raises(InvalidInput, match="source"):
        Feeds().reader().wait_for("A-1", 1)
    with pytest.raises(InvalidInput, match="version"):
        Feeds().reader().wait_for("A-1", 0)
