"""Processes that write what one process reads: encoding and sending take more of a CPU than reading does.

The one that reads keeps order, ledger and pace as it does alone. A worker is given a batch, says what came of it, and
ends with the process that it works for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Final

from epochal.export.parts import end_with_parent
from epochal.importing.writing import HistoryWriter, PartWritten, StreamPart
from epochal.store.streams import Streams

_WRITER: Final[list[HistoryWriter]] = []
"""Of a worker."""


@dataclass(slots=True, kw_only=True)
class SideBySideWriter(HistoryWriter):
    """Has its batches written by `calls`; as many at once as there are workers."""

    calls: ProcessPoolExecutor = field(repr=False)

    def write(self, batch: StreamPart) -> PartWritten:
        """As a writer alone does; raises as that does."""
        rows = [replace(row, raw=None) for row in batch.rows]  # a row as its source has it stays here
        done = self.calls.submit(_write, replace(batch, rows=rows)).result()
        done.batch = batch
        self.pace.spend(done.units)
        return done


@contextmanager
def writing(writer: HistoryWriter, workers: int, opener: Callable[[], Streams]) -> Iterator[HistoryWriter]:
    """A writer like this one with so many workers, which open the store themselves, for the length of a block."""
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin, (opener,)) as calls:
        yield SideBySideWriter(writer.store, pace=writer.pace, calls=calls)


def _begin(opener: Callable[[], Streams]) -> None:
    end_with_parent()
    _WRITER.append(HistoryWriter(opener()))


def _write(batch: StreamPart) -> PartWritten:
    done = _WRITER[0].write(batch)
    done.batch = replace(batch, rows=())
    return done
