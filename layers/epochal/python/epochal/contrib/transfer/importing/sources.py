"""Kinds of sources for imports: each yields rows by column, and has a mapping from columns to the fields of an event.

The module of databases is imported when one is chosen, and optional packages when a source is read. This module has
files of JSON lines, CSV and Parquet: those of `epochal export`, and any others with a mapping of their columns.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, cast

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.contrib.transfer.importing.field_mapping import REST, FieldMapping, Where, has
from epochal.contrib.transfer.importing.incoming import Misfit, Row
from epochal.errors import InvalidInput, brought_by
from epochal.lazy_dataclasses import dataclass, field, replace

Columns = Iterator[tuple[str, Mapping[str, Any]] | Misfit]
"""Rows as the source has them: each is its place and its values by column, or a misfit."""


_LOOKED_AT: Final = 1_000
"""Rows in which columns are looked for, before any row is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySource:
    """Kind of source that histories are imported from.

    Attributes:
        columns: function from a place, a file or URL, to its rows
        mapping: mapping of the source's columns to the fields of an event
        free: whether places are files with columns of the user's own, or folders of such files. A mapping that the user
            gives then replaces the source's; for other sources it replaces single fields.
        whole: whether every row has all columns
        cells: whether all values are texts, whatever they mean
    """

    columns: Callable[[str], Columns]
    mapping: FieldMapping = field(default_factory=FieldMapping)
    free: bool = False
    whole: bool = False
    cells: bool = False

    def has_cells(self, fields: Mapping[str, Where]) -> bool:
        """Whether bodies under a mapping are made of a table's texts: of the columns that no field uses."""
        return self.cells and fields.get("data") == REST

    def rows(
        self, place: str, fields: Mapping[str, Where], *, closed: bool = False, encoded: bool = False
    ) -> Iterator[Row]:
        """Yield a place's rows, each mapped to an event, a `Gone` (the event is gone) or a `Misfit`.

        Args:
            place: file, folder or URL
            fields: user's mapping of fields; empty for the source's own
            closed: whether to number events anew where the source's indices have gaps
            encoded: whether to encode names of streams

        Raises:
            InvalidInput: the place cannot be read, the mapping is not valid, or names a column that a file lacks, or a
                member that is in none of the first thousand rows.
        """
        own = {} if self.free and fields else self.mapping.fields
        complete = self.whole and bool(fields)
        mapping = FieldMapping(
            {**own, **fields}, first=self.mapping.first, closed=closed, whole=complete, encoded=encoded
        )
        files = files_of(place) if self.free else [place]
        parts = (self._rows(file, mapping, with_name=len(files) > 1) for file in files)
        if complete:
            return chain.from_iterable(_with_columns(part, mapping.columns(fields), 1) for part in parts)
        return _with_columns(chain.from_iterable(parts), mapping.columns(fields), _LOOKED_AT)

    def _rows(self, file: str, mapping: FieldMapping, *, with_name: bool) -> Iterator[Row]:
        """Yield a file's rows, mapped to events, with the file's name in each row's place if `with_name`."""
        name = f"{Path(file).name} " if with_name else ""
        for column in self.columns(file):
            if isinstance(column, Misfit):
                yield replace(column, at=f"{name}{column.at}")
            else:
                yield mapping.incoming(column[1], f"{name}{column[0]}")


def _with_columns(rows: Iterator[Row], missing: list[tuple[str, str, str]], most: int) -> Iterator[Row]:
    """Yield rows, but first raise `InvalidInput` if all of the first ones lack a column of a mapping.

    Some rows may lack a column, but one that no row has is misspelt.

    Args:
        rows: rows of a source
        missing: field, entry of the mapping and column, for each column to look for
        most: number of first rows in which to look

    Raises:
        InvalidInput: none of the first rows has a column.
    """
    first, values = list[Row](), dict[str, Any]()
    while missing and len(first) < most and (row := next(rows, None)) is not None:
        first.append(row)
        if isinstance(row.raw, Mapping):
            missing = [
                column for column in missing if column[1] not in row.raw and not has(row.raw, column[2])
            ]
            values.update(row.raw)
    for name, _, column in missing if values else ():
        rule = f"{name}: column {column} does not occur in the first rows from {first[0].at} on"
        raise InvalidInput("map", f"{rule}; the columns are {', '.join(values)}")
    yield from chain(first, rows)


def files_of(place: str) -> list[str]:
    """Return the file at `place` in a list, or a folder's files by name; raise for none or inner folders.

    Hidden files, whose names begin with `.` or `_`, are left out.

    Raises:
        InvalidInput: the folder has no files, or has folders in it.
    """
    folder = Path(place)
    if not folder.is_dir():
        return [place]
    shown = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    if not shown or not all(path.is_file() for path in shown):
        raise InvalidInput("PLACE", f"{place} must contain files, and no folders")
    return list(map(str, shown))


def mapped(text: str, file: str) -> dict[str, Where]:
    """Parse a text such as `stream=Order-{id},type=kind`; return its fields, over those of a mapping file.

    The file is a mapping in TOML or JSON. A comma in a field of the text is written twice.

    Raises:
        InvalidInput: the text or the file is no mapping.
    """
    fields = dict[str, Where](_from_file(file)) if file else {}
    for part in text.replace(",,", "\0").split(",") if text else ():
        name, equals, where = part.partition("=")
        if not equals:
            raise InvalidInput("--map", f"must be field=column, not {part}")
        fields[name.strip()] = where.strip().replace("\0", ",")
    return fields


def _from_file(file: str) -> Mapping[str, Where]:
    """Load a mapping from a TOML or JSON file; raise `InvalidInput` if it is unreadable or no mapping.

    Raises:
        InvalidInput: the file cannot be read, or is no mapping.
    """
    try:
        text = Path(file).read_text("utf-8-sig")
        declared = tomllib.loads(text) if file.endswith(".toml") else json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInput("--mapping", f"{file} cannot be read: {error}") from error
    if not isinstance(declared, dict):
        raise InvalidInput("--mapping", "must be an object with a string for each field")
    for name, where in declared.items():
        if not isinstance(where, str) and not (name == "tags" and isinstance(where, list)):
            rule = "must be a string or a list of strings" if name == "tags" else "must be a string"
            raise InvalidInput("--mapping", f"{name} {rule}, got {where!r}")
    return declared


# Files, which are unpacked if compressed, and read line by line.

LONGEST: Final = 64 * 1024 * 1024
"""Most bytes of a line. A file with a longer one is of another kind, or has a quote that is never closed."""

_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks with which a file of UTF-16 begins."""


@contextmanager
def lines_of(place: str) -> Iterator[Iterator[bytes]]:
    """Open a file for a block, and yield an iterator of its lines with their ends.

    `-` is standard input, and a name that ends with `.gz` is unpacked.

    Raises:
        InvalidInput: the file cannot be read, is UTF-16, or a line is too long.
    """
    try:
        with _opened(place) as file:
            yield _lines(place, file)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput("PLACE", f"{place} cannot be read: {error}") from error


def _lines(place: str, file: IO[bytes]) -> Iterator[bytes]:
    """Yield an open file's lines without a byte order mark; raise if it is UTF-16 or a line is too long.

    Raises:
        InvalidInput: the file is UTF-16, or a line is too long.
    """
    first = file.readline(LONGEST + 1)
    if first.startswith(_WIDE):
        raise InvalidInput("PLACE", f"{place} cannot be read: it must be UTF-8, but is UTF-16")
    line, number = first.removeprefix(MARK), 1  # some programs begin a file with a byte order mark
    while line:
        if len(line) > LONGEST:
            raise InvalidInput("PLACE", f"{place}, line {number} is longer than {LONGEST >> 20} MB")
        yield line
        line, number = file.readline(LONGEST + 1), number + 1


def _opened(place: str) -> IO[bytes]:
    """Open a file, a gzip file or standard input for reading bytes."""
    if place.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(place))
    return sys.stdin.buffer if place == "-" else Path(place).open("rb")


# JSON lines: an object on each line.


def objects(place: str) -> Columns:
    """Yield the objects of a file of JSON lines, each with its line number; other lines become misfits.

    Empty lines are skipped.

    Raises:
        InvalidInput: the file cannot be read.
    """
    with lines_of(place) as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                if line.strip():
                    rule = (
                        "must be UTF-8"
                        if isinstance(error, UnicodeError)
                        else f"must be a JSON document on a single line: {error}"
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
    """Yield the records of a CSV file, each with its last line's number; broken records become misfits.

    The delimiter is comma, semicolon or tab, whichever the first line has most of.

    Raises:
        InvalidInput: the file cannot be read, or its first line does not name each column once.
    """
    csv.field_size_limit(LONGEST)
    with lines_of(place) as file:
        strange = list[str]()
        text = _text(file, strange)
        head = next(text, "")
        reader = csv.reader(chain((head,), text), delimiter=_between(head), strict=True)
        names = _next(place, reader) or []
        if len(set(names)) != len(names) or not names or strange:
            raise InvalidInput("PLACE", f"{place} must begin with a header of distinct column names")
        while (values := _next(place, reader)) is not None:
            line = f"line {reader.line_num}"
            if strange:
                yield Misfit(at=line, stream="", rule="must be UTF-8", raw=values)
                strange.clear()
            elif len(values) == len(names):
                yield line, dict(zip(names, values, strict=True))
            elif values:
                rule = f"has {len(values)} values for {len(names)} columns"
                yield Misfit(at=line, stream="", rule=rule, raw=values)


def _next(place: str, reader: Any) -> list[str] | None:
    """Read the next record of a CSV file, None at its end; raise `InvalidInput` if it is not valid CSV.

    Raises:
        InvalidInput: the record is not valid CSV.
    """
    try:
        cells: list[str] | None = next(reader, None)
    except csv.Error as error:
        raise InvalidInput("PLACE", f"{place}, line {reader.line_num}: {error}") from error
    return cells


def _text(lines: Iterator[bytes], strange: list[str]) -> Iterator[str]:
    """Yield lines as text, and collect those that are not UTF-8 in `strange`, with replacement characters."""
    for line in lines:
        try:
            yield line.decode()
        except UnicodeDecodeError:
            strange.append(text := line.decode(errors="replace"))
            yield text


def _between(head: str) -> str:
    """Return the delimiter of a CSV file, from its first line."""
    columns = re.sub('"[^"]*("|$)', "", head)
    return max(",;\t", key=columns.count)


CSV: Final = HistorySource(columns=records, free=True, whole=True, cells=True)


# Parquet.

_ROWS: Final = 1_000
"""Rows of a Parquet file that are read at a time."""


def rows(place: str) -> Columns:
    """Yield the rows of a Parquet file, with their numbers from 1.

    Raises:
        InvalidInput: the file cannot be read, or has a column twice.
        ModuleNotFoundError: pyarrow is not installed; the error says what to install.
    """
    with brought_by("export", "Parquet files", "pyarrow"):
        import pyarrow as pa  # noqa: PLC0415  an extra
        import pyarrow.parquet as pq  # noqa: PLC0415  likewise
    number = 0
    try:
        with pq.ParquetFile(place) as file:
            if len(set(names := file.schema_arrow.names)) != len(names):
                raise InvalidInput("PLACE", f"{place} must not have two columns of the same name")
            for batch in file.iter_batches(_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", {name: _plain(value) for name, value in row.items()}
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput("PLACE", f"{place} cannot be read: {error}") from error


def _plain(value: Any) -> Any:
    """Convert times to ISO 8601 text, also inside objects and lists, and return other values unchanged."""
    match value:
        case dict():
            return {name: _plain(member) for name, member in value.items()}
        case list() | tuple():
            return [_plain(member) for member in value]
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else value


PARQUET: Final = HistorySource(columns=rows, free=True, whole=True)
