"""Files of Parquet: those of `epochal export`, and any other with a mapping."""

from __future__ import annotations

from typing import Any, Final

from epochal.errors import InvalidInput, brought_by
from epochal.importing.incoming import FieldMapping
from epochal.importing.sources import Columns, HistorySource

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


SOURCE: Final = HistorySource(columns=rows, mapping=FieldMapping(), free=True, whole=True)
