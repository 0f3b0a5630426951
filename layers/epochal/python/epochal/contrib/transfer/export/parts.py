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

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from epochal.contrib.transfer.export.files import FORMATS, Columns, Format, ready
from epochal.contrib.transfer.export.locks import locked
from epochal.contrib.transfer.export.notes import checked_note, notes_folder, part_name, write_note
from epochal.contrib.transfer.rows import VERSION, Row, time_text
from epochal.deciders.codecs import EventCodec
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.filters import check_filter
from epochal.lazy_dataclasses import asdict, dataclass, field, replace
from epochal.named_objects import load_object

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
        """Whether a row's time is from `since` to before `until`; without these, True for every row.

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
            raise CorruptData(f"{path} was changed or damaged after it was written: {error}") from error
        if not rest.start < part.end <= rest.end:
            raise CorruptData(f"{path} gives {part.end} as its end, which is outside its range")
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

    def counts(self, rows: Sequence[Row]) -> ExportCounts:
        """Return the counts of a batch of which `rows` are written: read, written, skipped, gone and faulty."""
        return ExportCounts(
            read=self.read,
            rows=len(rows),
            again=self.read - len(self.rows),
            outside=len(self.rows) - len(rows),
            gone=sum(row.gone for row in rows),
            faults=sum(row.fault is not None for row in rows),
        )


class Origin(Protocol):
    """Source that an export reads its events from."""

    def batches(self, scope: ExportScope, range_: FeedRange) -> Iterator[RowBatch]:
        """Yield the rows of a range in batches, from its start on, always in the same order."""


def load_or_begin(folder: Path, scope: ExportScope, ranges: Callable[[], Iterable[FeedRange]]) -> EventExport:
    """Load a folder's export, or begin and save one; raise if it has another scope or foreign files.

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
            raise InvalidInput("folder", "must be new or empty, or contain the export to continue")
        export = EventExport(folder=folder, scope=scope, ranges=tuple(ranges()))
        notes_folder(folder).mkdir(parents=True, exist_ok=True)
        with locked(notes_folder(folder) / RUN):
            if (existing := load_export(folder)) is None:
                save_export(export)
                return export
    if existing.scope != scope:
        raise InvalidInput(
            "folder", f"contains a different export: {_describe_difference(existing.scope, scope)}"
        )
    return existing


def columns_of(scope: ExportScope) -> Columns:
    """Return the columns of an export's files, with its codec's; raise if the codec cannot be loaded.

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
        raise InvalidInput("codec", f"{scope.codec} cannot be loaded: {error}") from error
    if not isinstance(codec, EventCodec):
        raise InvalidInput("codec", f"{scope.codec} is not a codec; name one as module:name")
    return Columns(columns(codec))


def _is_foreign(path: Path) -> bool:
    """Whether a path is a file of somebody else, so that no export may begin in its folder.

    Paths that an export leaves when it ends before it has begun are none.
    """
    return path.name not in ("_export", ".export.json.tmp", RUN)


def load_export(folder: Path) -> EventExport | None:
    """Load the export in a folder; return None if there is none, raise if it cannot be read.

    Raises:
        InvalidInput: the export cannot be read, or is of another version of Epochal.
    """
    try:
        note = json.loads((notes_folder(folder) / "export.json").read_bytes())
        if note["export"] != FORM:
            raise InvalidInput("folder", "contains an export that another version of Epochal wrote")
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
        raise InvalidInput("folder", f"contains an export that cannot be read: {error}") from error


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
