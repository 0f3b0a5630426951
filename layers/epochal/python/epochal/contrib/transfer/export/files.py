"""Files of rows: Parquet, NDJSON and CSV, one batch of rows after another.

A file is written under a temporary name that readers ignore, and is renamed when it is complete and synced to disk. So
readers never see part of a file.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from epochal.contrib.transfer.rows import COLUMNS, VERSION, Kind, Row, as_json, time_text
from epochal.errors import InvalidInput, brought_by
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from epochal.contrib.schemas.columns import Column, TypedColumns

Format = Literal["parquet", "ndjson", "csv"]
FORMATS: Final[tuple[Format, ...]] = ("parquet", "ndjson", "csv")

Write = Callable[[Sequence[Row]], None]

TYPED: Final = "data_"
"""Prefix of the columns of a codec's events, which keeps their names apart from the rows' own columns."""

_REPEATED: Final = ("category", "stream", "type", "correlation")
"""Columns with recurring values, which Parquet stores smaller with a dictionary. For bodies one would not pay."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a file: those of every row, followed by those of a codec's events.

    Attributes:
        typed: columns of a codec's events; None for none
    """

    typed: TypedColumns | None = None

    @property
    def more(self) -> tuple[Column, ...]:
        """Columns of the codec's events."""
        return () if self.typed is None else self.typed.all

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return (*Row._fields, *(f"{TYPED}{column.name}" for column in self.more))

    def values(self, row: Row) -> tuple[Any, ...]:
        """Return a row's values in the columns of the codec's events, None where the row has none.

        They are null in a row of another type, and in one whose body is sealed.
        """
        if self.typed is None:
            return ()
        typed_values = (
            {} if row.data is None or row.sealed else self.typed.values(row.type, row.data.encode())
        )
        return tuple(_finite(column.value(typed_values.get(column.name))) for column in self.more)


def _finite(value: Any) -> Any:
    """Return a value, or None for NaN and infinities."""
    return None if isinstance(value, float) and not isfinite(value) else value


@contextmanager
def written(path: Path, format: Format, columns: Columns = Columns()) -> Iterator[Write]:  # noqa: A002, B008  frozen
    """Yield a function that writes rows to a new file, which appears at its path after the block.

    If the block fails, no file appears.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        with _WRITERS[format](file, columns) as write:
            yield write
        file.flush()
        os.fsync(file.fileno())
    move_durably(temporary, path)


def move_durably(temporary: Path, path: Path) -> None:
    """Move a finished temporary file to its path, and sync the folder, so that it survives a power loss."""
    os.replace(temporary, path)  # noqa: PTH105  tests end a program here
    if os.name == "nt":  # Windows opens no folder, and writes such changes through
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def ready(format: Format) -> None:  # noqa: A002  likewise
    """Raise `InvalidInput` if files of a format need a package that is not installed."""
    if format == "parquet":
        try:
            _parquet()
        except ModuleNotFoundError as error:
            raise InvalidInput("format", f"cannot be parquet here: {error}") from error


def count(path: Path, format: Format) -> int:  # noqa: A002  likewise
    """Count the rows in a file of a format."""
    if format == "parquet":
        return int(_parquet().read_metadata(path).num_rows)
    csv.field_size_limit(sys.maxsize)  # a body may be larger than the standard library expects
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in file) if format == "ndjson" else sum(1 for _ in csv.reader(file)) - 1


def arrow_schema(columns: Columns = Columns()) -> pa.Schema:  # noqa: B008  frozen
    """Return the Arrow schema of a file: the columns of every row, then those of the codec's events."""
    arrow = _arrow()
    types: dict[Kind, Any] = {
        "int": arrow.int64(),
        "time": arrow.timestamp("us", tz="UTC"),
        "texts": arrow.list_(arrow.field("element", arrow.string(), nullable=False)),
        "bool": arrow.bool_(),
    }
    fields = [
        arrow.field(
            column.name,
            types.get(column.kind, arrow.string()),
            nullable=column.null,
            metadata={"epochal.kind": column.kind},
        )
        for column in COLUMNS
    ]
    typed = {
        "int64": arrow.int64(),
        "float64": arrow.float64(),
        "bool": arrow.bool_(),
        "timestamp": arrow.timestamp("us", tz="UTC"),
    }
    fields += [
        arrow.field(
            f"{TYPED}{column.name}",
            typed.get(column.type, arrow.string()),
            metadata={"epochal.kind": column.type},
        )
        for column in columns.more
    ]
    return arrow.schema(fields, metadata={"epochal.contrib.transfer.rows": str(VERSION)})


def arrow_batch(rows: Sequence[Row], schema: pa.Schema, columns: Columns = Columns()) -> pa.RecordBatch:  # noqa: B008  frozen
    """Convert rows to an Arrow record batch of a schema, with their values in the codec's columns.

    It is built column by column, since one row at a time takes five times as long.
    """
    arrow = _arrow()
    all_values = [*zip(*rows, strict=True), *zip(*map(columns.values, rows), strict=True)]
    columns_of_values: Sequence[Sequence[Any]] = all_values or [()] * len(schema)
    arrays = [
        arrow.array(values, type=field.type) for values, field in zip(columns_of_values, schema, strict=True)
    ]
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)


@contextmanager
def _write_parquet(file: Any, columns: Columns) -> Iterator[Write]:
    """Yield a function that writes rows as Parquet to an open file, one row group for each call."""
    schema = arrow_schema(columns)
    writer = _parquet().ParquetWriter(
        file, schema, compression="zstd", use_dictionary=list(_REPEATED), write_statistics=True
    )
    with writer:
        yield lambda rows: writer.write_batch(
            arrow_batch(rows, schema, columns), row_group_size=max(1, len(rows))
        )


_to_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@contextmanager
def _write_ndjson(file: Any, columns: Columns) -> Iterator[Write]:
    """Yield a function that writes rows to an open file as JSON objects, one a line."""
    names = columns.names[len(COLUMNS) :]

    def shown(row: Row) -> dict[str, Any]:
        return as_json(row) | dict(zip(names, map(_plain, columns.values(row)), strict=True))

    yield lambda rows: file.writelines(f"{_to_json(shown(row))}\n".encode() for row in rows)


@contextmanager
def _write_csv(file: Any, columns: Columns) -> Iterator[Write]:
    """Write the line of column names to an open file, and yield a function that writes rows as CSV."""
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns.names)
    shown = [_AS_TEXT.get(column.kind) for column in COLUMNS]

    def cells(row: Row) -> list[Any]:
        own = [
            value if show is None or value is None else show(value)
            for value, show in zip(row, shown, strict=True)
        ]
        more = map(_plain, columns.values(row))
        return own + [_AS_TEXT["bool"](cell) if isinstance(cell, bool) else cell for cell in more]

    yield lambda rows: writer.writerows(map(cells, rows))
    text.detach()


def _plain(value: Any) -> Any:
    """Convert a time to ISO 8601 text, and return other values unchanged."""
    return value.isoformat() if isinstance(value, datetime) else value


_AS_TEXT: Final[dict[Kind, Callable[[Any], str]]] = {
    "time": time_text,
    "texts": lambda tags: _to_json(list(tags)),
    "bool": lambda value: "true" if value else "false",
}

_WRITERS: Final = {"parquet": _write_parquet, "ndjson": _write_ndjson, "csv": _write_csv}


def _arrow() -> Any:
    """Import and return `pyarrow`; raise `ModuleNotFoundError` if it is not installed.

    Raises:
        ModuleNotFoundError: pyarrow is not installed; the error says what to install.
    """
    with brought_by("export", "Parquet files", "pyarrow"):
        import pyarrow as pa  # noqa: PLC0415  an extra
    return pa


def _parquet() -> Any:
    """Import and return `pyarrow.parquet`; raise `ModuleNotFoundError` if pyarrow is not installed.

    Raises:
        ModuleNotFoundError: pyarrow is not installed; the error says what to install.
    """
    _arrow()
    import pyarrow.parquet as pq  # noqa: PLC0415  likewise

    return pq
