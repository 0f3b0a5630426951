"""Exports of a feed: every event once, whatever ends a run."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from epochal import Event
from epochal.contrib.transfer.export import files, notes, origins, parts, runs
from epochal.contrib.transfer.export.files import FORMATS, Format, arrow_schema
from epochal.contrib.transfer.export.origins import FeedOrigin, begin_feed, ranges_of, run_feed
from epochal.contrib.transfer.export.parts import (
    EventExport,
    ExportCounts,
    ExportPart,
    ExportScope,
    FeedRange,
)
from epochal.contrib.transfer.rows import COLUMNS, as_json, row_of
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Checkpoint
from epochal.testing.feeds import MemoryStore

pytestmark = pytest.mark.usefixtures("one_thread")


def filled(seed: int = 1, appends: int = 60) -> MemoryStore:
    """A feed of streams, some with tags, and of tags alone; a copy, since to make it takes longer than an export."""
    made = _filled(seed, appends)
    return MemoryStore(tables=made.tables.copy(), _indexed=dict(made._indexed))  # noqa: SLF001  as it is


@cache
def _filled(seed: int, appends: int) -> MemoryStore:
    feed, luck = MemoryStore(), random.Random(seed)
    for number in range(appends):
        kind = luck.choice(("Cart", "Order"))
        stream = f"{kind}-{luck.randrange(8)}"
        events = [
            Event(
                type=luck.choice("xyz"),
                data=b'{"n":%d.10}' % number,
                timestamp=f"2026-01-{1 + number % 28:02d}T00:00:00Z",
            )
            for _ in range(luck.randrange(1, 4))
        ]
        feed.streams.append(stream, events)
        if luck.random() < 0.3:
            feed.streams.append(
                stream, [Event(type="tagged", data=b"\xff", tags=("course:1", f"student:{number % 3}"))]
            )
        if luck.random() < 0.3:
            feed.tagged.append([Event(type="alone", data=b"{}", tags=(f"student:{number % 3}", "course:2"))])
        if luck.random() < 0.5:
            feed.index()
    feed.index()
    return feed


def exported(
    feed: MemoryStore, folder: Path, *, file_rows: int = 20, start: Any = "beginning", **of: Any
) -> ExportCounts:
    export = begin_feed(feed.feed, folder, ExportScope(source="here", **of), start)
    return run_feed(export, lambda: feed.feed, file_rows=file_rows)


def rows_in(folder: Path, format_: Format = "parquet") -> list[dict[str, Any]]:
    """What files have, in the order of their names, in the form of NDJSON."""
    return [row for path in sorted(folder.glob(f"*.{format_}")) for row in _READERS[format_](path)]


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    for row in pq.read_table(path).to_pylist():
        time = row["time"]
        yield row | {"time": time and f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"}


def _ndjson(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text("utf-8").splitlines())


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    read: dict[str, Callable[[str], Any]] = {"int": int, "bool": "true".__eq__, "texts": json.loads}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {
                each.name: None
                if each.null and row[each.name] == ""
                else read.get(each.kind, str)(row[each.name])
                for each in COLUMNS
            }


_READERS = {"parquet": _parquet, "ndjson": _ndjson, "csv": _csv}


def expected(feed: MemoryStore) -> list[dict[str, Any]]:
    """What the feed has, by a reader of its own."""
    return [
        as_json(row_of(item.event)) | {"position": None, "partition": None}
        for at in feed.feed.partitions()
        for page in feed.feed.read(at.partition, data=True, once=True)
        for item in page.items
        if item.event is not None
    ]


def bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"position": None, "partition": None} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS)
def test_every_event_is_a_row_once_in_the_order_of_its_partition(tmp_path: Path, format_: Format) -> None:
    feed = filled()
    counts = exported(feed, tmp_path / "out", format=format_)
    found = rows_in(tmp_path / "out", format_)
    assert bare(found) == expected(feed)
    assert counts.rows == len(found) > 100
    assert counts.again > 0
    assert [row["position"] for row in found] == sorted(row["position"] for row in found)
    assert len(list((tmp_path / "out").glob(f"*.{format_}"))) > 3


@pytest.mark.slow
def test_a_row_says_where_in_the_feed_its_event_is(tmp_path: Path) -> None:
    feed = filled()
    exported(feed, tmp_path / "out")
    rows = rows_in(tmp_path / "out")
    for row in (rows[0], rows[50], rows[-1]):
        behind = [
            (item.stream, item.index)
            for page in feed.feed.read(row["partition"], start=Checkpoint(row["position"]))
            for item in page.items
        ]
        places = [(each["stream"], each["index"]) for each in rows if each["position"] > row["position"]]
        assert row["position"] < rows[-1]["position"] or places == behind == []
        assert {place for place in places if place[0]} <= set(behind)
        assert (row["stream"], row["index"]) not in behind


@pytest.mark.slow
def test_what_is_appended_meanwhile_is_not_part_of_an_export(tmp_path: Path) -> None:
    feed = filled()
    before = expected(feed)
    export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
    feed.streams.append("Cart-1", [Event(type="late")])
    feed.index()
    run_feed(export, lambda: feed.feed, file_rows=10)
    assert bare(rows_in(tmp_path / "out")) == before


def test_a_category_whose_next_event_lies_behind_the_end_has_none_of_it(tmp_path: Path) -> None:
    feed = filled()
    export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here", categories=("Late",)))
    feed.streams.append("Late-1", [Event(type="late")])
    feed.index()
    assert run_feed(export, lambda: feed.feed) == ExportCounts()
    assert rows_in(tmp_path / "out") == []
    assert pq.read_schema(tmp_path / "out" / "none.parquet").equals(arrow_schema(), check_metadata=False)


def test_a_category_is_exported_alone_and_one_of_tags_once_for_each_event(tmp_path: Path) -> None:
    feed = filled()
    exported(feed, tmp_path / "carts", categories=("Cart",))
    assert bare(rows_in(tmp_path / "carts")) == [row for row in expected(feed) if row["category"] == "Cart"]
    exported(feed, tmp_path / "courses", categories=("$tag-course",))
    found = rows_in(tmp_path / "courses")
    of_courses = {
        row["id"] for row in expected(feed) if any(tag.startswith("course:") for tag in row["tags"])
    }
    assert sorted(row["id"] for row in found) == sorted(of_courses)


def test_events_of_a_time_are_exported_and_the_others_counted(tmp_path: Path) -> None:
    feed = filled()
    since, until = 1_767_916_800_000_000, 1_768_521_600_000_000
    counts = exported(feed, tmp_path / "out", since=since, until=until)
    wanted = [row for row in expected(feed) if "2026-01-09" <= row["time"][:10] < "2026-01-16"]
    assert bare(rows_in(tmp_path / "out")) == wanted
    assert counts.outside == len(expected(feed)) - len(wanted) > 0


def test_an_export_may_begin_where_another_has_ended(tmp_path: Path) -> None:
    feed = filled()
    exported(feed, tmp_path / "one")
    (tail,) = [at.tail for at in feed.feed.partitions() if at.tail]
    feed.streams.append("Cart-1", [Event(type="later")])
    feed.index()
    exported(feed, tmp_path / "two", start=tail)
    assert [row["type"] for row in rows_in(tmp_path / "two")] == ["later"]


def test_what_is_pruned_or_deleted_keeps_its_place(tmp_path: Path) -> None:
    feed = MemoryStore()
    for stream in ("Cart-1", "Cart-2"):
        feed.streams.append(stream, [Event(type="x", data=b"1"), Event(type="y", data=b"2")])
    feed.index()
    feed.streams.prune("Cart-1", 1)
    feed.streams.delete("Cart-2")
    feed.index()
    counts = exported(feed, tmp_path / "out")
    rows = [
        (row["stream"], row["index"], row["type"], row["gone"], row["data"])
        for row in rows_in(tmp_path / "out")
    ]
    assert rows == [
        ("Cart-1", 0, "x", True, None),
        ("Cart-1", 1, "y", False, "2"),
        ("Cart-2", 0, "x", True, None),
        ("Cart-2", 1, "y", True, None),
    ]
    assert counts.gone == 3


class Killed(BaseException):
    """As if the process had ended here."""


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int, *, after: bool) -> list[int]:
    """End the run at the so manieth file that gets its name, before or after it has; the steps that were taken."""
    taken, name = [0], files.move_durably

    def killing(begun: Path, path: Path) -> None:
        taken[0] += 1
        if taken[0] == step and not after:
            raise Killed
        name(begun, path)
        if taken[0] == step:
            raise Killed

    monkeypatch.setattr(files, "move_durably", killing)
    return taken


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_ends_anywhere_is_gone_on_with_and_no_row_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    feed = filled()
    wanted, ended, step = expected(feed), True, 0
    while ended:
        step += 1
        folder, ended = tmp_path / str(step), False
        with monkeypatch.context() as patch:
            kill_at(patch, step, after=after)
            try:
                exported(feed, folder, file_rows=20)
            except Killed:
                ended = True
        if ended:
            assert len(rows_in(folder)) <= len(wanted), "files that can be seen are whole"
        exported(feed, folder, file_rows=13)
        assert bare(rows_in(folder)) == wanted
    assert step > 10


@pytest.mark.slow
def test_a_run_whose_requests_fail_is_gone_on_with(tmp_path: Path) -> None:
    feed, luck = filled(), random.Random(7)
    wanted, tries = expected(feed), 0
    while True:
        tries += 1
        left = [luck.randrange(1, 30)]

        def execute(op: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return feed.tables.execute(op)

        reader = feed.feed.on(replace(feed.feed.driver, execute=execute))
        try:
            export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
            run_feed(export, lambda: reader, file_rows=5)  # noqa: B023
            break
        except Killed:
            continue
    assert tries > 2
    assert bare(rows_in(tmp_path / "out")) == wanted


def test_a_complete_export_is_not_written_again(tmp_path: Path) -> None:
    feed = filled()
    counts = exported(feed, tmp_path / "out")
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    feed.streams.append("Cart-1", [Event(type="later")])
    feed.index()
    assert exported(feed, tmp_path / "out") == counts
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"format": "csv"}, "format is parquet, not csv"),
        ({"categories": ("Cart", "Order")}, "categories is none, not Cart, Order"),
        ({"since": 5}, "since is none, not 1970-01-01T00:00:00.000005Z"),
    ],
)
def test_an_export_of_something_else_is_never_overwritten(
    tmp_path: Path, other: dict[str, Any], why: str
) -> None:
    feed = filled()
    exported(feed, tmp_path / "out")
    with pytest.raises(InvalidInput, match=f"folder: contains a different export: {why}"):
        exported(feed, tmp_path / "out", **other)
    assert bare(rows_in(tmp_path / "out")) == expected(feed)


@pytest.mark.slow
def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InvalidInput, match="folder: must be new or empty"):
        exported(filled(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    with pytest.raises(InvalidInput, match="folder: must be new or empty"):
        exported(filled(), tmp_path / "letter.txt")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"export":2}', "another version"),
        ('{"export":1}', "cannot be read"),
    ],
)
def test_an_export_that_cannot_be_read_is_refused(tmp_path: Path, said: str, why: str) -> None:
    (tmp_path / "_export").mkdir()
    (tmp_path / "_export" / "export.json").write_text(said)
    with pytest.raises(InvalidInput, match=f"folder: contains an export.*{why}"):
        exported(filled(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS)
def test_a_file_that_lost_a_row_is_named(tmp_path: Path, format_: Format) -> None:
    feed = filled()
    exported(feed, tmp_path / "out", format=format_)
    first, *_ = sorted((tmp_path / "out").glob(f"*.{format_}"))
    if format_ == "parquet":
        pq.write_table(pq.read_table(first).slice(1), first)
    else:
        first.write_text("".join(first.read_text("utf-8").splitlines(keepends=True)[:-1]))
    with pytest.raises(CorruptData, match=f"{first} has .* rows, but .* were read"):
        exported(feed, tmp_path / "out", format=format_)


def test_a_file_of_strangers_among_the_parts_is_named(tmp_path: Path) -> None:
    feed = filled()
    exported(feed, tmp_path / "out")
    (tmp_path / "out" / "more.parquet").write_bytes(b"")
    with pytest.raises(CorruptData, match="more.parquet does not belong to the export"):
        exported(feed, tmp_path / "out")


@pytest.mark.parametrize("place", [0, -1])
def test_a_complete_export_of_which_a_part_was_removed_is_not_taken_for_whole(
    tmp_path: Path, place: int
) -> None:
    feed = filled()
    exported(feed, tmp_path / "out")
    export = parts.load_export(tmp_path / "out")
    assert export is not None
    part = [part for range_ in export.ranges for part in export.parts(range_)][place]
    for path in (export.note(part.partition, part.start), export.file(part.partition, part.start)):
        path.unlink(missing_ok=True)
    missing = f"partition {part.partition} has no files after {part.start}"
    with pytest.raises(CorruptData, match=missing):
        exported(feed, tmp_path / "out")


def test_two_runs_do_not_write_one_range(tmp_path: Path) -> None:
    feed = filled()
    export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
    (range_, *_) = export.ranges
    writing = runs.write_range(export, range_, lambda: FeedOrigin(feed.feed), 10)
    next(writing)
    with pytest.raises(InvalidInput, match="folder: is being written by another export"):
        run_feed(export, lambda: feed.feed)
    writing.close()
    run_feed(export, lambda: feed.feed)
    assert bare(rows_in(tmp_path / "out")) == expected(feed)


def opened() -> FeedReader:
    """A feed that every process makes alike."""
    return filled(appends=20).feed


@pytest.mark.slow
def test_workers_side_by_side_write_what_one_does(tmp_path: Path) -> None:
    export = begin_feed(opened(), tmp_path / "out", ExportScope(source="here", format="ndjson"))
    heard = list[int]()
    run_feed(export, opened, workers=2, report=lambda counts: heard.append(counts.rows))
    found = bare(rows_in(tmp_path / "out", "ndjson"))
    assert [(row["stream"], row["index"], row["data"]) for row in found] == [
        (row["stream"], row["index"], row["data"]) for row in expected(filled(appends=20))
    ]
    assert heard[-1] == len(found)


@pytest.mark.parametrize("entries", [0, 3, 1_023, 1_024, 20_000])
def test_a_chain_of_epochs_is_cut_into_ranges_without_gap(entries: int) -> None:
    def cut(start: Checkpoint, end: Checkpoint) -> list[FeedRange]:
        return list(ranges_of(4, start, end, lambda _partition, _epoch: entries))

    end = Checkpoint.of(37, 5)
    for start in (Checkpoint(0), Checkpoint.of(3, 9), Checkpoint.of(30, 9), Checkpoint.of(37, 4)):
        found = cut(start, end)
        assert (found[0].start, found[-1].end) == (start, end)
        assert all(one.end == two.start and one.start < one.end for one, two in pairwise(found))
    assert cut(end, end) == []
    assert len(cut(Checkpoint(0), end)) == 19
    assert len(cut(Checkpoint(0), Checkpoint.of(800, 0))) == 100


def test_one_epoch_is_cut_too_where_it_has_enough_entries() -> None:
    def sizes(epochs: int, entries: int, last: int) -> list[int]:
        end, found = Checkpoint.of(epochs - 1, last), list[int]()
        for each in ranges_of(0, Checkpoint(0), end, lambda _partition, _epoch: entries):
            start, until = Checkpoint(each.start), Checkpoint(each.end)
            found.append((until.offset if until.epoch == start.epoch else entries) - start.offset)
        return found

    assert sizes(1, 0, 16_000) == [1_000] * 16
    assert sizes(1, 0, 1_023) == [1_023]
    assert sizes(1, 0, 1_600) == [512, 512, 576]
    assert sizes(2, 8_000, 400) == [1_000] * 8 + [400]
    assert sizes(17, 8_000, 400) == [8_000] * 16 + [400]


def test_an_empty_feed_is_an_export_without_rows(tmp_path: Path) -> None:
    assert exported(MemoryStore(), tmp_path / "out") == ExportCounts()
    assert rows_in(tmp_path / "out") == []


def test_the_wanted_is_refused_by_its_field(tmp_path: Path) -> None:
    for field, of in (
        ("format", {"format": "xml"}),
        ("until", {"since": 2, "until": 2}),
        ("categories", {"categories": "Cart"}),
    ):
        with pytest.raises(InvalidInput) as refused:
            ExportScope(source="here", **of)
        assert refused.value.field == field


def test_ranges_are_kept_for_the_next_run(tmp_path: Path) -> None:
    feed = filled()
    export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
    assert parts.load_export(tmp_path / "out") == export
    assert isinstance(export, EventExport)
    assert all(isinstance(each, FeedRange) for each in export.ranges)


@pytest.mark.slow
def test_a_feed_of_one_epoch_is_read_in_ranges_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origins, "ENTRIES", 2)
    feed = filled()
    export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
    assert len(export.ranges) > 3
    run_feed(export, lambda: feed.feed, file_rows=7)
    assert bare(rows_in(tmp_path / "out")) == expected(feed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("export.json", {"complete": True}),
        ("export.json", {"ranges": []}),
        ("part", {"end": 1 << 40}),
        ("part", {"counts": {"read": 0, "rows": 0}}),
        ("part", {"end": "soon"}),
    ],
)
def test_what_is_said_of_an_export_and_was_changed_is_noticed(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    feed = filled()
    folder = tmp_path / "out"
    export = begin_feed(feed.feed, folder, ExportScope(source="here"))
    (range_, *_) = export.ranges
    writing = runs.write_range(export, range_, lambda: FeedOrigin(feed.feed), 10)
    next(writing)
    writing.close()
    path = folder / "_export" / "export.json" if name == "export.json" else export.note(*range_[:2])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises((InvalidInput, CorruptData), match="its checksum does not match"):
        exported(feed, folder)
    said = json.loads(path.read_text())
    del said["sum"]
    path.write_text(json.dumps(said | {"sum": notes.checksum(said)}))
    if "end" in change:
        with pytest.raises(
            CorruptData, match="as its end, which is outside its range|was changed or damaged"
        ):
            exported(feed, folder)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    feed = filled()
    exported(feed, tmp_path / "out")
    first, *_ = sorted((tmp_path / "out").glob("*.parquet"))
    first.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(CorruptData, match=f"{first} cannot be read"):
        exported(feed, tmp_path / "out")


def test_two_exports_that_begin_at_once_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, asked = filled(), list[EventExport]()
    keep = parts.save_export

    def keeping(export: EventExport) -> None:
        if not asked:
            asked.append(export)
            with pytest.raises(InvalidInput, match="is being written by another export"):
                begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
        keep(export)

    monkeypatch.setattr(parts, "save_export", keeping)
    begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
    assert begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here")) == asked[0]


def test_a_second_run_is_refused_before_it_takes_a_range_of_the_first(tmp_path: Path) -> None:
    feed = filled()
    export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
    refused = list[str]()

    def told(_: ExportCounts) -> None:
        with pytest.raises(InvalidInput, match="is being written by another export") as second:
            run_feed(export, lambda: feed.feed)
        refused.append(second.value.field)

    run_feed(export, lambda: feed.feed, report=told)
    assert refused
    assert bare(rows_in(tmp_path / "out")) == expected(feed)


@pytest.mark.slow
def test_events_that_have_grown_are_read_fewer_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origins, "WINDOW_BYTES", 400_000)
    feed, held = MemoryStore(), list[int]()
    for number in range(300):
        feed.streams.append(f"Cart-{number % 9}", [Event(type="a", data=b"1")])
    for number in range(200):
        large = random.Random(number).randbytes(20_000)
        feed.streams.append(f"Cart-{number % 9}", [Event(type="a", data=large)])
        feed.index()
    entries: Any = getattr(origins, "_Entries")  # noqa: B009  how much is held shows nowhere else
    window = entries._window  # noqa: SLF001  likewise

    def measured(self: Any) -> Any:
        held.append(self._held)
        return window(self)

    monkeypatch.setattr(entries, "_window", measured)
    exported(feed, tmp_path / "out", file_rows=1000)
    assert bare(rows_in(tmp_path / "out")) == expected(feed)
    assert max(held) <= 3 * 400_000


@pytest.mark.slow
def test_a_stream_whose_events_lie_all_over_a_feed_is_read_once(tmp_path: Path) -> None:
    feed, asked = MemoryStore(), list[str]()
    for number in range(400):
        feed.streams.append(f"Cart-{number % 20}", [Event(type="a", data=b"%d" % number)] * 5)
        if number % 2 == 1:
            feed.index()

    def execute(op: Any) -> Any:
        asked.append(getattr(op, "table", ""))
        return feed.tables.execute(op)

    reader = feed.feed.on(replace(feed.feed.driver, execute=execute))
    run_feed(begin_feed(reader, tmp_path / "out", ExportScope(source="here")), lambda: reader)
    assert asked.count("streams") < 4 * 20
    assert bare(rows_in(tmp_path / "out")) == expected(feed)


def test_notes_are_not_read_again_after_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, heard, read = filled(), list[int](), list[FeedRange]()
    load = EventExport._part  # noqa: SLF001  it reads a note

    def counted(export: EventExport, left: FeedRange) -> ExportPart | None:
        read.append(left)
        return load(export, left)

    monkeypatch.setattr(EventExport, "_part", counted)
    export = begin_feed(feed.feed, tmp_path / "out", ExportScope(source="here"))
    counts = run_feed(export, lambda: feed.feed, file_rows=1, report=lambda counts: heard.append(counts.rows))
    assert heard == sorted(heard)
    assert heard[-1] == counts.rows
    assert len(heard) > 20
    assert len(read) < 5 * len(heard)
