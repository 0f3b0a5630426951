"""A feed is begun at a moment: nothing is missed, little too much comes, and few requests find it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from epochal.errors import CorruptData, InvalidInput
from epochal.index import moments
from epochal.index.checkpoints import (
    BEGINNING,
    Checkpoint,
    calf_key,
    epoch_stream,
    parse_place,
    read_start,
    tip_key,
)
from epochal.index.entries import closing_entry, write_entry
from epochal.index.epochs import EpochLimits
from epochal.index.feed_walk import tail
from epochal.index.moments import SKEW, find_moment
from epochal.index.series import register, start_epoch
from epochal.index.tip import StoredSpan, events_attributes, find_calf, write_event
from epochal.index.wire_batch import Ids
from epochal.layout.changes import Span
from epochal.layout.streams import EncodedEvent
from epochal.model.moments import PER_SECOND, Moment, Ticks, format_ticks, from_unix_nanoseconds, parse_time
from epochal.plan.ops import Delete, Op, Put, Reply
from epochal.plan.values import number, text
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.core.feed.feeds import Feeds, head, is_read, keys_of, record
from tests.support.examples import seeds

pytestmark = pytest.mark.usefixtures("one_thread")

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
HALF = SKEW // PER_SECOND // 2
"""Seconds by which a clock may be wrong."""


def nanoseconds(seconds: float) -> int:
    """Since 1970, so many seconds after noon."""
    return int((NOON.timestamp() + seconds) * 1e9)


def moment(seconds: float) -> Ticks:
    return from_unix_nanoseconds(nanoseconds(seconds))


def indexed(times: list[float], **limits: int) -> Feeds:
    """A feed of an event for each time, in an entry of its own, by an indexer whose clock shows that time."""
    clock = iter(times)
    now = [0.0]
    feeds = Feeds(limits=EpochLimits(**limits), now=lambda: nanoseconds(now[0]))
    indexer = feeds.indexer()
    indexer.register()
    for index, now[0] in enumerate(clock):
        indexer.index([record(index, head("A", index + 1, f"T{index}"))])
    return feeds


def begun(feeds: Feeds, seconds: float) -> list[int]:
    """The events that come where one begins at a moment."""
    pages = feeds.reader().read(0, start=Moment(moment(seconds)))
    return [item.index for page in pages for item in page.items]


# ------------------------------ what comes


@pytest.mark.slow
@pytest.mark.parametrize("entries", [2, 3, 7, 50], ids="epochs of {} entries".format)
def test_every_moment_begins_at_the_first_entry_that_may_be_of_it(entries: int) -> None:
    times = [1000.0 * k for k in range(20)]
    feeds = indexed(times, entries=entries)
    for k, time in enumerate(times):
        for after, first in ((-500, k), (HALF, k), (2 * HALF, k), (2 * HALF + 1, k + 1), (500, k + 1)):
            assert begun(feeds, time + after) == [*range(first, 20)]


def test_a_moment_before_the_first_event_is_the_beginning_and_one_after_the_last_is_the_tail() -> None:
    feeds = indexed([0.0, 1.0, 2.0, 3.0, 4.0], entries=2)
    assert feeds.reader().find_checkpoint(0, NOON - timedelta(days=900)) == BEGINNING
    assert feeds.reader().find_checkpoint(0, NOON + timedelta(days=900)) == feeds.driver.run(
        tail("index", 0, 0)
    )
    assert begun(feeds, 9e6) == []


def test_at_a_moment_in_the_future_a_reader_waits_for_what_comes() -> None:
    feeds = indexed([0.0], entries=2)
    feeds.clock.at_sleep = lambda: feeds.indexer().index([record(1, head("A", 2, "T1"))])
    page = feeds.reader().page(0, start=NOON + timedelta(days=900), wait=5.0)
    assert [item.index for item in page.items] == [1]


@pytest.mark.parametrize("entries", [1, 2, 3], ids="epochs of {} entries".format)
def test_the_epoch_that_follows_a_closed_one_is_begun_though_it_is_empty(entries: int) -> None:
    feeds = indexed([0.0] * entries, entries=entries)
    assert feeds.reader().find_checkpoint(0, NOON + timedelta(days=1)) == Checkpoint.of(1, 0)


def test_an_index_without_entries_and_a_partition_that_is_not_there_begin_at_the_beginning() -> None:
    feeds = indexed([])
    assert feeds.reader().find_checkpoint(0, NOON) == feeds.reader().find_checkpoint(7, NOON) == BEGINNING


def test_each_partition_has_its_own_place_of_a_moment() -> None:
    now = [0.0]
    feeds = Feeds(partitions=4, now=lambda: nanoseconds(now[0]))
    indexer = feeds.indexer()
    indexer.register()
    for k, name in enumerate(f"Order-{k % 9}" for k in range(90)):
        now[0] = 1000.0 * k
        indexer.index([record(k, head(name, k // 9 + 1, "T"))])
    found = [
        (int(item.stream.partition("-")[2]), item.index)
        for each in feeds.reader().partitions()
        for page in feeds.reader().read(each.partition, start=Moment(moment(45_000.0)))
        for item in page.items
    ]
    assert sorted(index * 9 + name for name, index in found) == [*range(45, 90)]


def test_an_epoch_that_is_gone_hides_no_later_one() -> None:
    feeds = indexed([1000.0 * k for k in range(40)], entries=2)
    for epoch in range(3, 17):
        feeds.tables.execute(Delete(table="index", key=tip_key(epoch_stream(0, epoch))))
    for k in range(34, 40):
        assert begun(feeds, 1000.0 * k) == [*range(k, 40)]


def test_the_series_may_lag_behind_the_epochs() -> None:
    feeds = indexed([1000.0 * k for k in range(20)], entries=3)
    lagging = feeds.driver.run(find_moment("index", 0, moment(17_000.0)))
    feeds.tables.execute(Delete(table="index", key=tip_key("$AppendsIndex-0")))
    assert feeds.driver.run(find_moment("index", 0, moment(17_000.0))) == lagging == Checkpoint.of(5, 2)


# ------------------------------ clocks that differ, and none at all


def world(seed: int) -> tuple[Feeds, list[float]]:
    """A feed by three indexers whose clocks are wrong, and when each event was truly appended."""
    rng = random.Random(seed)
    wrong = [rng.uniform(-HALF, HALF) for _ in range(3)]
    times, now, true = list[float](), [0.0], 0.0
    feeds = Feeds(
        limits=EpochLimits(entries=rng.randint(1, 12), bytes=rng.choice([700, 10**6])),
        now=lambda: nanoseconds(now[0]),
    )
    feeds.indexer().register()
    indexers = [feeds.indexer() for _ in wrong]
    for index in range(rng.randint(1, 60)):
        times.append(true)
        true += rng.choice([0.0, 0.1, 2.0, 20.0, 90.0])
        which = rng.randrange(3)
        now[0] = true + wrong[which]
        indexers[which].index([record(index, head("A", index + 1, f"T{index}"))])
    return feeds, times


def missed(seed: int) -> list[int]:
    """Events that do not come though a writer, whose clock is wrong, too, says that they are of the moment or later."""
    feeds, times = world(seed)
    rng = random.Random(-seed)
    found: list[int] = []
    for index, true in enumerate(times):
        said = true + rng.uniform(-HALF, HALF)
        found += [] if index in begun(feeds, said) else [index]
    return found


@pytest.mark.slow
@seeds(40, 10)
def test_nothing_is_missed_that_a_writer_says_is_of_the_moment_whatever_clocks_say_within_half_a_minute(
    seed: int,
) -> None:
    assert missed(seed) == []


@pytest.mark.parametrize("skew", [0, SKEW // 2], ids=["none", "half"])
def test_were_less_searched_further_back_events_would_be_missed(
    skew: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments, "SKEW", skew)
    assert any(missed(seed) for seed in range(40))


def test_were_an_entry_at_the_border_taken_for_earlier_the_first_event_of_an_epoch_would_be_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feeds = indexed([100.0 * k for k in range(20)], entries=3)
    assert all(begun(feeds, 100.0 * k + 2 * HALF)[0] == k for k in range(20))
    before = moments._is_before  # noqa: SLF001  the mutant
    monkeypatch.setattr(moments, "_is_before", lambda span, index, wanted: before(span, index, wanted + 1))
    assert any(begun(feeds, 100.0 * k + 2 * HALF)[:1] != [k] for k in range(20))


@pytest.mark.parametrize("stored", ["", "no time", "31.12.2020"])
def test_entries_without_a_time_are_never_passed_over(stored: str) -> None:
    feeds = indexed([1000.0 * k for k in range(12)], entries=4)
    for item in feeds.tables.items("index"):
        if item["p"]["S"].startswith("$AppendsEpoch"):
            for event in item.get("e", {"L": []})["L"]:
                event["M"].update(t={"S": stored})
            feeds.tables.execute(Put(table="index", item=item))
    assert begun(feeds, 9e9) == [*range(12)]


def test_an_entry_that_is_in_no_item_is_corruption() -> None:
    feeds = long_feed(1, entries=500, calf=20)
    stream = epoch_stream(0, 0)
    feeds.driver.run(find_calf("index", stream, 250))
    for base in range(200, 300, 20):
        feeds.tables.execute(Delete(table="index", key=calf_key(stream, base)))
    with pytest.raises(CorruptData, match="in no item"):
        feeds.driver.run(find_moment("index", 0, moment(250)))


# ------------------------------ figures


class Long:
    """An index of closed epochs, an entry of one event a second, whose items are made when they are first asked for."""

    def __init__(self, epochs: int, entries: int, calf: int) -> None:
        self.tables: MemoryTables = memory_tables()
        self.epochs, self.entries, self.calf = epochs, entries, calf
        self.ops: list[Op] = []
        self.made: set[str] = set()
        ids = Ids.drawn(nanoseconds(0), lambda size: b"7" * size)
        self.driver.run(register("index", {"tips": 1}, ids))
        self.driver.run(start_epoch("index", 0, epochs - 1, ids))
        self.ops.clear()

    @property
    def driver(self) -> Driver:
        return Driver(execute=self.execute, meter=Meter())

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        for key in keys_of(op):
            name = key["p"]["S"]
            epoch = int(name.rpartition("_")[2]) if name.startswith("$AppendsEpoch") else self.epochs
            wanted = f"{name} {'i' in key}"
            if epoch < self.epochs and wanted not in self.made:
                self.made.add(wanted)
                for item in self.items(epoch, tip="i" in key):
                    self.tables.execute(Put(table="index", item=item))
        return self.tables.execute(op)

    def items(self, epoch: int, *, tip: bool) -> Iterator[dict[str, object]]:
        """The Tip of an epoch, or its calves."""
        stream = epoch_stream(0, epoch)
        for base in range(0, self.entries, self.calf):
            last = base + self.calf >= self.entries
            if last != tip:
                continue
            part = [self.entry(epoch * self.entries + base + k) for k in range(self.calf)]
            if last and epoch < self.epochs - 1:
                part.append(closing_entry(part[-1].timestamp))
            span = StoredSpan(
                base=base, events=tuple(map(write_event, part)), types=tuple(each.type for each in part)
            )
            key = tip_key(stream) if last else calf_key(stream, base)
            item = {**key, "n": number(span.next), **events_attributes(span)}
            yield {**item, "etag": text("0" * 32), "a": number(1)} if last else item

    def entry(self, second: int) -> EncodedEvent:
        """The entry that was written so many seconds after noon."""
        return write_entry([Span("A", second, ("T",))], ("A",), format_ticks(moment(second)))


def long_feed(epochs: int, entries: int = 5_000, calf: int = 25) -> Long:
    return Long(epochs, entries, calf)


@pytest.mark.slow
def test_in_a_feed_of_ten_million_events_at_most_30_requests_find_a_moment() -> None:
    """An event an entry, and small items: epochs and items as many as there can be."""
    events, most = 10_000_000, 0
    feed = long_feed(events // 5_000)
    rng = random.Random(26)
    for event in [0, 1, 4_999, 5_000, events - 1, *(rng.randrange(events) for _ in range(8))]:
        start = len(feed.ops)
        place = feed.driver.run(find_moment("index", 0, Ticks(moment(event) + SKEW)))
        assert place == Checkpoint.of(*divmod(event, 5_000))
        assert all(map(is_read, feed.ops[start:]))
        most = max(most, len(feed.ops) - start)
    assert most == 21


@pytest.mark.slow
def test_twice_as_many_events_are_one_request_more() -> None:
    counts = []
    for epochs in (500, 1_000, 2_000):
        feed = long_feed(epochs)
        feed.driver.run(find_moment("index", 0, Ticks(moment(5_000 * epochs // 3 + 4_321) + SKEW)))
        counts.append(len(feed.ops))
    assert counts[2] - counts[0] <= 3


# ------------------------------ how it is said


@pytest.mark.parametrize(
    "said",
    [
        NOON,
        NOON.astimezone(),
        "2026-11-23T12:00:00Z",
        "2026-11-23T12:00Z",
        "2026-11-23 13:00:00+01:00",
        datetime.fromisoformat("2026-11-23T17:53:28+05:53:28"),
    ],
)
def test_a_moment_is_a_time_with_a_zone_or_iso_8601(said: datetime | str) -> None:
    assert read_start(said) == Moment(parse_time("2026-11-23T12:00:00Z"))
    assert str(read_start(said)) == "2026-11-23T12:00:00.0000000+00:00"


@pytest.mark.parametrize("said", [datetime(2026, 11, 23), "today", "2026", 17, None])  # noqa: DTZ001
def test_anything_else_is_refused_by_name(said: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_start(said)
    assert refusal.value.field == "start"


def test_a_place_is_read_from_text() -> None:
    assert parse_place("2026-11-23T12:00:00Z") == read_start(NOON)
    assert parse_place("2026") == Checkpoint(2026)
    assert parse_place("3@7") == Checkpoint.of(3, 7)
    assert (parse_place("beginning"), parse_place("tail")) == ("beginning", "tail")
    for wrong in ("2026-13-01T00:00", "2026-", "end", ""):
        with pytest.raises(InvalidInput) as refusal:
            parse_place(wrong, "--from")
        assert refusal.value.field == "--from"
