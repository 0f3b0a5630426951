"""Files of JSON lines, CSV and Parquet: those of `epochal export`, and any others with a mapping of their columns."""

from __future__ import annotations

import csv
import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, cast

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.errors import InvalidInput, brought_by
from epochal.importing.incoming import Misfit
from epochal.importing.sources import Columns, HistorySource

# Opened, unpacked where they are compressed, and read line by line.

LONGEST: Final = 64 * 1024 * 1024
"""Bytes of a line. A file whose line goes on is of another kind, or has a quote that nobody closes."""

_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
"""What a file of UTF-16 begins with."""


@contextmanager
def lines_of(place: str) -> Iterator[Iterator[bytes]]:
    """The lines of a file with their ends, or of standard input where that is `-`; a name with `.gz` is unpacked.

    Raises:
        InvalidInput: it cannot be read, is UTF-16, or a line is too long.
    """
    try:
        with _opened(place) as file:
            yield _lines(place, file)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput("PLACE", f"{place} cannot be read: {error}") from error


def _lines(place: str, file: IO[bytes]) -> Iterator[bytes]:
    first = file.readline(LONGEST + 1)
    if first.startswith(_WIDE):
        raise InvalidInput("PLACE", f"{place} cannot be read: it must be UTF-8, and is UTF-16")
    line, number = first.removeprefix(MARK), 1  # some programs begin a file with a byte order mark
    while line:
        if len(line) > LONGEST:
            raise InvalidInput("PLACE", f"{place}, line {number}: is longer than {LONGEST >> 20} MB")
        yield line
        line, number = file.readline(LONGEST + 1), number + 1


def _opened(place: str) -> IO[bytes]:
    if place.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(place))
    return sys.stdin.buffer if place == "-" else Path(place).open("rb")


# JSON, an object a line.


def objects(place: str) -> Columns:
    """The objects; empty lines do not count."""
    with lines_of(place) as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                if line.strip():
                    rule = (
                        "must be UTF-8"
                        if isinstance(error, UnicodeError)
                        else f"must be JSON, all of it on its line: {error}"
                    )
                    yield Misfit(at=f"line {number}", stream="", rule=rule, raw=line.decode(errors="replace"))
                continue
            if isinstance(row, dict):
                yield f"line {number}", row
            else:
                yield Misfit(at=f"line {number}", stream="", rule="must be a JSON object", raw=row)


NDJSON: Final = HistorySource(columns=objects, free=True)


# Comma-separated values, whose first line names the columns.


def records(place: str) -> Columns:
    """The records, each at the line that it ends with. Commas or semicolons part values, as the first line has them."""
    csv.field_size_limit(LONGEST)
    with lines_of(place) as file:
        strange = list[str]()
        text = _text(file, strange)
        head = next(text, "")
        reader = csv.reader(chain((head,), text), delimiter=_between(head), strict=True)
        names = _next(place, reader) or []
        if len(set(names)) != len(names) or not names or strange:
            raise InvalidInput("PLACE", f"{place} must begin with the names of its columns, each once")
        while (values := _next(place, reader)) is not None:
            at = f"line {reader.line_num}"
            if strange:
                yield Misfit(at=at, stream="", rule="must be UTF-8", raw=values)
                strange.clear()
            elif len(values) == len(names):
                yield at, dict(zip(names, values, strict=True))
            elif values:
                rule = f"has {len(values)} values, for {len(names)} columns"
                yield Misfit(at=at, stream="", rule=rule, raw=values)


def _next(place: str, reader: Any) -> list[str] | None:
    """The next record; None behind the last one."""
    try:
        found: list[str] | None = next(reader, None)
    except csv.Error as error:
        raise InvalidInput("PLACE", f"{place}, line {reader.line_num}: {error}") from error
    return found


def _text(lines: Iterator[bytes], strange: list[str]) -> Iterator[str]:
    """The lines as text; of those that are none, what there is of them, and a note."""
    for line in lines:
        try:
            yield line.decode()
        except UnicodeDecodeError:
            strange.append(text := line.decode(errors="replace"))
            yield text


def _between(head: str) -> str:
    named = re.sub('"[^"]*("|$)', "", head)
    return max(",;\t", key=named.count)


CSV: Final = HistorySource(columns=records, free=True, whole=True)


# Parquet.

_ROWS: Final = 1_000
"""That are read at once."""


def rows(place: str) -> Columns:
    """The rows, by their numbers from 1."""
    with brought_by("export", "Parquet files", "pyarrow"):
        import pyarrow as pa  # noqa: PLC0415  an extra
        import pyarrow.parquet as pq  # noqa: PLC0415  likewise
    number = 0
    try:
        with pq.ParquetFile(place) as file:
            if len(set(names := file.schema_arrow.names)) != len(names):
                raise InvalidInput("PLACE", f"{place} must have each column once")
            for batch in file.iter_batches(_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", {name: _plain(value) for name, value in row.items()}
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput("PLACE", f"{place} cannot be read: {error}") from error


def _plain(value: Any) -> Any:
    """Times as ISO 8601 text, which says their zone, also those inside; decimals and all else as they are."""
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else value


PARQUET: Final = HistorySource(columns=rows, free=True, whole=True)
