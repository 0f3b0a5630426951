"""Runs of an export: write the missing parts of its ranges, in one process or several, and check all files.

The note of a part is written first, then its file, each of them atomically; when both exist, the part is finished. If a
run is interrupted, the next one goes on behind the last finished part. So no row is lost, and none is written twice.
One run at a time writes to a folder, and two workers never write the same range.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Final

from epochal.contrib.transfer.export.files import Columns, Format, Write, count, written
from epochal.contrib.transfer.export.locks import locked
from epochal.contrib.transfer.export.notes import notes_folder, part_name, write_note
from epochal.contrib.transfer.export.parts import (
    RUN,
    EventExport,
    ExportCounts,
    ExportPart,
    FeedRange,
    Origin,
    RowBatch,
    columns_of,
    save_export,
)
from epochal.contrib.transfer.rows import Row
from epochal.errors import CorruptData
from epochal.lazy_dataclasses import asdict, replace
from epochal.model.kinds import must_be_whole

FILE_ROWS: Final = 250_000
"""Rows of a file, about. A run that was interrupted repeats at most this many for each worker."""

FILE_BYTES: Final = 256 * 1024 * 1024
BATCH_ROWS: Final = 16_384
BATCH_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies held in memory before they are written as a row group."""

PROGRESS_SECONDS: Final = 1.0


def run(
    export: EventExport,
    opener: Callable[[], Origin],
    *,
    workers: int = 1,
    file_rows: int = FILE_ROWS,
    report: Callable[[ExportCounts], object] = lambda _: None,
) -> ExportCounts:
    """Write the missing parts of an export, check all files, mark it complete, and return its counts.

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
        CorruptData: events are missing or duplicated, or the note of a part was changed.
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
        CorruptData: events are missing or duplicated.
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
            raise CorruptData(f"{path}: events are missing or duplicated: {part.counts}")
        note = {"end": part.end, "counts": asdict(part.counts)}
        write_note(export.note(rest.partition, rest.start), note)
    return part


def _gathered(batches: Iterable[RowBatch], most: int) -> Iterator[RowBatch]:
    """Yield batches joined into larger ones of about `most` events or `BATCH_BYTES`, the last may be less."""
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
    """Write an export's ranges in worker processes; report the counts each second and as ranges finish."""
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
    """Raise `CorruptData` unless all parts and files are complete and no others exist; return the counts.

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
                    raise CorruptData(f"{path} has {rows:,} rows, but {part.counts.rows:,} were read")
        if position != range_.end:
            raise CorruptData(f"{export.folder}: partition {range_.partition} has no files after {position}")
    strangers = set(export.folder.glob(f"*.{export.scope.format}")) - ours - {_empty(export)}
    if strangers:
        raise CorruptData(f"{min(strangers)} does not belong to the export in its folder")
    return counts


def _count(path: Path, format_: Format) -> int:
    """Count the rows in a file of an export; raise `CorruptData` if it cannot be read.

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
