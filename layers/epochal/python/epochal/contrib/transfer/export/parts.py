"""Exports of events to a folder, as rows in files. Each part of an export is either complete or does not exist.

    events/000000-0000000000000000000.parquet      rows of a part: of a partition, from a checkpoint on
    events/_export/export.json                     note with the export's scope, its ranges, and whether it is complete
    events/_export/000000-….json                   note of a part: its end, and its numbers of events and rows

The parts of a range follow each other without gaps: each begins where the one before it ends. The note of a part is
written first, then its file, each of them atomically; when both exist, the part is finished. If a run is interrupted,
the next one goes on behind the last finished part. So no row is lost, and none is written twice.

Events are read from an origin (`export.origins`): a range is some entries of the feed, or a segment of a table. Workers
write ranges concurrently. One run at a time writes to a folder, and two workers never write the same range.

Each note has a checksum, so that accidental edits are noticed. It does not protect against deliberate forgery.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from epochal.contrib.transfer.export import files
from epochal.contrib.transfer.export.files import FORMATS, Columns, Format, Write, count, ready, written
from epochal.contrib.transfer.export.locks import locked
from epochal.contrib.transfer.rows import VERSION, Row, time_text
from epochal.deciders.codecs import EventCodec
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.filters import check_filter
from epochal.lazy_dataclasses import asdict, dataclass, field, replace
from epochal.model.kinds import must_be_whole
from epochal.named_objects import load_object

FILE_ROWS: Final = 250_000
"""Rows of a file, about. A run that was interrupted repeats at most this many for each worker."""

FILE_BYTES: Final = 256 * 1024 * 1024
BATCH_ROWS: Final = 16_384
BATCH_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies held in memory before they are written as a row group."""

PROGRESS_SECONDS: Final = 1.0

FORM: Final = 1
"""Version of the JSON notes of an export. An export with another version must be begun anew."""

RUN: Final = "run.lock"
"""Name of the file whose lock the run that writes a folder holds."""

ROW_BYTES: Final = 200
"""Estimated bytes of a row without its bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportScope:
    """Selection of the events that an export writes, with the format and the columns of its files.

    Attributes:
        source: name of the store and tables that the events come from, to tell exports apart
        format: file format
        categories: categories of the exported streams; empty for all
        since: earliest event time, included, in microseconds since 1970; None for no bound
        until: latest event time, excluded, in microseconds since 1970; None for no bound
        start: place in the feed where the export begins, as the user gave it
        codec: `module:name` of the codec whose events' fields become columns; empty for none
        columns: names and types of these columns
    """

    source: str
    format: Format = "parquet"
    categories: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    start: str = "beginning"
    codec: str = ""
    columns: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Raise `InvalidInput` unless format, categories and times are valid."""
        if self.format not in FORMATS:
            raise InvalidInput("format", f"must be one of {', '.join(FORMATS)}")
        check_filter(self.categories, None)
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidInput("until", "must be later than since")

    def has(self, row: Row) -> bool:
        """Whether a row's event time lies from `since` up to `until`.

        Without bounds every row does. With one, a row without a time does not: events that are gone have none.
        """
        if self.since is None and self.until is None:
            return True
        if row.time is None:
            return False
        return (self.since is None or row.time >= self.since) and (
            self.until is None or row.time < self.until
        )


class FeedRange(NamedTuple):
    """Range of events for one worker: entries of a feed partition, or one segment of a table.

    Attributes:
        partition: partition of the feed, or first partition of a table's source
        start: checkpoint of the first entry, or number of the segment
        end: checkpoint behind the last entry, or number of the next segment
    """

    partition: int
    start: int
    end: int


@dataclass(slots=True, kw_only=True)
class ExportCounts:
    """Counts of the events that an export read, and of the rows that it wrote.

    Attributes:
        read: events read from the origin
        rows: events written as rows
        again: events skipped, since their row is written in another of their streams
        outside: events skipped, since their time is not within the scope
        gone: rows of events that are gone
        faults: rows of events that cannot be read
    """

    read: int = 0
    rows: int = 0
    again: int = 0
    outside: int = 0
    gone: int = 0
    faults: int = 0

    def add(self, other: ExportCounts) -> None:
        """Add other counts to these."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def whole(self) -> bool:
        """Whether every event that was read either became a row or was skipped for a reason."""
        return self.read == self.rows + self.again + self.outside


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExport:
    """Export of events as rows in the files of a folder.

    Attributes:
        folder: folder with the files
        scope: selection of events
        ranges: all ranges of the export, up to the tail of the feed when the export began
        complete: whether all ranges are written and checked
    """

    folder: Path
    scope: ExportScope
    ranges: tuple[FeedRange, ...]
    complete: bool = False

    @property
    def counts(self) -> ExportCounts:
        """Sum of the counts of all finished parts."""
        sums = ExportCounts()
        for range_ in self.ranges:
            for part in self.parts(range_):
                sums.add(part.counts)
        return sums

    def parts(self, range_: FeedRange) -> Iterator[ExportPart]:
        """Yield the finished parts of a range in order, up to the first one that is missing.

        Raises:
            CorruptData: the note of a part is damaged, or was edited.
        """
        rest = range_
        while rest.start < rest.end and (part := self._part(rest)) is not None:
            yield part
            rest = rest._replace(start=part.end)

    def file(self, partition: int, start: int) -> Path:
        """Return the path of the file with a part's rows."""
        return self.folder / f"{part_name(partition, start)}.{self.scope.format}"

    def note(self, partition: int, start: int) -> Path:
        """Return the path of the JSON file with the end and the counts of a part."""
        return notes_folder(self.folder) / f"{part_name(partition, start)}.json"

    def _part(self, rest: FeedRange) -> ExportPart | None:
        """Load the part that begins at the start of a range; None if that part is not finished.

        Raises:
            CorruptData: the note of the part is damaged, or was edited.
        """
        path = self.note(rest.partition, rest.start)
        try:
            note = checked_note(json.loads(path.read_bytes()))
            part = ExportPart(
                partition=rest.partition,
                start=rest.start,
                end=int(note["end"]),
                counts=ExportCounts(**note["counts"]),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptData(f"{path} is not what was written there: {error}") from error
        if not rest.start < part.end <= rest.end:
            raise CorruptData(f"{path} says that it ends at {part.end}")
        return part if not part.counts.rows or self.file(rest.partition, rest.start).exists() else None


@dataclass(slots=True, kw_only=True)
class ExportPart:
    """Part of a range, from `start` up to `end`, whose rows are in one file."""

    partition: int
    start: int
    end: int
    counts: ExportCounts = field(default_factory=ExportCounts)


class RowBatch(NamedTuple):
    """Batch of rows of a range, with the place behind it.

    Attributes:
        rows: rows, which may yet be left out by the scope's times
        end: place from which a later run can go on; the range's start where the origin has no such place yet
        read: number of events that were read for the batch
        size: bytes of the rows
    """

    rows: list[Row]
    end: int
    read: int
    size: int

    def counts(self, kept: Sequence[Row]) -> ExportCounts:
        """Count the events read for the batch, those skipped, and the rows `kept` that are written."""
        return ExportCounts(
            read=self.read,
            rows=len(kept),
            again=self.read - len(self.rows),
            outside=len(self.rows) - len(kept),
            gone=sum(row.gone for row in kept),
            faults=sum(row.fault is not None for row in kept),
        )


class Origin(Protocol):
    """Source that an export reads its events from."""

    def batches(self, scope: ExportScope, range_: FeedRange) -> Iterator[RowBatch]:
        """Yield the rows of a range in batches, from its start on, always in the same order."""


def load_or_begin(folder: Path, scope: ExportScope, ranges: Callable[[], Iterable[FeedRange]]) -> EventExport:
    """Load the export in a folder, or begin a new one there.

    Args:
        folder: folder of the files; made where it does not exist
        scope: selection of events
        ranges: function that returns the ranges of a new export

    Raises:
        InvalidInput: the folder has an export of something else, or other files; or Parquet cannot be written here.
    """
    ready(scope.format)
    scope = replace(scope, columns=tuple((column.name, column.type) for column in columns_of(scope).more))
    if (existing := load_export(folder)) is None:
        if folder.exists() and (not folder.is_dir() or any(map(_is_foreign, folder.rglob("*")))):
            raise InvalidInput(
                "folder", "must be new or empty, or have the export that is to be gone on with"
            )
        export = EventExport(folder=folder, scope=scope, ranges=tuple(ranges()))
        notes_folder(folder).mkdir(parents=True, exist_ok=True)
        with locked(notes_folder(folder) / RUN):
            if (existing := load_export(folder)) is None:
                save_export(export)
                return export
    if existing.scope != scope:
        raise InvalidInput(
            "folder", f"has an export of something else: {_describe_difference(existing.scope, scope)}"
        )
    return existing


def columns_of(scope: ExportScope) -> Columns:
    """Return the columns of the files of an export with a scope, with those of the codec's events.

    Raises:
        InvalidInput: the codec cannot be imported, or is no codec.
    """
    if not scope.codec:
        return Columns()
    from epochal.contrib.schemas.columns import columns  # noqa: PLC0415  for few

    module, _, name = scope.codec.partition(":")
    try:
        codec = getattr(load_object(module), name, None)
    except (ModuleNotFoundError, ValueError) as error:
        raise InvalidInput("codec", f"{scope.codec} is not there: {error}") from error
    if not isinstance(codec, EventCodec):
        raise InvalidInput("codec", f"{scope.codec} is no codec: module:name of one is")
    return Columns(columns(codec))


def _is_foreign(path: Path) -> bool:
    """Whether a path is a file of somebody else, so that no export may begin in its folder.

    Paths that an export leaves when it ends before it has begun are none.
    """
    return path.name not in ("_export", ".export.json.tmp", RUN)


def load_export(folder: Path) -> EventExport | None:
    """Load the export in a folder, or return None if there is none.

    Raises:
        InvalidInput: the export cannot be read, or is of another version of Epochal.
    """
    try:
        note = json.loads((notes_folder(folder) / "export.json").read_bytes())
        if note["export"] != FORM:
            raise InvalidInput("folder", "has an export of another version of Epochal")
        note = checked_note(note)
        scope = note["wanted"]
        scope |= {
            "categories": tuple(scope["categories"]),
            "columns": tuple(map(tuple, scope["columns"])),
        }
        ranges = tuple(FeedRange(*bounds) for bounds in note["ranges"])
        return EventExport(
            folder=folder, scope=ExportScope(**scope), ranges=ranges, complete=note["complete"]
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("folder", f"has an export that cannot be read: {error}") from error


def run(
    export: EventExport,
    opener: Callable[[], Origin],
    *,
    workers: int = 1,
    file_rows: int = FILE_ROWS,
    report: Callable[[ExportCounts], object] = lambda _: None,
) -> ExportCounts:
    """Write the missing parts of an export, check all of its files, and return its counts.

    Args:
        export: export to go on with
        opener: function that opens the origin; with several workers each calls it in its own process
        workers: number of processes that write ranges side by side
        file_rows: rows of a file, about
        report: function called with the counts so far, as the export proceeds

    Raises:
        CorruptData: a file has other rows than were read, or the note of a part was changed. The error names the file,
            which stays.
        InvalidInput: another run is at work in the folder.
    """
    must_be_whole(workers, "workers", 1)
    must_be_whole(file_rows, "file_rows", 1)
    if export.complete:
        return _checked(export)
    with locked(notes_folder(export.folder) / RUN):
        if workers == 1:
            counts = export.counts
            for range_ in export.ranges:
                for part in write_range(export, range_, opener, file_rows):
                    counts.add(part.counts)
                    report(replace(counts))
        else:
            _side_by_side(export, opener, workers, file_rows, report)
        counts = _checked(export)
        if not counts.rows:
            with written(_empty(export), export.scope.format, columns_of(export.scope)) as write:
                write(())
        for leftover in export.folder.glob(f".*.{export.scope.format}.tmp"):
            leftover.unlink()  # left by a run that was killed
        save_export(replace(export, complete=True))
    return counts


def write_range(
    export: EventExport, range_: FeedRange, opener: Callable[[], Origin], file_rows: int = FILE_ROWS
) -> Generator[ExportPart, None, None]:
    """Write the missing parts of a range one after another, and yield each when it is finished.

    Args:
        export: export that the range belongs to
        range_: range of the export
        opener: function that opens the origin; called only if a part is missing
        file_rows: rows of a file, about

    Raises:
        InvalidInput: another process writes the range.
        CorruptData: events are missing or doubled, or the note of a part was changed.
    """
    with locked(notes_folder(export.folder) / f"{part_name(range_.partition, range_.start)}.lock"):
        rest = range_
        for part in export.parts(range_):
            rest = rest._replace(start=part.end)
        if rest.start < rest.end:
            batches = _gathered(opener().batches(export.scope, rest), min(file_rows, BATCH_ROWS))
            columns = columns_of(export.scope)
            while rest.start < rest.end:
                part = _write_part(export, rest, batches, columns, file_rows)
                rest = rest._replace(start=part.end)
                yield part


def _write_part(
    export: EventExport, rest: FeedRange, batches: Iterator[RowBatch], columns: Columns, file_rows: int
) -> ExportPart:
    """Write the next part of a range, file and note, and return it.

    A part ends behind a batch of the origin, once its file has enough rows or bytes, or at the end of the range.

    Raises:
        CorruptData: events are missing or doubled.
    """
    part = ExportPart(partition=rest.partition, start=rest.start, end=rest.end)
    path, size = export.file(rest.partition, rest.start), 0
    with _if_any(path, export.scope.format, columns) as write:
        for batch in batches:
            rows = [row for row in batch.rows if export.scope.has(row)]
            write(rows)
            part.counts.add(batch.counts(rows))
            size += batch.size
            full = part.counts.rows >= file_rows or part.counts.read >= 4 * file_rows or size >= FILE_BYTES
            if full and batch.end > rest.start:
                part.end = batch.end
                break
        if not part.counts.whole:
            raise CorruptData(f"{path}: events are missing or doubled: {part.counts}")
        note = {"end": part.end, "counts": asdict(part.counts)}
        write_note(export.note(rest.partition, rest.start), note)
    return part


def _gathered(batches: Iterable[RowBatch], most: int) -> Iterator[RowBatch]:
    """Join batches of rows into larger ones, of `most` events or a little more than `BATCH_BYTES`."""
    rows, read, size = list[Row](), 0, 0
    last: RowBatch | None = None
    for batch in batches:
        last = batch
        rows += batch.rows
        read += batch.read
        size += batch.size
        if read >= most or size >= BATCH_BYTES:
            yield RowBatch(rows, batch.end, read, size)
            rows, read, size, last = [], 0, 0, None
    if last is not None:
        yield RowBatch(rows, last.end, read, size)


def _side_by_side(
    export: EventExport,
    opener: Callable[[], Origin],
    workers: int,
    file_rows: int,
    report: Callable[[ExportCounts], object],
) -> None:
    """Write the ranges of an export in several processes, and report the counts about once a second."""
    with ProcessPoolExecutor(workers, get_context("spawn"), end_with_parent) as pool:
        running = {pool.submit(_whole_range, export, range_, opener, file_rows) for range_ in export.ranges}
        try:
            while running:
                finished, running = wait(running, timeout=PROGRESS_SECONDS, return_when=FIRST_COMPLETED)
                for task in finished:
                    task.result()
                report(export.counts)
        finally:
            pool.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """Start a thread that ends this worker process when its parent process ends.

    A worker whose parent was killed would otherwise keep its range locked against the next run.
    """

    def watch() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _whole_range(
    export: EventExport, range_: FeedRange, opener: Callable[[], Origin], file_rows: int
) -> None:
    """Write all missing parts of a range, as the task of a worker process."""
    for _ in write_range(export, range_, opener, file_rows):
        pass


def _checked(export: EventExport) -> ExportCounts:
    """Check that every part is finished and its file has all rows, and return the sum of the counts.

    Raises:
        CorruptData: a part is missing, a file has another number of rows, or a file belongs to no part.
    """
    counts, ours = ExportCounts(), set[Path]()
    for range_ in export.ranges:
        position = range_.start
        for part in export.parts(range_):
            position = part.end
            counts.add(part.counts)
            path = export.file(part.partition, part.start)
            if part.counts.rows:
                ours.add(path)
                if (rows := _count(path, export.scope.format)) != part.counts.rows:
                    raise CorruptData(f"{path} has {rows:,} rows, and {part.counts.rows:,} were read")
        if position != range_.end:
            raise CorruptData(
                f"{export.folder}: what is behind {position} is missing of partition {range_.partition}"
            )
    strangers = set(export.folder.glob(f"*.{export.scope.format}")) - ours - {_empty(export)}
    if strangers:
        raise CorruptData(f"{min(strangers)} is no part of the export beside it")
    return counts


def _count(path: Path, format_: Format) -> int:
    """Count the rows in a file of an export.

    Raises:
        CorruptData: the file cannot be read.
    """
    try:
        return count(path, format_)
    except (OSError, ValueError) as error:  # errors of Arrow are subclasses of these
        raise CorruptData(f"{path} cannot be read: {error}") from error


def _empty(export: EventExport) -> Path:
    """Return the path of the file that an export without rows gets, so that readers find its columns."""
    return export.folder / f"none.{export.scope.format}"


@contextmanager
def _if_any(path: Path, format_: Format, columns: Columns) -> Iterator[Callable[[Sequence[Row]], None]]:
    """Yield a function that writes rows to a file, and makes the file with the first row."""
    with ExitStack() as stack:
        write: Write | None = None

        def put(rows: Sequence[Row]) -> None:
            nonlocal write
            if rows:
                write = write or stack.enter_context(written(path, format_, columns))
                write(rows)

        yield put


def save_export(export: EventExport) -> None:
    """Write scope, ranges and state of an export to `export.json` in its folder, atomically."""
    note = {
        "export": FORM,
        "rows": VERSION,
        "wanted": asdict(export.scope),
        "ranges": export.ranges,
        "complete": export.complete,
    }
    write_note(notes_folder(export.folder) / "export.json", note)


def write_note(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object with its checksum to a file, atomically and synced to disk."""
    load_or_begin = path.with_name(f".{path.name}.tmp")
    with load_or_begin.open("w", encoding="utf-8") as file:
        json.dump(value | {"sum": checksum(value)}, file)
        file.flush()
        os.fsync(file.fileno())
    files.replace(load_or_begin, path)


def checked_note(note: dict[str, Any]) -> dict[str, Any]:
    """Check the checksum of a JSON note, and return the note without it.

    Raises:
        ValueError: the note was changed after it was written.
    """
    if note.pop("sum", None) != checksum(note):
        raise ValueError("its sum is another")
    return note


def checksum(value: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON object, as hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def notes_folder(folder: Path) -> Path:
    """Return the folder of an export's notes.

    Readers of folders, as pyarrow's, skip names that begin with `_`.
    """
    return folder / "_export"


def part_name(partition: int, start: int) -> str:
    """Return the name of a part's files, without an ending."""
    return f"{partition:06d}-{start:019d}"


def _describe_difference(existing: ExportScope, requested: ExportScope) -> str:
    """Describe in words how the scope of the export in a folder differs from the requested one."""
    return ", ".join(
        f"{name} is {_format_value(value)}, not {_format_value(asdict(requested)[name])}"
        for name, value in asdict(existing).items()
        if value != asdict(requested)[name]
    )


def _format_value(value: Any) -> str:
    """Format a value of a scope for an error message."""
    if isinstance(value, int):
        return time_text(value)
    if isinstance(value, tuple):
        value = ", ".join(" ".join(member) if isinstance(member, tuple) else member for member in value)
    return value or "none"


def size_of(row: Row) -> int:
    """Estimate the bytes that a row takes."""
    return ROW_BYTES + sum(len(text) for text in (row.data, row.data64, row.metadata, row.metadata64) if text)
