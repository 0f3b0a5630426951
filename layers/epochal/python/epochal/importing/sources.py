"""The sources that there are, and what each has: columns, a row after the other, and which of them is which field.

A source is imported when it is chosen, and what it needs of other packages when it is read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.importing.incoming import FieldMapping, Misfit, Row
from epochal.plugins import at

KINDS: Final = {
    "ndjson": "files:NDJSON",
    "csv": "files:CSV",
    "parquet": "files:PARQUET",
    "eventsourcing": "databases:EVENTSOURCING",
    "message-db": "databases:MESSAGE_DB",
    "marten": "databases:MARTEN",
    "kurrentdb": "kurrentdb:KURRENTDB",
    "castore": "databases:CASTORE",
}
"""Each in a module of this room."""

_ENDINGS: Final = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
}

Columns = Iterator[tuple[str, Mapping[str, Any]] | Misfit]
"""Rows as the source has them, each with its place there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySource:
    """Where histories come from.

    Attributes:
        columns: of a place: a file, a URL.
        mapping: which of them are an event's fields.
        free: files of columns of the user's own, or a folder of them: a mapping that he gives is all there is. Of other
            sources it replaces single fields.
        whole: every row has all columns.
    """

    columns: Callable[[str], Columns]
    mapping: FieldMapping = field(default_factory=FieldMapping)
    free: bool = False
    whole: bool = False

    def rows(self, place: str, fields: Mapping[str, str], *, closed: bool = False) -> Iterator[Row]:
        """The rows of a place, under fields that the user has mapped.

        Args:
            closed: streams close up where the source's indices have gaps.

        Raises:
            InvalidInput: the place cannot be read, or the mapping is none.
        """
        own = {} if self.free and fields else self.mapping.fields
        whole = self.whole and bool(fields)
        mapping = FieldMapping({**own, **fields}, first=self.mapping.first, closed=closed, whole=whole)
        files = files_of(place) if self.free else [place]
        return (row for file in files for row in self._rows(file, mapping, named=len(files) > 1))

    def _rows(self, file: str, mapping: FieldMapping, *, named: bool) -> Iterator[Row]:
        name = f"{Path(file).name} " if named else ""
        for each in self.columns(file):
            if isinstance(each, Misfit):
                yield replace(each, at=f"{name}{each.at}")
            else:
                yield mapping.incoming(each[1], f"{name}{each[0]}")


def source_of(kind: str, place: str) -> HistorySource:
    """A kind of source; where none is said, by the ending of the file's name."""
    if not kind:
        endings = [each for file in files_of(place)[:1] for each in Path(file).suffixes if each != ".gz"]
        kind = _ENDINGS.get(endings[-1].lower() if endings else "", "")
    if not kind:
        raise InvalidInput("--from", f"must be given: the name of {place} does not tell what it is")
    found: HistorySource = at(f"epochal.importing.{KINDS[kind]}")
    return found


def files_of(place: str) -> list[str]:
    """A file, or those of a folder, which are read in the order of their names. Hidden ones are passed over."""
    folder = Path(place)
    if not folder.is_dir():
        return [place]
    shown = sorted(each for each in folder.iterdir() if not each.name.startswith((".", "_")))
    if not shown or not all(each.is_file() for each in shown):
        raise InvalidInput("PLACE", f"{place} must have files in it, and no folders")
    return list(map(str, shown))


def mapped(text: str, file: str) -> dict[str, str]:
    """Fields from `stream=Order-{id},type=kind`, over those of a TOML or JSON file. A comma in a text is written twice.

    Raises:
        InvalidInput: one of them is no mapping.
    """
    fields = dict[str, str](_from_file(file)) if file else {}
    for part in text.replace(",,", "\0").split(",") if text else ():
        name, equals, where = part.partition("=")
        if not equals:
            raise InvalidInput("--map", f"must be field=column, not {part}")
        fields[name.strip()] = where.strip().replace("\0", ",")
    return fields


def _from_file(file: str) -> Mapping[str, str]:
    try:
        text = Path(file).read_text("utf-8-sig")
        found = tomllib.loads(text) if file.endswith(".toml") else json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInput("--mapping", f"{file} cannot be read: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise InvalidInput("--mapping", "must have a text for each field")
    return found
