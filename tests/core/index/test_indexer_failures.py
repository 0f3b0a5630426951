"""A failure of the indexer that is on record holds until the index has moved on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.index.indexer_failures import GOES_ON, forget_failures, indexer_failures, record_failures
from epochal.index.series import read_series, register
from epochal.index.wire_batch import Ids
from epochal.model.moments import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds
from tests.core.feed.feeds import Feeds

NOON = 1_357_041_600


def at(seconds: int) -> Ticks:
    return Ticks(from_unix_nanoseconds(NOON * 10**9) + seconds * PER_SECOND)


@pytest.fixture
def feeds() -> Feeds:
    feeds = Feeds(partitions=2, now=lambda: NOON * 10**9)
    feeds.append("Order-1", "a")
    indexer = feeds.indexer()
    indexer.register()
    indexer.index(feeds.records())
    return feeds


def fail(feeds: Feeds, seconds: int, cause: str = "MissingTable: streams") -> None:
    ids = replace(Ids.drawn(0, bytes), timestamp=format_ticks(at(seconds)), etag=f"{seconds:032}")
    feeds.driver.run(record_failures("index", {"tips": cause}, ids))


def failures(feeds: Feeds, seconds: int) -> dict[str, str]:
    driver = feeds.driver
    return driver.run(indexer_failures("index", driver.run(read_series("index")), at(seconds)))


def append_at(feeds: Feeds, seconds: int, stream: str = "Order-1") -> None:
    feeds.now = lambda: (NOON + seconds) * 10**9
    before = len(feeds.tables.changes("streams"))
    feeds.append(stream, "b")
    assert not feeds.indexer().index(feeds.records(before)).failed


def test_a_failure_is_shown_with_its_cause_and_times_however_old_it_is(feeds: Feeds) -> None:
    assert failures(feeds, 0) == {}
    fail(feeds, 10)
    fail(feeds, 70)
    for seconds in (71, 10**6):
        (told,) = failures(feeds, seconds).values()
        assert told == (
            f"the indexer has failed since {format_ticks(at(10))}, last at {format_ticks(at(70))}: "
            "MissingTable: streams"
        )


def test_a_failure_is_over_a_while_after_the_index_has_moved_on(feeds: Feeds) -> None:
    fail(feeds, 10)
    append_at(feeds, 20)
    assert failures(feeds, 10 + GOES_ON) != {}
    assert failures(feeds, 11 + GOES_ON) == {}
    fail(feeds, 10 + 2 * GOES_ON)
    assert f"since {format_ticks(at(10 + 2 * GOES_ON))}" in failures(feeds, 10**6)["tips"]


def test_what_any_partition_of_the_source_gets_in_any_epoch_ends_a_failure(feeds: Feeds) -> None:
    fail(feeds, 10)
    feeds.limits = replace(feeds.limits, entries=1)
    for number in range(4):
        append_at(feeds, 20 + number, f"Order-{number}")
    assert failures(feeds, 10**6) == {}


def test_a_failure_on_record_is_forgotten_by_whom_it_is_of(feeds: Feeds) -> None:
    fail(feeds, 10)
    ids = Ids.drawn(1, bytes)
    feeds.driver.run(forget_failures("index", ["journal"], ids))
    assert failures(feeds, 20) != {}
    feeds.driver.run(forget_failures("index", ["tips"], ids))
    assert failures(feeds, 20) == {}


def test_a_long_cause_is_cut(feeds: Feeds) -> None:
    fail(feeds, 10, "x" * 10_000)
    assert len(failures(feeds, 20)["tips"]) < 600


def test_the_number_of_partitions_that_is_refused_comes_first(feeds: Feeds) -> None:
    fail(feeds, 10)
    feeds.driver.run(register("index", {"tips": 4}, Ids.drawn(2, bytes)))
    assert "deployed for 4 partitions" in failures(feeds, 20)["tips"]
