from __future__ import annotations

import pytest

from epochal.errors import BeyondTheEnd
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.entries import Entry
from epochal.index.epochs import EpochLimits
from epochal.index.feed_walk import FeedWalk, read_tails, step, tail
from tests.core.feed.feeds import Feeds, head, record, streams_of


def indexed(batches: int, **limits: int) -> Feeds:
    """A feed of so many entries, event k of stream A in entry k."""
    feeds = Feeds(limits=EpochLimits(**limits))
    indexer = feeds.indexer()
    indexer.register()
    for index in range(batches):
        indexer.index([record(index, head("A", index + 1, f"T{index}"))])
    return feeds


def walked(feeds: Feeds, start: Checkpoint) -> tuple[list[tuple[Entry, Checkpoint]], FeedWalk]:
    walk, found = FeedWalk(partition=0, at=start), list[tuple[Entry, Checkpoint]]()
    while True:
        stretch = feeds.driver.run(step("index", walk))
        found += stretch.entries
        walk = stretch.walk
        if stretch.at_tail:
            return found, walk


def test_every_entry_comes_with_the_checkpoint_that_follows_it() -> None:
    feeds = indexed(5, entries=2)
    found, walk = walked(feeds, BEGINNING)
    assert [entry.spans[0].index for entry, _ in found] == [0, 1, 2, 3, 4]
    assert [str(at) for _, at in found] == ["0@1", "1@0", "1@1", "2@0", "2@1"]
    assert str(walk.at) == "2@1"


def test_a_walk_resumes_at_every_checkpoint_that_it_ever_gave() -> None:
    feeds = indexed(60, entries=7, bytes=900)
    found, _ = walked(feeds, BEGINNING)
    assert len(found) == 60
    for place, (_, at) in enumerate(found, 1):
        assert walked(feeds, at)[0] == found[place:]


def test_past_a_closed_epoch_the_checkpoint_is_the_beginning_of_the_next_though_it_is_empty() -> None:
    feeds = indexed(4, entries=2)
    found, walk = walked(feeds, BEGINNING)
    assert [str(at) for _, at in found] == ["0@1", "1@0", "1@1", "2@0"]
    assert str(walk.at) == "2@0"
    assert feeds.driver.run(tail("index", 0, 0)) == Checkpoint.of(2, 0)


def test_a_checkpoint_at_the_very_end_of_a_closed_epoch_means_the_next_epoch() -> None:
    found, _ = walked(indexed(5, entries=2), Checkpoint.of(0, 3))
    assert [entry.spans[0].index for entry, _ in found] == [2, 3, 4]


@pytest.mark.parametrize(
    ("epoch", "offset"),
    [(0, 4), (0, 1_048_575), (2, 2), (3, 0), (3, 1), (4, 0), (900, 7)],
    ids=["closed", "closed, far", "active", "next, not begun", "its entry", "after that", "far"],
)
def test_a_checkpoint_beyond_the_end_is_refused_and_neither_waits_nor_skips(epoch: int, offset: int) -> None:
    feeds = indexed(5, entries=2)
    assert feeds.driver.run(tail("index", 0, 0)) == Checkpoint.of(2, 1)
    with pytest.raises(BeyondTheEnd, match=f"{epoch}@{offset}") as refusal:
        walked(feeds, Checkpoint.of(epoch, offset))
    assert refusal.value.field == "from"


def test_an_epoch_that_is_next_but_empty_is_not_beyond_the_end() -> None:
    feeds = indexed(4, entries=2)
    assert walked(feeds, Checkpoint.of(2, 0)) == (
        [],
        FeedWalk(partition=0, at=Checkpoint.of(2, 0), known=True),
    )
    with pytest.raises(BeyondTheEnd):
        walked(feeds, Checkpoint.of(2, 1))


def test_where_a_walk_has_come_to_by_itself_is_not_looked_into_again() -> None:
    feeds = indexed(4, entries=2)
    _, walk = walked(feeds, BEGINNING)
    start = len(feeds.ops)
    feeds.driver.run(step("index", walk))
    assert streams_of(feeds.ops[start:]) == ["$AppendsEpoch-0_2"]


def test_a_checkpoint_on_closed_itself_goes_on_with_the_next_epoch() -> None:
    feeds = indexed(5, entries=2)
    found, _ = walked(feeds, Checkpoint.of(0, 2))
    assert [entry.spans[0].index for entry, _ in found] == [2, 3, 4]


def test_at_the_tail_a_walk_stays_and_goes_on_when_something_comes() -> None:
    feeds = indexed(3)
    _, walk = walked(feeds, BEGINNING)
    assert feeds.driver.run(step("index", walk)).at_tail
    feeds.indexer().index([record(3, head("A", 4, "T3"))])
    stretch = feeds.driver.run(step("index", walk))
    assert [entry.spans[0].types for entry, _ in stretch.entries] == [("T3",)]


def test_a_partition_that_does_not_exist_is_at_its_tail() -> None:
    feeds = indexed(3)
    stretch = feeds.driver.run(step("index", FeedWalk(partition=7, at=BEGINNING)))
    assert (stretch.entries, stretch.walk.at, stretch.at_tail) == ((), BEGINNING, True)


def test_the_tail_is_found_from_any_epoch_that_the_series_may_still_name() -> None:
    feeds = indexed(5, entries=2)
    for epoch in (0, 1, 2):
        assert feeds.driver.run(tail("index", 0, epoch)) == Checkpoint.of(2, 1)


def test_tails_name_every_partition_on_record_also_those_without_events() -> None:
    feeds = Feeds(partitions=4)
    indexer = feeds.indexer()
    indexer.register()
    indexer.index([record(0, head("Order-1", 1, "a"))])  # partition 2
    found = feeds.driver.run(read_tails("index"))
    assert found == [(0, BEGINNING), (1, BEGINNING), (2, Checkpoint.of(0, 1)), (3, BEGINNING)]


def test_a_walk_reads_each_epoch_once() -> None:
    feeds = indexed(6, entries=2)
    start = len(feeds.ops)
    walked(feeds, BEGINNING)
    read = streams_of(feeds.ops[start:])
    assert sorted(set(read)) == [f"$AppendsEpoch-0_{epoch}" for epoch in range(4)]
    assert len(read) <= 8
