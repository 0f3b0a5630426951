"""Sorts an export's events by stream and index, outside of memory.

An export has items in no order, and may be larger than any memory. Spans go into a database in a temporary file,
which sorts them there; it is gone with the spool. It takes about as much disk as the names and types of all events.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from epochal.layout.changes import Span

_CACHE_KB: Final = 32 * 1024
"""Memory for pages of the file; sorting takes about as much again."""


class Spool:
    """A temporary database that sorts spans of events by stream and index."""

    def __init__(self, folder: Path | None = None) -> None:
        """Create the database in a temporary folder, without journal and in one transaction."""
        self._folder = tempfile.TemporaryDirectory(dir=folder, prefix="epochal-rebuild-")
        self._file = sqlite3.connect(Path(self._folder.name) / "spool", isolation_level=None)
        for statement in (
            f"PRAGMA cache_size = -{_CACHE_KB}",
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA temp_store = FILE",
            "CREATE TABLE spans (stream TEXT, first INTEGER, types TEXT)",
            "CREATE TABLE pruned (stream TEXT PRIMARY KEY, below INTEGER) WITHOUT ROWID",
            "BEGIN",
        ):
            self._file.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._folder.cleanup()

    def add(self, span: Span) -> None:
        """Add the events of a span: their stream, first index and types."""
        self._file.execute(
            "INSERT INTO spans VALUES (?, ?, ?)", (span.stream, span.index, json.dumps(span.types))
        )

    def prune(self, stream: str, below: int) -> None:
        """Note below which index a stream's events are pruned; of several calls, the highest index counts."""
        self._file.execute(
            "INSERT INTO pruned VALUES (?, ?) ON CONFLICT DO UPDATE SET below = max(below, excluded.below)",
            (stream, below),
        )

    def streams(self) -> Iterator[tuple[str, int, Iterator[Span]]]:
        """Yield each stream's name, the index below which it is pruned, and its spans by index.

        Spans may overlap.
        """
        rows = self._file.execute(
            "SELECT s.stream, s.first, s.types, coalesce(p.below, 0) FROM spans s"
            " LEFT JOIN pruned p ON p.stream = s.stream ORDER BY s.stream, s.first"
        )
        for (stream, below), group in groupby(rows, key=itemgetter(0, 3)):
            yield (
                stream,
                below,
                (Span(stream, first, tuple(json.loads(types))) for _, first, types, _ in group),
            )
