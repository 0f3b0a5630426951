"""Importing rows into named streams: kept, in order, bounded, resumable, whole."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from epochal import Event, after, later
from epochal.contrib.timers.stores import timers_of
from epochal.contrib.transfer.importing import importer as frame
from epochal.contrib.transfer.importing.importer import (
    BATCH_BYTES,
    BATCH_EVENTS,
    BATCH_TAGS,
    ImportCounts,
    Ledger,
    StreamImporter,
)
from epochal.contrib.transfer.importing.incoming import Gone, Incoming, Misfit, Row
from epochal.contrib.transfer.importing.writing import (
    HistoryWriter,
    Pace,
    PartWritten,
    StreamPart,
    make_dry_run_writer,
)
from epochal.errors import EpochalError
from epochal.plan.ops import Op, Put, Reply, Transact, Update
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables

ID = "00000000-0000-0000-0000-{:012x}"


def row(stream: str, number: int, *, at: int = 0, size: int = 20, **fields: object) -> Incoming:
    event = Event(
        type="Counted",
        data=b"%d" % number + b" " * size,
        meta=b'{"n":1}',
        timestamp=f"2020-01-02T03:04:05.{number:07d}+00:00",
        correlation_id="c-1",
    )
    return Incoming(
        at=f"line {at}",
        stream=stream,
        index=number,
        event=replace(event, **fields),  # type: ignore[arg-type]
    )


def interleaved(streams: int = 7, events: int = 120, seed: int = 1) -> list[Row]:
    luck, numbers = random.Random(seed), {f"S-{each}": count() for each in range(streams)}
    names = sorted(numbers)
    return [row(name, next(numbers[name]), at=at) for at in range(events) for name in [luck.choice(names)]]


def contents(store: Streams, streams: int = 7) -> dict[str, list[tuple[int, bytes]]]:
    return {
        f"S-{each}": [(event.index, event.content) for event in store.read(f"S-{each}")]
        for each in range(streams)
    }


def wanted(rows: list[Row]) -> dict[str, list[tuple[int, bytes]]]:
    found: dict[str, list[tuple[int, bytes]]] = {}
    for each in rows:
        assert isinstance(each, Incoming)
        found.setdefault(each.stream, []).append((each.index or 0, each.event.content))
    return found


def importing(store: Streams, rows: list[Row], **options: object) -> tuple[ImportCounts, list[Misfit]]:
    rejected: list[Misfit] = []
    made = StreamImporter(writer=HistoryWriter(store), rejects=rejected.append, **options)  # type: ignore[arg-type]
    return made.run(rows), rejected


def test_events_keep_what_they_are_and_their_order() -> None:
    store = memory_streams()
    given = row("Cart-1", 0, id=ID.format(7), causation_id="k-1", meta=b'{"user":"ann"}')
    done, rejected = importing(store, [given, row("Cart-1", 1)])
    assert (done.rows, done.streams, done.written, done.there, rejected) == (2, 1, 2, 0, [])
    first, second = store.read("Cart-1")
    assert (first.type, first.content, first.meta) == ("Counted", given.event.content, b'{"user":"ann"}')
    assert (first.timestamp, first.id) == ("2020-01-02T03:04:05.0000000+00:00", ID.format(7))
    assert (first.correlation_id, first.causation_id) == ("c-1", "k-1")
    assert second.timestamp == "2020-01-02T03:04:05.0000001+00:00"


def test_tags_come_along() -> None:
    store = memory_streams()
    rows: list[Row] = [row("Cart-1", number, tags=(f"item:{number}", "a:1")) for number in range(120)]
    importer = StreamImporter(writer=HistoryWriter(store), verifying=True)
    assert importer.run(rows).written == 120
    assert importer.verify().unlike == []
    assert [event.tags for event in store.read("Cart-1")][3] == ("a:1", "item:3")


def test_a_second_run_writes_nothing_and_finds_the_same() -> None:
    store, rows = memory_streams(), interleaved()
    importing(store, rows)
    done, _ = importing(store, rows)
    assert (done.written, done.there) == (0, 120)
    assert contents(store) == wanted(rows)


def test_a_run_with_other_batches_goes_on_behind_the_first() -> None:
    store, rows = memory_streams(), interleaved()
    importing(store, rows[:50], window=3, at_once=1)
    done, _ = importing(store, rows)
    assert (done.written, done.there) == (70, 50)
    assert contents(store) == wanted(rows)


class Killed(BaseException):
    """The process is gone."""


class Killing:
    """An interpreter that dies at its nth write: before it, or once it was made."""

    def __init__(self, tables: MemoryTables, at: int, *, made: bool) -> None:
        self.tables, self.left, self.made = tables, at, made

    def execute(self, op: Op) -> Reply:
        if isinstance(op, Put | Update | Transact):
            self.left -= 1
            if self.left < 0 and not (self.left == -1 and self.made):
                raise Killed
            if self.left < 0:
                self.tables.execute(op)
                raise Killed
        return self.tables.execute(op)


@pytest.mark.slow
@pytest.mark.parametrize("made", [False, True])
def test_whatever_write_a_run_dies_at_the_next_run_leaves_nothing_out_and_nothing_twice(made: bool) -> None:
    rows = interleaved(events=60)
    died = 0
    for at in range(200):
        tables = memory_tables()
        store = memory_streams(tables)
        dying = Driver(execute=Killing(tables, at, made=made).execute, meter=Meter())
        try:
            importing(replace(store, driver=dying), rows, window=10, at_once=2)
        except Killed:
            died += 1
            importing(store, rows, window=1 + at % 17)
        assert contents(store) == wanted(rows), f"killed at write {at}"
        if died <= at:
            break
    assert died > 20


@pytest.mark.slow
def test_a_run_that_dies_in_every_run_gets_there_in_the_end() -> None:
    rows, tables = interleaved(events=80, seed=4), memory_tables()
    store = memory_streams(tables)
    for run in range(200):
        dying = Driver(execute=Killing(tables, 1 + run % 2, made=run % 3 == 0).execute, meter=Meter())
        try:
            importing(replace(store, driver=dying), rows, window=5 + run % 7, at_once=1)
        except Killed:
            continue
        break
    assert contents(store) == wanted(rows)


def test_a_timer_that_comes_along_is_that_of_a_copy_and_a_second_run_finds_it() -> None:
    setting = later("fine", [Event(type="Fined")], at=after(days=1))
    rows, streams = [row("S-1", 0, type=setting.type, data=setting.data)], memory_streams()
    assert importing(streams, rows)[0].written == 1
    (timer,) = timers_of(streams).pending("S-1")
    assert (timer.name, timer.copied) == ("fine", True)
    done, _ = importing(streams, rows)
    assert (done.written, done.there) == (0, 1)


def test_two_imports_at_once_write_each_event_once() -> None:
    store, rows = memory_streams(), interleaved(events=90)
    other = iter([rows])

    def meanwhile(_: ImportCounts) -> None:
        for mine in other:
            importing(store, mine, window=4)

    importing(store, rows, window=1, at_once=1, progress=meanwhile)
    importing(store, rows)
    assert contents(store) == wanted(rows)


def test_a_stream_with_other_events_is_left_alone_and_named() -> None:
    store = memory_streams()
    store.append("Cart-1", [Event(type="Other")])
    done, rejected = importing(
        store, [row("Cart-1", 0, at=1), row("Cart-1", 1, at=2), row("Cart-2", 0, at=3)]
    )
    assert [(each.at, each.stream) for each in rejected] == [("line 1", "Cart-1"), ("line 2", "Cart-1")]
    assert rejected[0].rule == "event 0 differs in the store"
    assert rejected[1].rule == "follows line 1 in its stream, which was rejected"
    assert (done.written, done.rejected) == (1, 2)
    assert len([*store.read("Cart-1")]) == 1


def test_an_event_with_the_id_of_another_one_is_another_one() -> None:
    store = memory_streams()
    importing(store, [row("Cart-1", 0, id=ID.format(1))])
    rejected = list[Misfit]()
    for likely in (False, True):
        writer = HistoryWriter(store, likely_there=likely)
        other = row("Cart-1", 0, id=ID.format(1), data=b"other")
        StreamImporter(writer=writer, rejects=rejected.append).run([other])
    assert [each.rule for each in rejected] == ["event 0 differs in the store"] * 2


def test_events_that_came_after_the_import_are_no_hindrance_to_a_further_run() -> None:
    store, rows = memory_streams(), interleaved(streams=1, events=300)
    importing(store, rows)
    store.append("S-0", [Event(type="Later")])
    done, rejected = importing(store, rows)
    assert (done.written, done.there, rejected) == (0, 300, [])


def test_a_deleted_stream_takes_no_events() -> None:
    store = memory_streams()
    store.append("Cart-1", [Event(type="Old")])
    store.delete("Cart-1")
    _, rejected = importing(store, [row("Cart-1", 0)])
    assert [each.rule for each in rejected] == ["was deleted in the store and takes no more events"]


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        (3, "index: is 3, expected 1: events from 1 on are missing"),
        (0, "index: is 0, expected 1: it is out of order or repeated"),
    ],
)
def test_a_stream_with_a_gap_or_out_of_order_stops_there(second: int, rule: str) -> None:
    store = memory_streams()
    _, rejected = importing(store, [row("Cart-1", 0), row("Cart-1", second, at=2), row("Cart-1", 1, at=3)])
    assert [each.rule for each in rejected] == [rule, "follows line 2 in its stream, which was rejected"]
    assert len([*store.read("Cart-1")]) == 1


def test_what_follows_a_row_that_does_not_fit_waits_for_it_to_be_mended() -> None:
    store = memory_streams()
    bad = Misfit(at="line 2", stream="Cart-1", rule="time: must be given")
    fine: list[Row] = [row("Cart-1", number, at=number + 1) for number in range(3)]
    _, rejected = importing(store, [fine[0], bad, fine[2], row("Cart-2", 0)])
    assert [each.at for each in rejected] == ["line 2", "line 3"]
    done, rejected = importing(store, fine)
    assert (done.there, done.written, rejected) == (1, 2, [])


def test_an_event_that_no_item_holds_is_named_and_those_before_it_are_there() -> None:
    store = memory_streams()
    store = replace(store, codec=replace(store.codec, bodies=None))
    large = random.Random(1).randbytes(500_000)
    rows: list[Row] = [row("Cart-1", number, at=number) for number in range(9)]
    rows[5] = row("Cart-1", 5, at=5, data=large)
    done, rejected = importing(store, rows)
    assert [each.at for each in rejected] == ["line 5", "line 6", "line 7", "line 8"]
    assert "bytes, at most" in rejected[0].rule
    assert (done.written, len([*store.read("Cart-1")])) == (5, 5)


def test_a_stream_whose_first_events_are_gone_keeps_its_indices() -> None:
    store = memory_streams()
    rows: list[Row] = [Gone(at="line 1", stream="Cart-1", index=0), row("Cart-1", 1), row("Cart-1", 2)]
    rows += [row("Cart-2", 4), row("Cart-2", 5)]
    rows += [Gone(at="line 6", stream="Cart-3", index=each) for each in range(3)]
    for again in (False, True):
        importer = StreamImporter(writer=HistoryWriter(store), verifying=True)
        done = importer.run(rows)
        assert (done.written, done.there, done.gone) == ((0, 4, 4) if again else (4, 0, 4))
        assert importer.verify().unlike == []
        assert [event.index for event in store.read("Cart-1")] == [1, 2]
        assert [event.index for event in store.read("Cart-2")] == [4, 5]
        state = store.load("Cart-3")
        assert state is not None
        assert (state.version, [*store.read("Cart-3")]) == (3, [])


def test_a_stream_has_no_hole_where_its_source_has_lost_an_event_between_others() -> None:
    store = memory_streams()
    gone = Gone(at="line 2", stream="Cart-1", index=1)
    _, rejected = importing(store, [row("Cart-1", 0, at=1), gone, row("Cart-1", 2, at=3)])
    assert [(each.at, each.rule) for each in rejected] == [
        ("line 2", "gone: earlier events of the stream exist, and a stream cannot have holes"),
        ("line 3", "follows line 2 in its stream, which was rejected"),
    ]
    assert [event.index for event in store.read("Cart-1")] == [0]


def test_a_lost_event_of_a_source_that_does_not_count_leaves_no_hole() -> None:
    store = memory_streams()
    rows = [replace(row("Cart-1", number), index=None) for number in range(2)]
    gone = Gone(at="line 2", stream="Cart-1", index=None)
    done, rejected = importing(store, [rows[0], gone, rows[1]])
    assert (done.written, done.gone, rejected) == (2, 1, [])
    assert [event.index for event in store.read("Cart-1")] == [0, 1]


def test_a_stream_that_a_row_has_stopped_is_not_begun_empty() -> None:
    """Its source still has events of it, which come once the row is mended. It is not deleted either."""
    store = memory_streams()
    gone = Gone(at="line 1", stream="Cart-1", index=0)
    bad = Misfit(at="line 2", stream="Cart-1", rule="time: must be given")
    done, _ = importing(store, [gone, bad])
    assert done.emptied == 0
    assert store.load("Cart-1") is None
    done, rejected = importing(store, [gone, row("Cart-1", 1)])
    assert (done.written, rejected) == (1, [])


def test_what_waits_names_the_first_row_of_its_stream_that_does_not_fit() -> None:
    bad = [Misfit(at=f"line {at}", stream="Cart-1", rule="time: must be given") for at in (2, 3)]
    _, rejected = importing(memory_streams(), [row("Cart-1", 0, at=1), *bad, row("Cart-1", 3, at=4)])
    assert rejected[-1].rule == "follows line 2 in its stream, which was rejected"


def parts_of(store: Streams, rows: list[Row]) -> list[StreamPart]:
    """What an import of these rows asks its writer to append at a time."""
    parts = list[StreamPart]()

    class Watched(HistoryWriter):
        def write(self, batch: StreamPart) -> PartWritten:
            parts.append(batch)
            return super().write(batch)

    StreamImporter(writer=Watched(store)).run(rows)
    return parts


def test_an_append_has_fewer_tags_than_a_transaction_has_items() -> None:
    store = memory_streams()
    rows: list[Row] = [row("Cart-1", number, tags=(f"a:{number}", f"b:{number}")) for number in range(120)]
    parts = parts_of(store, rows)
    assert max(len({tag for each in part.rows for tag in each.event.tags}) for part in parts) == BATCH_TAGS
    assert len([*store.read("Cart-1")]) == 120


@pytest.mark.parametrize(("size", "events"), [(0, BATCH_EVENTS), (1_000, 64)])
def test_an_append_has_so_many_events_and_bytes_at_most(size: int, events: int) -> None:
    parts = parts_of(memory_streams(), [row("Cart-1", number, size=size) for number in range(450)])
    assert sum(len(part.rows) for part in parts) == 450
    assert max(len(part.rows) for part in parts) == events
    for part in parts:
        assert sum(len(each.event.content) + len(each.event.meta) for each in part.rows) <= BATCH_BYTES


def test_an_event_below_a_place_that_is_gone_comes_out_of_order() -> None:
    store = memory_streams()
    gone = Gone(at="line 1", stream="Cart-1", index=3)
    _, rejected = importing(store, [gone, row("Cart-1", 2, at=2), row("Cart-1", 4, at=3)])
    assert [each.at for each in rejected] == ["line 2", "line 3"]
    assert rejected[0].rule == "index: is 2, expected 4: it is out of order or repeated"


def test_verifying_names_a_stream_that_reads_otherwise() -> None:
    store, rows = memory_streams(), interleaved()
    importer = StreamImporter(writer=HistoryWriter(store), verifying=True)
    importer.run(rows)
    assert importer.verify().unlike == []
    one, other = importer.done.digest, memory_streams()
    importing(other, rows[:-1])
    importer.writer.store = other
    importer.done.unlike = []
    assert importer.verify().unlike == [rows[-1].stream]
    assert importer.done.digest != one


@pytest.mark.parametrize("window", [1, 50])
def test_of_a_stream_that_a_row_has_stopped_what_is_before_that_is_verified(window: int) -> None:
    tags = tuple(f"t:{number}" for number in range(120))
    bad = (row("S-0", 3, at=3, tags=tags), row("S-1", 0, at=1, type="$timer-set", data=b"none"))
    rows = [row("S-0", at, at=at) for at in range(3)]
    store = memory_streams()
    for _ in range(2):
        importer = StreamImporter(writer=HistoryWriter(store), verifying=True, window=window)
        done = importer.run([*rows, *bad, row("S-0", 4, at=5)])
        assert (done.written + done.there, done.rejected) == (3, 3)
        assert (importer.verify().unlike, done.verified) == ([], 3)


def test_the_digest_is_of_the_events_and_not_of_how_they_were_written() -> None:
    digests = set()
    for window in (1, 9, 1000):
        importer = StreamImporter(writer=HistoryWriter(memory_streams()), verifying=True, window=window)
        importer.run(interleaved())
        digests.add(importer.verify().digest)
    assert len(digests) == 1


@pytest.mark.slow
def test_no_event_is_written_before_one_that_is_two_windows_earlier() -> None:
    rows, order = interleaved(streams=40, events=800), list[int]()

    class Watched(HistoryWriter):
        def write(self, batch: StreamPart) -> PartWritten:
            order.extend(int(each.at.removeprefix("line ")) for each in batch.rows)
            return super().write(batch)

    StreamImporter(writer=Watched(memory_streams()), window=30, at_once=4).run(rows)
    assert sorted(order) == [*range(800)]
    assert max(max(order[:place], default=0) - at for place, at in enumerate(order)) <= 60


def test_no_more_parts_are_under_way_than_streams_are_written_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is under way is bodies in memory, too."""
    monkeypatch.setattr(frame, "HELD_BYTES", 0)
    importer = StreamImporter(writer=HistoryWriter(memory_streams()), window=500, at_once=3)
    most = 0

    def watched() -> Iterator[Row]:
        nonlocal most
        for number in range(200):
            most = max(most, len(importer._under_way))  # noqa: SLF001
            yield row(f"S-{number}", 0)

    assert importer.run(watched()).written == 200
    assert 1 < most <= 3


@pytest.mark.slow
def test_what_is_held_is_bounded_by_the_window_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "HELD_BYTES", 20_000)
    importer = StreamImporter(writer=HistoryWriter(memory_streams()), window=50)
    most = [0, 0]

    def watched() -> Iterator[Row]:
        for each in (row(f"S-{number % 400}", number // 400, size=900) for number in range(2_000)):
            held = importer._held.values()  # noqa: SLF001
            most[0] = max(most[0], sum(len(held.rows) for held in held))
            most[1] = max(most[1], sum(held.size for held in held))
            yield each

    importer.run(watched())
    assert 10 < most[0] <= 50
    assert most[1] <= 20_000


def test_a_ledger_keeps_what_is_no_more_recent() -> None:
    ledger = Ledger(recent=2)
    for number in range(9):
        account = ledger.of(f"S-{number}")
        account.next, account.digest = number, b"%d" % number
    assert [ledger.of(f"S-{number}").next for number in range(9)] == [*range(9)]
    assert [(name, each.digest) for name, each in ledger.all()] == [(f"S-{n}", b"%d" % n) for n in range(9)]


@pytest.mark.slow
def test_streams_that_the_ledger_has_put_away_go_on() -> None:
    store, rows = memory_streams(), interleaved(streams=20, events=300)
    importer = StreamImporter(writer=HistoryWriter(store), ledger=Ledger(recent=2), window=5, verifying=True)
    assert importer.run(rows).written == 300
    assert importer.verify().unlike == []
    assert contents(store, 20) == wanted(rows)


def test_a_stream_that_was_stopped_and_put_away_stays_stopped() -> None:
    store = memory_streams()
    bad = Misfit(at="line 2", stream="S-0", rule="time: must be given")
    others = [row(f"S-{number}", 0, at=number + 3) for number in range(1, 9)]
    uncounted = [replace(row("S-0", 0, at=at), index=None) for at in (1, 12)]
    rows: list[Row] = [uncounted[0], bad, *others, uncounted[1]]
    rejected = list[Misfit]()
    importer = StreamImporter(writer=HistoryWriter(store), ledger=Ledger(recent=2), rejects=rejected.append)
    importer.run(rows)
    assert [(each.at, each.rule) for each in rejected[1:]] == [
        ("line 12", "follows line 2 in its stream, which was rejected")
    ]
    assert len([*store.read("S-0")]) == 1


@pytest.mark.slow
def test_a_dry_run_asks_for_nothing_and_tells_what_the_import_then_costs() -> None:
    rows = interleaved(streams=30, events=3_000)
    rejected: list[Misfit] = []
    estimate = StreamImporter(writer=make_dry_run_writer(), rejects=rejected.append, window=400).run(rows)
    store, meter = memory_streams().metered()
    imported = StreamImporter(writer=HistoryWriter(store), window=400).run(rows)
    assert (estimate.streams, estimate.written, estimate.bytes) == (30, 3_000, imported.bytes)
    assert estimate.units == imported.units == meter.capacity.write
    assert rejected == []


@pytest.mark.slow
def test_events_that_go_out_together_cost_a_small_part_of_those_that_go_alone() -> None:
    rows = interleaved(streams=10, events=2_000)
    alone = StreamImporter(writer=make_dry_run_writer(), window=1).run(rows).units
    together = StreamImporter(writer=make_dry_run_writer()).run(rows).units
    assert alone >= 2_000
    assert together < alone / 20


def test_a_stream_that_is_met_after_one_that_was_there_is_asked_for_before_it_is_begun() -> None:
    store, rows = memory_streams(), interleaved(streams=50, events=500)
    importing(store, rows)
    again, meter = store.metered()
    importing(again, rows, at_once=1)
    assert meter.capacity.write == 0


def test_writers_keep_to_their_pace() -> None:
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(rate=10, clock=lambda: now[0], sleep=sleep)
    for _ in range(20):
        pace.spend(5)
    assert now[0] == pytest.approx(9.5)
    Pace(rate=0, clock=lambda: now[0], sleep=sleep).spend(1_000)
    assert now[0] == pytest.approx(9.5)


@pytest.mark.parametrize("idle", [5.0, 500.0])
def test_time_in_which_nothing_was_written_is_not_spent_later(idle: float) -> None:
    """A table takes so many units a second, however long it has had nothing to do."""
    now, slept = [0.0], list[float]()
    pace = Pace(rate=10, clock=lambda: now[0], sleep=slept.append)
    pace.spend(5)
    now[0] += idle
    for _ in range(3):
        pace.spend(20)
    assert slept == [2.0, 4.0]


def test_an_import_keeps_to_the_pace_that_it_was_given() -> None:
    slept = list[float]()
    pace = Pace(rate=100, clock=lambda: 0.0, sleep=slept.append)
    importer = StreamImporter(writer=HistoryWriter(memory_streams(), pace=pace), window=1, at_once=1)
    done = importer.run(interleaved(events=50))
    assert max(slept) == pytest.approx((done.units - 1) / 100)


def test_what_the_store_refuses_altogether_ends_the_run() -> None:
    store = memory_streams(MemoryTables({}))
    with pytest.raises(EpochalError):
        importing(store, interleaved())


def test_nothing_is_added_behind_a_stream_that_lacks_what_comes_before() -> None:
    store = memory_streams()
    importing(store, [row("Cart-1", 0)])
    writer = HistoryWriter(store)
    behind = writer.write(StreamPart(stream="Cart-1", base=3, rows=[row("Cart-1", 3)]))
    nowhere = writer.write(StreamPart(stream="Cart-2", base=3, rows=[row("Cart-2", 3)]))
    assert behind.refused == "is at version 1 in the store, but the source continues with event 3"
    assert nowhere.refused == "no longer exists"
    assert len([*store.read("Cart-1")]) == 1


def test_what_is_held_of_a_stream_that_is_refused_is_not_written() -> None:
    store = memory_streams()
    store.append("Cart-1", [Event(type="Other")])
    _, rejected = importing(store, [row("Cart-1", number, at=number) for number in range(450)])
    assert len(rejected) == 450
    assert {each.rule for each in rejected[1:]} == {"follows line 0 in its stream, which was rejected"}


@pytest.mark.slow
def test_the_source_is_read_no_further_than_two_windows_beyond_what_is_under_way() -> None:
    read, reached = [0], list[int]()
    far = threading.Event()

    class Slow(HistoryWriter):
        def write(self, batch: StreamPart) -> PartWritten:
            if batch.stream == "First-1":
                far.wait(0.2)
                reached.append(read[0])
            return super().write(batch)

    def rows() -> Iterator[Row]:
        yield row("First-1", 0)
        for number in range(500):
            read[0] = number + 2
            if read[0] > 100:
                far.set()
            yield row(f"S-{number}", 0)

    StreamImporter(writer=Slow(memory_streams()), window=10, at_once=64).run(rows())
    assert 10 <= reached[0] <= 21


@pytest.mark.slow
def test_a_dry_run_rejects_nothing_that_the_import_takes() -> None:
    rows: list[Row] = [Gone(at="", stream="Gone-1", index=0), Gone(at="", stream="Cart-1", index=0)]
    rows += [row("Cart-1", number) for number in range(1, 600)]
    rows += interleaved(streams=30, events=600)
    rejected = list[Misfit]()
    dry = StreamImporter(
        writer=make_dry_run_writer(), rejects=rejected.append, window=20, ledger=Ledger(recent=2)
    ).run(rows)
    made, _ = importing(memory_streams(), rows, window=20)
    assert rejected == []
    assert (dry.written, dry.gone, dry.streams) == (made.written, made.gone, made.streams) == (1_199, 2, 32)
    assert (
        made.units * 0.8
        < StreamImporter(writer=make_dry_run_writer(), window=20).run(rows).units
        <= made.units * 1.2
    )
