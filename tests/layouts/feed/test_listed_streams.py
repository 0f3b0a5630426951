"""Streams are listed from the index: each once, by the time of its creation, and none is left out."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from epochal.errors import InvalidInput
from epochal.feed.results import ListedStream
from epochal.index.checkpoints import BEGINNING, parse_places
from epochal.index.epochs import EpochLimits
from epochal.model.events import Event
from epochal.store.reading import Direction
from epochal.testing.feeds import MemoryStore
from tests.core.feed.feeds import Feeds, head, is_read, record
from tests.support.examples import seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def world(seed: int) -> tuple[Feeds, list[tuple[str, float]]]:
    """A feed of several partitions whose records come late, twice, and with gaps; streams with their first entry."""
    rng, now = random.Random(seed), [0.0]
    feeds = Feeds(
        partitions=rng.choice([1, 3]),
        limits=EpochLimits(entries=rng.randint(1, 8)),
        now=lambda: int(now[0] * 1e9),
    )
    indexer = feeds.indexer()
    indexer.register()
    created, told = list[tuple[str, float]](), 0
    for k in range(1, rng.randint(2, 60)):
        now[0] = float(k)
        stream = f"{rng.choice('AB')}-{rng.randrange(20)}"
        feeds.append(stream, "Opened", *"x" * rng.randrange(3))
        records = feeds.records(told)
        if rng.random() < 0.3:
            continue  # comes with the next ones
        rng.shuffle(records)
        told = len(feeds.tables.changes("streams"))
        for name in dict.fromkeys(
            each.image["p"]["S"] for each in sorted(records, key=lambda r: r.sequence_number)
        ):
            created += [] if name in dict(created) else [(name, float(k))]
        indexer.index([*records, *rng.sample(feeds.records(), 1)])
    return feeds, created


def listed(feeds: Feeds, limit: int, direction: Direction, **asked: object) -> list[ListedStream]:
    """All of them, page by page, by new readers that are given the text of a position."""
    found, start = list[ListedStream](), None
    while True:
        page = feeds.reader().streams(limit, start=start, direction=direction, **asked)  # type: ignore[arg-type]
        found += page.streams
        if page.at_end:
            return found
        start = parse_places(str(page.next))


@pytest.mark.slow
@seeds(25, 7)
@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_every_stream_is_listed_once_by_the_time_of_its_creation_either_way(seed: int, limit: int) -> None:
    feeds, created = world(seed)
    times = dict(created)
    for direction, sign in (("forward", 1), ("backward", -1)):
        found = listed(feeds, limit, direction)  # type: ignore[arg-type]
        assert sorted(each.stream for each in found) == sorted(times)
        assert [times[each.stream] for each in found] == sorted(times.values(), key=lambda time: sign * time)
        assert {each.type for each in found} <= {"Opened"}
        assert {each.category for each in found} <= {"A", "B"}
    for category in "AB":
        of = [each.stream for each in listed(feeds, limit, "forward", categories=[category])]
        assert sorted(of) == sorted(each for each in times if each.startswith(category))
    some = [each.stream for each in listed(feeds, limit, "backward", prefix="A-1")]
    assert sorted(some) == sorted(each for each in times if each.startswith("A-1"))


def test_streams_are_listed_since_a_moment() -> None:
    now = [0.0]
    feeds = Feeds(limits=EpochLimits(entries=3), now=lambda: int(now[0] * 1e9))
    indexer = feeds.indexer()
    indexer.register()
    for k in range(20):
        now[0] = 1000.0 * k
        indexer.index([record(k, head(f"A-{k}", 1, "Opened"))])
    page = feeds.reader().streams(start="1970-01-01T04:10:00Z")
    assert [each.stream for each in page.streams] == [f"A-{k}" for k in range(15, 20)]
    assert [each.created[:19] for each in page.streams][:1] == ["1970-01-01T04:10:00"]
    assert page.at_end


def test_listing_only_reads_and_scans_nothing_and_time_ends_a_page() -> None:
    feeds = Feeds(limits=EpochLimits(entries=2))
    indexer = feeds.indexer()
    indexer.register()
    for k in range(30):
        indexer.index([record(k, head("A-1", k + 1, "x"))])
    start = len(feeds.ops)
    page, rounds = None, 0
    while page is None or not page.at_end:
        page = feeds.reader().streams(
            start=None if page is None else page.next, categories=["None"], seconds=0.0
        )
        rounds += 1
        assert not page.streams
    assert all(map(is_read, feeds.ops[start:]))
    assert rounds > 10


def test_streams_of_tags_are_listed_where_their_category_is_asked_for() -> None:
    feed = MemoryStore()
    feed.streams.append("Order-1", [Event(type="Placed", data=b"{}")])
    feed.tagged.append([Event(type="Seen", data=b"{}", tags=("user:1",))])
    feed.index()
    assert [each.stream for each in feed.feed.streams().streams] == ["Order-1"]
    (tag,) = feed.feed.streams(categories=["$tag-user"]).streams
    assert (tag.stream, tag.category, tag.type, tag.partition) == ("$tag-user:1", "$tag-user", "Seen", 30_000)


def test_a_stream_that_was_deleted_is_still_listed_and_one_pruned_before_it_was_indexed_is_too() -> None:
    feed = MemoryStore()
    for name in ("Gone-1", "Late-1"):
        feed.streams.append(name, [Event(type="Opened", data=b"{}")] * 3)
        if name == "Late-1":
            feed.streams.prune(name, 2)
        feed.index()
    feed.streams.delete("Gone-1")
    feed.index()
    for direction in ("forward", "backward"):
        found = feed.feed.streams(direction=direction).streams  # type: ignore[arg-type]
        assert sorted(each.stream for each in found) == ["Gone-1", "Late-1"]
    assert [each.stream for each in feed.feed.streams_by_name().streams] == ["Gone-1", "Late-1"]


def test_streams_that_are_pruned_are_listed_once_by_an_index_that_is_built_anew() -> None:
    """Whatever epoch they come in, and however often they come again."""
    feed = MemoryStore()
    feed._indexer = replace(feed._indexer, limits=EpochLimits(entries=2))  # noqa: SLF001  epochs that end soon
    names = [f"Old-{number}" for number in range(12)]
    for name in names:
        feed.streams.append(name, [Event(type="Opened", data=b"{}")] * 4)
        feed.streams.prune(name, 1 + len(name) % 3)
    for _ in range(3):
        feed.index()
        for name in names:
            feed.streams.append(name, [Event(type="Added", data=b"{}")])
    feed.index()
    assert sorted(each.stream for each in feed.feed.streams(1_000).streams) == sorted(names)


@pytest.mark.slow
@seeds(25, 7)
@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_every_stream_is_listed_once_in_the_order_of_names(seed: int, limit: int) -> None:
    feeds, created = world(seed)

    def by_name(**asked: object) -> list[str]:
        found, after = list[str](), ""
        while True:
            start = len(feeds.ops)
            page = feeds.reader().streams_by_name(limit, after=after, **asked)  # type: ignore[arg-type]
            assert all(map(is_read, feeds.ops[start:]))
            assert len(page.streams) <= limit
            found += [each.stream for each in page.streams]
            if page.next is None:
                return found
            assert page.next == found[-1]
            after = page.next

    names = sorted(dict(created))
    assert by_name() == names
    assert by_name(categories=["A"]) == [each for each in names if each.startswith("A-")]
    assert by_name(prefix="B-1") == [each for each in names if each.startswith("B-1")]


def test_a_page_of_names_that_takes_too_long_says_so_and_leaves_none_out() -> None:
    feeds, _ = world(3)
    with pytest.raises(InvalidInput, match="were too few to read the whole index"):
        feeds.reader().streams_by_name(seconds=0.0)


def test_an_empty_feed_lists_nothing_and_a_limit_below_one_is_refused() -> None:
    page = Feeds().reader().streams()
    assert (page.streams, page.at_end) == ((), True)
    with pytest.raises(InvalidInput, match="limit"):
        Feeds().reader().streams(0)
    with pytest.raises(InvalidInput, match="start"):
        Feeds().reader().streams(start={0: "soon"})  # type: ignore[dict-item]
    assert BEGINNING == 0
