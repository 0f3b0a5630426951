"""When a process of the indexer writes what it fails at, and when it takes it back."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.errors import MissingTable
from epochal.feed.indexer import Report
from epochal.hosting.indexer_failure_notes import FailureNotes
from epochal.index.series import IndexerFailure, read_series
from tests.core.feed.events import stream_record
from tests.core.feed.feeds import Feeds

NOON = 1_357_041_600


class Indexing:
    """A process of the indexer, whose batches are said to fail; `seconds` is the time since noon."""

    def __init__(self) -> None:
        self.seconds = 0
        self.feeds = Feeds(now=lambda: (NOON + self.seconds) * 10**9)
        indexer = self.feeds.indexer()
        indexer.register()
        self.notes = FailureNotes(indexer=indexer)
        self.feeds.ops.clear()

    def batch(self, *numbers: int) -> list[dict[str, Any]]:
        return [stream_record(f"{number:021}", {}) for number in numbers]

    def fail(self, *numbers: int, failed: int | None = None) -> None:
        """All of a batch fails, or the records from a number on."""
        first = numbers[0] if failed is None else failed
        names = [f"{number:021}" for number in numbers if number >= first]
        failing = {"tips": (names[0], MissingTable("streams"))}
        report = Report(by_partition={}, failed=tuple(names), set_aside=0, failing=failing)
        self.notes.settle(report, self.batch(*numbers))

    def succeed(self, *numbers: int) -> None:
        self.notes.settle(Report(by_partition={}, failed=(), set_aside=0), self.batch(*numbers))

    @property
    def failure(self) -> IndexerFailure | None:
        return self.feeds.driver.run(read_series("index")).failing.get("tips")

    @property
    def requests(self) -> int:
        count = len(self.feeds.ops)
        self.feeds.ops.clear()
        return count


@pytest.fixture
def indexing() -> Indexing:
    return Indexing()


def test_a_failure_that_goes_on_is_written_once_a_minute_with_when_it_began(indexing: Indexing) -> None:
    written: list[tuple[str, str, int]] = []
    for seconds in (0, 30, 59, 60, 400, 5_000):
        indexing.seconds = seconds
        indexing.fail(1, 2)
        requests, failure = indexing.requests, indexing.failure
        assert failure is not None
        written.append((failure.since[11:19], failure.last[11:19], requests))
        indexing.feeds.ops.clear()
    assert written == [
        ("12:00:00", "12:00:00", 2),
        ("12:00:00", "12:00:00", 0),
        ("12:00:00", "12:00:00", 0),
        ("12:00:00", "12:01:00", 2),
        ("12:06:40", "12:06:40", 2),
        ("13:23:20", "13:23:20", 2),
    ]


def test_a_batch_of_another_shard_leaves_the_failure_on_record(indexing: Indexing) -> None:
    indexing.fail(1, 2)
    indexing.succeed(7, 8)
    assert indexing.failure is not None
    indexing.succeed(1, 2)
    assert indexing.failure is None


def test_a_batch_that_gets_further_and_fails_again_is_the_same_failure(indexing: Indexing) -> None:
    indexing.fail(1, 2, 3)
    indexing.seconds = 20
    indexing.fail(1, 2, 3, failed=2)
    indexing.succeed(1)
    failure = indexing.failure
    assert failure is not None
    assert failure.since[11:19] == "12:00:00"
    indexing.succeed(2, 3)
    assert indexing.failure is None


def test_a_process_that_has_nothing_on_record_makes_no_request(indexing: Indexing) -> None:
    indexing.succeed(1, 2)
    assert indexing.requests == 0
    indexing.fail(1)
    indexing.succeed(1)
    indexing.feeds.ops.clear()
    indexing.succeed(2)
    assert indexing.requests == 0


def test_an_outage_of_the_record_changes_no_error_of_the_indexer(indexing: Indexing) -> None:
    def break_down(_: object) -> None:
        raise RuntimeError("a bug")

    indexing.feeds.fault = break_down
    indexing.notes.raised(KeyError("a"), indexing.batch(1))
    indexing.notes.raised(KeyError("a"), [])
