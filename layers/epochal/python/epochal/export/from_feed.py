"""An export of a feed: every event that it had when the export began, as rows of files in a folder.

    events/000000-0000000000000000000.parquet      rows of a part: of a partition, from a checkpoint on
    events/_export/export.json                     what the export is of, how far it goes, and whether it is complete
    events/_export/000000-….json                   of a part: where it ends, and how many events and rows it has

The parts of a range follow each other without gap: one begins where the one before it ends. First comes what is said of
a part, then its file, each whole or not at all, and both together say that the part is done. Whatever ends a run,
the next one goes on behind the last part that is done; so no row is lost, and none is there twice.

A range is some epochs of a partition. Workers take ranges side by side, and hold a lock of theirs: two runs do not
write one range.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from itertools import chain, islice
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from epochal.deciders.codecs import EventCodec
from epochal.errors import CorruptData, InvalidInput
from epochal.export import files
from epochal.export.files import FORMATS, Columns, Format, Write, count, ready, written
from epochal.feed.history import FEWEST, WINDOW, FeedEvent, events_of
from epochal.feed.reader import FeedReader, SpanReader, check_wanted, wanted
from epochal.index.checkpoints import Checkpoint, Place
from epochal.layout.port import Span
from epochal.model.events import TAG_STREAMS
from epochal.model.kinds import must_be_whole
from epochal.rows import VERSION, Row, row_of

FILE_ROWS: Final = 250_000
"""Rows of a file, about: what a run that ends in the middle does again."""

FILE_BYTES: Final = 256 * 1024 * 1024
BATCH_ROWS: Final = 16_384
BATCH_BYTES: Final = 16 * 1024 * 1024
"""Of bodies in memory, before they are written as a group of rows."""

EPOCHS: Final = 8
"""Of a range at most: some 16 MB of the index."""

RANGES: Final = 16
"""Of a partition, where it has enough epochs: each can be read by another worker."""

MOST_EVENTS: Final = 16_384
"""Read together. A stream is read once for all of its events among them."""

WINDOW_BYTES: Final = 32 * 1024 * 1024

PROGRESS_SECONDS: Final = 1.0

_ROW: Final = 200
"""Bytes reckoned for what a row has besides its bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportScope:
    """What an export is of.

    Attributes:
        source: whose feed, in words that tell it from others.
        categories: only streams of these; none for all.
        since, until: only what happened from the one on, and before the other, in microseconds since 1970.
        start: where in the feed it begins, as it was asked for.
        codec: `module:name` of a codec, whose events' fields are columns too; none where it is empty.
        columns: these, with their types.
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
        """Refuse what cannot be."""
        if self.format not in FORMATS:
            raise InvalidInput("format", f"must be one of {', '.join(FORMATS)}")
        check_wanted(self.categories, None)
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidInput("until", "must be later than since")

    def has(self, row: Row) -> bool:
        """Whether a row is of its time. What is gone has none."""
        if self.since is None and self.until is None:
            return True
        if row.time is None:
            return False
        return (self.since is None or row.time >= self.since) and (
            self.until is None or row.time < self.until
        )


class FeedRange(NamedTuple):
    """ExportPart of a partition's chain of epochs."""

    partition: int
    start: int
    end: int


@dataclass(slots=True, kw_only=True)
class ExportCounts:
    """What was met and written.

    Attributes:
        read: events that the index has.
        rows: of these, written.
        again: of these, met through another tag, and written where they are met first.
        outside: of these, not of the times that are wanted.
        gone, faults: of the rows, those of events that are gone, or cannot be read.
    """

    read: int = 0
    rows: int = 0
    again: int = 0
    outside: int = 0
    gone: int = 0
    faults: int = 0

    def add(self, other: ExportCounts) -> None:
        """Sum up."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def whole(self) -> bool:
        """Whether each event that was read became a row, or was left out for a reason."""
        return self.read == self.rows + self.again + self.outside


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExport:
    """An export in a folder.

    Attributes:
        ranges: that it has, up to where the feed was when it began.
    """

    folder: Path
    wanted: ExportScope
    ranges: tuple[FeedRange, ...]
    complete: bool = False

    @property
    def counts(self) -> ExportCounts:
        """Of all parts that are done."""
        sums = ExportCounts()
        for each in self.ranges:
            for part in self.parts(each):
                sums.add(part.counts)
        return sums

    def parts(self, range_: FeedRange) -> Iterator[ExportPart]:
        """The parts of a range that are done, one behind the other."""
        at = range_.start
        while at < range_.end and (part := self._part(range_.partition, at)) is not None:
            yield part
            at = part.end

    def file(self, partition: int, start: int) -> Path:
        """Where the rows of a part are."""
        return self.folder / f"{_name(partition, start)}.{self.wanted.format}"

    def note(self, partition: int, start: int) -> Path:
        """Where it is said what a part has."""
        return _notes(self.folder) / f"{_name(partition, start)}.json"

    def _part(self, partition: int, start: int) -> ExportPart | None:
        try:
            said = json.loads(self.note(partition, start).read_bytes())
        except FileNotFoundError:
            return None
        part = ExportPart(
            partition=partition, start=start, end=said["end"], counts=ExportCounts(**said["counts"])
        )
        return part if not part.counts.rows or self.file(partition, start).exists() else None


@dataclass(slots=True, kw_only=True)
class ExportPart:
    """Rows of a range, from a checkpoint up to another."""

    partition: int
    start: int
    end: int
    counts: ExportCounts = field(default_factory=ExportCounts)


def begin(feed: FeedReader, folder: Path, wanted: ExportScope, start: Place = "beginning") -> EventExport:
    """The export of a folder: the one that was begun there, or a new one.

    Raises:
        InvalidInput: the folder has an export of something else, or other files; or Parquet cannot be written here.
    """
    ready(wanted.format)
    wanted = replace(wanted, columns=tuple((each.name, each.type) for each in columns_of(wanted).more))
    if (found := found_in(folder)) is not None:
        if found.wanted != wanted:
            raise InvalidInput(
                "folder", f"has an export of something else: {_difference(found.wanted, wanted)}"
            )
        return found
    if folder.exists() and (not folder.is_dir() or any(map(_counts, folder.rglob("*")))):
        raise InvalidInput("folder", "must be new or empty, or have the export that is to be gone on with")
    ranges = [
        each
        for at in feed.partitions()
        for each in ranges_of(at.partition, feed.place(at.partition, start), at.tail)
    ]
    export = EventExport(folder=folder, wanted=wanted, ranges=tuple(ranges))
    _notes(folder).mkdir(parents=True, exist_ok=True)
    _keep(export)
    return export


def columns_of(wanted: ExportScope) -> Columns:
    """The columns of an export's files; raises `InvalidInput` where there is no such codec."""
    if not wanted.codec:
        return Columns()
    from epochal.schemas.columns import columns  # noqa: PLC0415  for few

    module, _, name = wanted.codec.partition(":")
    try:
        codec = getattr(import_module(module), name, None)
    except (ModuleNotFoundError, ValueError) as error:
        raise InvalidInput("codec", f"{wanted.codec} is not there: {error}") from error
    if not isinstance(codec, EventCodec):
        raise InvalidInput("codec", f"{wanted.codec} is no codec: module:name of one is")
    return Columns(columns(codec))


def _counts(path: Path) -> bool:
    """Whether there is something: an export that ended before it was begun has left next to nothing."""
    return path.name not in ("_export", ".export.json.tmp")


def found_in(folder: Path) -> EventExport | None:
    """The export that a folder has; None where there is none. Raises `InvalidInput` where it cannot be read."""
    try:
        said = json.loads((_notes(folder) / "export.json").read_bytes())
        if said["export"] != 1:
            raise InvalidInput("folder", "has an export of another version of Epochal")
        of = said["wanted"]
        of |= {"categories": tuple(of["categories"]), "columns": tuple(map(tuple, of["columns"]))}
        ranges = tuple(FeedRange(*each) for each in said["ranges"])
        return EventExport(folder=folder, wanted=ExportScope(**of), ranges=ranges, complete=said["complete"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("folder", f"has an export that cannot be read: {error}") from error


def ranges_of(partition: int, start: Checkpoint, end: Checkpoint) -> Iterator[FeedRange]:
    """A partition's chain of epochs, cut into ranges."""
    at, epochs = start, max(1, min(EPOCHS, (end.epoch - start.epoch) // RANGES))
    while at < end:
        following = min(Checkpoint.of((at.epoch // epochs + 1) * epochs, 0), end)
        yield FeedRange(partition, int(at), int(following))
        at = following


def run(
    export: EventExport,
    opener: Callable[[], FeedReader],
    *,
    workers: int = 1,
    file_rows: int = FILE_ROWS,
    told: Callable[[ExportCounts], object] = lambda _: None,
) -> ExportCounts:
    """Write what an export lacks, and hold it to what was read; what it then has.

    Args:
        opener: opens a reader of the feed; in a process of each worker, where there are several.
        told: hears how far it is.

    Raises:
        CorruptData: a file has other rows than were read. It is named, and stays.
        InvalidInput: another run is writing the same.
    """
    must_be_whole(workers, "workers", 1)
    must_be_whole(file_rows, "file_rows", 1)
    if export.complete:
        return _checked(export)
    if workers == 1:
        for each in export.ranges:
            for _ in write_range(export, each, opener, file_rows):
                told(export.counts)
    else:
        _side_by_side(export, opener, workers, file_rows, told)
    counts = _checked(export)
    if not counts.rows:
        with written(_empty(export), export.wanted.format, columns_of(export.wanted)) as write:
            write(())
    _keep(replace(export, complete=True))
    return counts


def write_range(
    export: EventExport, range_: FeedRange, opener: Callable[[], FeedReader], file_rows: int = FILE_ROWS
) -> Generator[ExportPart, None, None]:
    """Write the parts of a range that are not done, one after another."""
    with _alone(_notes(export.folder) / f"{_name(range_.partition, range_.start)}.lock"):
        at = range_.start
        for part in export.parts(range_):
            at = part.end
        if at < range_.end:
            batches = _batches(opener(), export.wanted, range_._replace(start=at), file_rows)
            columns = columns_of(export.wanted)
            while at < range_.end:
                part = _write_part(export, range_._replace(start=at), batches, columns, file_rows)
                at = part.end
                yield part


def _write_part(
    export: EventExport, left: FeedRange, batches: Iterator[_Batch], columns: Columns, file_rows: int
) -> ExportPart:
    """The next part, which ends with an entry of the index: a checkpoint is between entries."""
    part = ExportPart(partition=left.partition, start=left.start, end=left.end)
    path, size = export.file(left.partition, left.start), 0
    with _if_any(path, export.wanted.format, columns) as write:
        for batch in batches:
            rows = [row for row in batch.rows if export.wanted.has(row)]
            write(rows)
            part.counts.add(batch.counts(rows))
            size += batch.size
            if part.counts.rows >= file_rows or part.counts.read >= 4 * file_rows or size >= FILE_BYTES:
                part.end = batch.end
                break
        if not part.counts.whole:
            raise CorruptData(f"{path}: events are missing or doubled: {part.counts}")
        note = {"end": part.end, "counts": asdict(part.counts)}
        _write_json(export.note(left.partition, left.start), note)
    return part


class _Batch(NamedTuple):
    """Rows of whole entries of the index, the checkpoint behind these, how many events they have, and their bytes."""

    rows: list[Row]
    end: int
    read: int
    size: int

    def counts(self, kept: Sequence[Row]) -> ExportCounts:
        """With these of its rows."""
        return ExportCounts(
            read=self.read,
            rows=len(kept),
            again=self.read - len(self.rows),
            outside=len(self.rows) - len(kept),
            gone=sum(row.gone for row in kept),
            faults=sum(row.fault is not None for row in kept),
        )


def _batches(feed: FeedReader, wanted_: ExportScope, range_: FeedRange, most: int) -> Iterator[_Batch]:
    """The rows of a range, as many at a time as are written together."""
    rows, read, size = list[Row](), 0, 0
    for entry in _Entries(feed, wanted_, range_).read():
        rows += entry.rows
        read += entry.read
        size += entry.size
        if read >= min(most, BATCH_ROWS) or size >= BATCH_BYTES:
            yield _Batch(rows, entry.end, read, size)
            rows, read, size = [], 0, 0
    if read:
        yield _Batch(rows, range_.end, read, size)


class _Entries:
    """Reads the entries of a range, with their events."""

    def __init__(self, feed: FeedReader, wanted_: ExportScope, range_: FeedRange) -> None:
        self._feed, self._range = feed, range_
        self._categories, self._of = wanted_.categories or None, feed.categories(range_.partition)
        self._ahead = deque[tuple[int, list[Span]]]()
        self._largest = WINDOW_BYTES // WINDOW

    def read(self) -> Iterator[_Batch]:
        """The rows of each entry that has something wanted."""
        partition = self._range.partition
        events = events_of(self._spans(), self._feed.hydrate(partition), self._window)
        for event in events:
            end, spans = self._ahead.popleft()
            kinds = [kind for span in spans for kind in span.types]
            met = zip(kinds, chain((event,), islice(events, len(kinds) - 1)), strict=True)
            rows = [
                row_of(each, partition=partition, position=end, type=kind, category=self._of.of)
                for kind, each in met
                if self._first(each)
            ]
            sizes = [_size(row) for row in rows]
            self._largest = max(self._largest, *sizes) if sizes else self._largest
            yield _Batch(rows, end, len(kinds), sum(sizes))

    def _spans(self) -> Iterator[Span]:
        """The spans of the range. What was appended since is behind its end."""
        reader = SpanReader.begin(
            self._feed.driver, self._feed.table, self._range.partition, Checkpoint(self._range.start)
        )
        asked = wanted(lambda: self._of, self._categories, None)
        at, at_tail = self._range.start, False
        while at < self._range.end and not at_tail:
            page = reader.spans(limit=1, wanted=asked, seconds=inf, wait=0.0)
            at, at_tail = int(page.next), page.at_tail
            if page.spans and at <= self._range.end:
                self._ahead.append((at, list(page.spans)))
                yield from page.spans

    def _window(self) -> int:
        """Events that are read next: as many as have room, if each is as large as the largest of the last ones."""
        room, self._largest = WINDOW_BYTES // self._largest, _ROW
        return max(FEWEST, min(MOST_EVENTS, room))

    def _first(self, event: FeedEvent) -> bool:
        """Whether an event with tags is met where it becomes a row: in the first of its streams that are wanted."""
        if self._categories is None or not event.tags:
            return event.first
        begin = TAG_STREAMS if event.stream.startswith(TAG_STREAMS) else ""
        streams = [*filter(None, (event.home,)), *(f"{begin}{tag}" for tag in event.tags)]
        return next(each for each in streams if self._of.hold(each, self._categories)) == event.stream


def _side_by_side(
    export: EventExport,
    opener: Callable[[], FeedReader],
    workers: int,
    file_rows: int,
    told: Callable[[ExportCounts], object],
) -> None:
    """Ranges by several processes at once."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        left = {pool.submit(_whole_range, export, each, opener, file_rows) for each in export.ranges}
        try:
            while left:
                done, left = wait(left, timeout=PROGRESS_SECONDS, return_when=FIRST_COMPLETED)
                for each in done:
                    each.result()
                told(export.counts)
        finally:
            pool.shutdown(cancel_futures=True)


def _whole_range(
    export: EventExport, range_: FeedRange, opener: Callable[[], FeedReader], file_rows: int
) -> None:
    for _ in write_range(export, range_, opener, file_rows):
        pass


def _checked(export: EventExport) -> ExportCounts:
    """What all parts have; raises `CorruptData` where their files have not."""
    counts, ours = ExportCounts(), set[Path]()
    for each in export.ranges:
        at = each.start
        for part in export.parts(each):
            at = part.end
            counts.add(part.counts)
            path = export.file(part.partition, part.start)
            if part.counts.rows:
                ours.add(path)
                if (found := count(path, export.wanted.format)) != part.counts.rows:
                    raise CorruptData(f"{path} has {found:,} rows, and {part.counts.rows:,} were read")
        if at != each.end:
            raise CorruptData(
                f"{export.folder}: partition {each.partition} lacks what is behind {Checkpoint(at)}"
            )
    strangers = set(export.folder.glob(f"*.{export.wanted.format}")) - ours - {_empty(export)}
    if strangers:
        raise CorruptData(f"{min(strangers)} is no part of the export beside it")
    return counts


def _empty(export: EventExport) -> Path:
    """A file without rows: an export that has none is read like others."""
    return export.folder / f"none.{export.wanted.format}"


@contextmanager
def _if_any(path: Path, format_: Format, columns: Columns) -> Iterator[Callable[[Sequence[Row]], None]]:
    """What writes rows to a file that is made with the first of them."""
    with ExitStack() as stack:
        write: Write | None = None

        def put(rows: Sequence[Row]) -> None:
            nonlocal write
            if rows:
                write = write or stack.enter_context(written(path, format_, columns))
                write(rows)

        yield put


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """A lock that ends with its process, however that ends."""
    with lock.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InvalidInput("folder", "is being written by another export") from error
        yield


def _keep(export: EventExport) -> None:
    said = {
        "export": 1,
        "rows": VERSION,
        "wanted": asdict(export.wanted),
        "ranges": export.ranges,
        "complete": export.complete,
    }
    _write_json(_notes(export.folder) / "export.json", said)


def _write_json(path: Path, value: Any) -> None:
    begun = path.with_name(f".{path.name}.tmp")
    with begun.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    files.replace(begun, path)


def _notes(folder: Path) -> Path:
    """Readers of folders, as pyarrow's, pass over names that begin so."""
    return folder / "_export"


def _name(partition: int, start: int) -> str:
    return f"{partition:06d}-{start:019d}"


def _difference(found: ExportScope, asked: ExportScope) -> str:
    return ", ".join(
        f"{name} is {was!r}, not {asdict(asked)[name]!r}"
        for name, was in asdict(found).items()
        if was != asdict(asked)[name]
    )


def _size(row: Row) -> int:
    """Bytes that a row takes, about."""
    return _ROW + sum(len(each) for each in (row.data, row.data64, row.metadata, row.metadata64) if each)
