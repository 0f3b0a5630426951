from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from epochal.feed.indexer import Indexer
from epochal.index.checkpoints import Checkpoint
from epochal.index.crowding import CALM, LENGTHENING
from epochal.index.epochs import EpochLimits
from epochal.plan.failures import RequestNotApplied
from epochal.plan.ops import Op
from tests.core.feed.feeds import Feeds, no_fault

OTHERS = 80
"""Entries that another indexer writes in the second between two batches."""

BATCH = 4


@dataclass
class Crowd:
    """An indexer, and another one that writes an entry for each event."""

    feeds: Feeds = field(default_factory=Feeds)
    notified: list[float] = field(default_factory=list)
    indexer: Indexer = field(init=False)
    other: Indexer = field(init=False)
    appended: int = 0

    def __post_init__(self) -> None:
        self.indexer = replace(self.feeds.indexer(), publish=self.publish)
        self.other = self.feeds.indexer()

    def publish(self, _positions: Mapping[int, Checkpoint]) -> None:
        self.notified.append(self.feeds.clock())

    def others_write(self) -> None:
        for _ in range(OTHERS):
            since = self.append(1)
            self.other.index(self.feeds.records(since))
        self.feeds.clock.now += 1

    def batch(self, changes: int = BATCH) -> float:
        """Index a batch; return how long it took."""
        since, began = self.append(changes), self.feeds.clock()
        self.indexer.index(self.feeds.records(since))
        return self.feeds.clock() - began

    def append(self, events: int) -> int:
        since = len(self.feeds.tables.changes("streams"))
        for _ in range(events):
            self.feeds.append(f"S-{self.appended}", "a")
            self.appended += 1
        return since


def crowded() -> Crowd:
    """An indexer that has measured the others over several batches."""
    crowd = Crowd()
    crowd.batch()
    for _ in range(6):
        crowd.others_write()
        crowd.batch(1)
    crowd.others_write()
    return crowd


def test_in_a_crowd_an_indexer_rests_once_it_has_written_and_notified() -> None:
    crowd = crowded()
    began = crowd.feeds.clock()
    took = crowd.batch()
    rest = crowd.indexer._held[0].crowding.rest  # noqa: SLF001  # what it measured
    assert rest == pytest.approx(LENGTHENING * (OTHERS - CALM), rel=0.1)
    assert crowd.notified[-1] - began == pytest.approx(took - 1.25 * rest)
    assert len(crowd.feeds.feed()) == crowd.appended


def test_alone_an_indexer_never_rests() -> None:
    crowd = Crowd()
    for _ in range(50):
        assert crowd.batch() == 0.0


def test_a_batch_of_another_partition_does_not_rest() -> None:
    crowd = crowded()
    assert crowd.batch() > 0
    source = Feeds(partitions=2).source()
    names = [name for name in map("T-{}".format, range(20)) if source.partition_of(name) == 1]
    since = len(crowd.feeds.tables.changes("streams"))
    for name in names:
        crowd.feeds.append(name, "a")

    began = crowd.feeds.clock()
    report = replace(crowd.indexer, sources=(source,)).index(crowd.feeds.records(since))

    assert {number: done.events for number, done in report.by_partition.items()} == {1: len(names)}
    assert crowd.feeds.clock() == began


def test_entries_of_others_count_in_an_epoch_that_they_have_begun() -> None:
    crowd = Crowd(feeds=Feeds(limits=EpochLimits(entries=100)))
    crowd.batch()
    crowd.others_write()
    crowd.batch(1)
    crowding = crowd.indexer._held[0].crowding  # noqa: SLF001  # what it measured
    before = crowding.rate
    assert before == pytest.approx(OTHERS / 2, rel=0.1)

    crowd.others_write()
    crowd.batch(1)

    assert before < crowding.rate < OTHERS


def test_records_that_failed_are_delivered_again_without_a_rest() -> None:
    crowd = crowded()
    records = crowd.feeds.records(crowd.append(BATCH))

    def fault(_op: Op) -> None:
        raise RequestNotApplied("throttled")

    crowd.feeds.fault = fault
    began = crowd.feeds.clock()
    report = crowd.indexer.index(records)
    assert set(report.failed) == {record.sequence_number for record in records}
    assert crowd.feeds.clock() - began <= crowd.indexer.driver.patience.seconds
    crowd.feeds.fault = no_fault
    assert crowd.indexer.index(records).by_partition[0].events == BATCH


@pytest.mark.parametrize("seconds", [1.0, 0.0, -2.0])
def test_a_rest_takes_at_most_half_of_the_time_that_is_left(seconds: float) -> None:
    crowd = crowded()
    began = crowd.feeds.clock()
    since = crowd.append(BATCH)
    crowd.indexer.index(crowd.feeds.records(since), seconds)
    assert crowd.indexer._held[0].crowding.rest > seconds  # noqa: SLF001  # what it measured
    assert crowd.feeds.clock() - began == pytest.approx(max(0.0, seconds / 2))


class Died(BaseException):
    """The process of an indexer has ended."""


def test_an_indexer_that_dies_in_its_rest_has_written_and_notified_and_its_batch_adds_nothing_again() -> None:
    crowd = crowded()
    records = crowd.feeds.records(crowd.append(BATCH))

    def sleep(seconds: float) -> None:
        crowd.feeds.clock.now += seconds
        if crowd.notified[-1] >= began:
            raise Died

    began = crowd.feeds.clock()
    with pytest.raises(Died):
        replace(crowd.indexer, driver=replace(crowd.indexer.driver, sleep=sleep)).index(records)
    feed = crowd.feeds.feed()
    assert len(feed) == crowd.appended
    assert crowd.feeds.indexer().index(records).by_partition[0].events == 0
    assert crowd.feeds.feed() == feed
