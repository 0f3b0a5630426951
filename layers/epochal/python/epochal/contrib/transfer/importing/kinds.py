"""The kinds of sources that histories are imported from, by the names that `epochal import --from` takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from epochal.contrib.transfer.importing.databases import (
    CASTORE,
    EVENTSOURCING,
    KURRENTDB,
    MARTEN,
    MESSAGE_DB,
)
from epochal.contrib.transfer.importing.sources import CSV, NDJSON, PARQUET, HistorySource, files_of
from epochal.errors import InvalidInput

KINDS: Final[Mapping[str, HistorySource]] = {
    "ndjson": NDJSON,
    "csv": CSV,
    "parquet": PARQUET,
    "eventsourcing": EVENTSOURCING,
    "message-db": MESSAGE_DB,
    "marten": MARTEN,
    "kurrentdb": KURRENTDB,
    "castore": CASTORE,
}

_ENDINGS: Final = {
    ".ndjson": NDJSON,
    ".jsonl": NDJSON,
    ".json": NDJSON,
    ".csv": CSV,
    ".parquet": PARQUET,
}
"""The source of a file whose kind is not given, by the ending of the file's name."""


def source_of(kind: str, place: str) -> HistorySource:
    """Return the source of a kind; if the kind is empty, take it from the ending of the file's name.

    Raises:
        InvalidInput: no kind is given, and the name of the file does not tell it.
    """
    if kind:
        return KINDS[kind]
    endings = [ending for file in files_of(place)[:1] for ending in Path(file).suffixes if ending != ".gz"]
    source = _ENDINGS.get(endings[-1].lower() if endings else "")
    if source is None:
        raise InvalidInput("--from", f"must be given: the name of {place} does not show its kind")
    return source
