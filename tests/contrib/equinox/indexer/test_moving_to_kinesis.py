"""A stage goes from tables' streams to Kinesis and back while appends go on: what reaches the indexer, step by step.

The steps are CloudFormation's, in the order of stacks: first the table sends, or sends no more; then the new mapping is
made, and begins where its stream does; then the old one goes, wherever it had got to.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from epochal.feed.stream_records import read_records
from tests.contrib.equinox.feeds import TipFeeds
from tests.core.feed.events import event, kinesis_record, sent_change, stream_record
from tests.core.feed.feeds import Feeds
from tests.support.examples import seeds

STREAMS = 4


@dataclass
class Moving:
    """A table, what follows it, and how far that has got.

    Attributes:
        sent: to Kinesis; None where there is no such stream.
        sending: the table does.
        pace: how likely a mapping is to get on with each append.
        read: records that a mapping has delivered, by what it follows.
    """

    seed: int
    rng: random.Random = field(init=False)
    feeds: Feeds = field(default_factory=TipFeeds)
    versions: dict[str, int] = field(default_factory=dict)
    sent: list[dict[str, Any]] | None = None
    sending: bool = False
    pace: float = 0.3
    read: dict[str, int] = field(default_factory=lambda: {"table": 0})

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.indexer = self.feeds.indexer()
        self.indexer.register()

    def append(self, streams: int = STREAMS) -> None:
        """Some heads, of which some are delivered meanwhile."""
        for _ in range(self.rng.randint(0, 6)):
            stream = f"S-{self.rng.randrange(streams)}"
            self.versions[stream] = self.versions.get(stream, 0) + 1
            self.feeds.append(stream, f"{self.versions[stream]}")
            if self.sending and self.sent is not None:
                changes = self.feeds.tables.changes("tips")
                self.sent.append(sent_change(changes[-1], len(changes) * 1_000))
            for source in list(self.read):
                if self.rng.random() < self.pace:
                    self.deliver(source, self.rng.randint(1, 3))

    def deliver(self, source: str, most: int = 1_000) -> None:
        """A batch of what a mapping follows: nothing of a Kinesis stream that is gone."""
        at = self.read[source]
        if source == "table":
            images = self.feeds.tables.changes("tips")[at : at + most]
            batch = [stream_record(str(at + k), image) for k, image in enumerate(images)]
        else:
            found = (self.sent or [])[at : at + most]
            batch = [kinesis_record(at + k, each) for k, each in enumerate(found)]
        report = self.indexer.index(read_records(event(batch)["Records"]))
        assert (report.failed, report.set_aside) == ((), 0)
        self.read[source] += len(batch)

    def turn_on(self, *, quiet: bool) -> None:
        """`quiet`: the mapping of the table has got to what Kinesis has not, before it goes."""
        self.append()
        self.sent, self.sending, before = [], True, len(self.feeds.tables.changes("tips"))
        self.append()
        self.read["kinesis"] = 0
        self.append()
        if quiet and self.read["table"] < before:
            self.deliver("table", before - self.read["table"])
        del self.read["table"]
        self.append()

    def turn_off(self) -> None:
        """Whatever of Kinesis is not delivered is gone with it."""
        self.append()
        self.sent, self.sending = None, False
        self.append()
        self.read["table"] = 0
        self.append()
        del self.read["kinesis"]
        self.append()

    def missing(self) -> dict[str, int]:
        """How much the feed lacks, by stream, once all is delivered; it has nothing twice and nothing out of order."""
        for source in self.read:
            self.deliver(source)
        seen: dict[str, int] = {}
        for stream, index, _ in self.feeds.feed():
            assert index == seen.get(stream, 0)
            seen[stream] = index + 1
        lacking = {stream: end - seen.get(stream, 0) for stream, end in self.versions.items()}
        return {stream: count for stream, count in lacking.items() if count}


@pytest.mark.slow
@seeds(40, 10)
def test_nothing_is_missed_on_the_way_to_kinesis_and_back(seed: int) -> None:
    world = Moving(seed)
    for _ in range(2):
        world.turn_on(quiet=True)
        assert world.missing() == {}
        world.turn_off()
        assert world.missing() == {}


@pytest.mark.slow
def test_what_an_old_mapping_had_not_got_to_the_next_append_brings() -> None:
    """deploy.md says to turn it on while `feed-lags` is quiet, and what happens otherwise."""
    lacked = 0
    for seed in range(40):
        world = Moving(seed, pace=0.05)
        world.turn_on(quiet=False)
        missing = world.missing()
        lacked += bool(missing)
        for stream in missing:
            world.versions[stream] += 1
            world.feeds.append(stream, "next")
            changes = world.feeds.tables.changes("tips")
            assert world.sent is not None
            world.sent.append(sent_change(changes[-1], len(changes) * 1_000))
        assert world.missing() == {}
    assert lacked > 5, "worlds in which nothing is missed show nothing"
