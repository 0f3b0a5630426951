"""Exports of a table to S3 (DynamoDB JSON, gzip): read item by item from the bucket or from a copy in a folder.

An export is a folder: `manifest-summary.json` tells its kind, `manifest-files.json` has a line for each file of
`data/`, with the number of its items. An incremental export has, of each item that was written in its time, its keys
and what it was at the end; without a new image it was deleted. Source: AWS, "DynamoDB table export output format".

A full export and the incremental ones after it are the table as it was at the end of the last. What has changed is kept
on disk meanwhile.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Final, cast

from epochal.errors import CorruptData, InvalidInput
from epochal.feed.stream_records import read_value
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks, parse_time
from epochal.plan.values import Item

SUMMARY: Final = "manifest-summary.json"
FILES: Final = "manifest-files.json"
FULL: Final = "FULL_EXPORT"
INCREMENTAL: Final = "INCREMENTAL_EXPORT"

LONGEST: Final = 64 * 1024 * 1024
"""Bytes of a line or of a manifest's summary that are read: an item has at most 400 KB, a line two of them as text."""

Open = Callable[[str], IO[bytes]]
"""Opens a file of an export: a manifest by its name, a data file by the key that the manifest has."""

Fields = Mapping[str, Any]
"""An item, or its keys, as a file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A full export of a table, and the incremental exports that follow it, in their order."""

    place: str
    open: Open
    after: tuple[Export, ...] = ()

    def items(self) -> Iterator[Item]:
        """Yield every item of the table, as it was at the end of the last export.

        Raises:
            InvalidInput, CorruptData: as `fields` does.
        """
        return map(read_fields, self.fields())

    def fields(self) -> Iterator[Fields]:
        """Yield every item of the export as DynamoDB JSON, with its incremental exports applied.

        The export's files are read line by line.

        Raises:
            InvalidInput: it is no full export in DynamoDB JSON; or what follows it is not incremental, or does not
                begin where what is before it ends.
            CorruptData: a file has other items than the manifest says, or cannot be read.
        """
        summary = self._summary(FULL)
        reached = _moment(summary, self.place, "exportTime") if self.after else Ticks(0)
        for export in self.after:
            summary = export._summary(INCREMENTAL)  # noqa: SLF001  of another of this class
            begins, ends = (_moment(summary, export.place, f"export{side}Time") for side in ("From", "To"))
            if begins > reached or ends < reached:
                raise InvalidInput(
                    "export", f"{export.place} must begin no later than the export before it ends"
                )
            reached = ends
        with closing(sqlite3.connect("")) as changed:  # a file, which goes with the connection
            names = self._apply(changed)
            for line in self._lines("Item"):
                fields = line["Item"]
                if not names or _changed(changed, _key(fields, names)) is None:
                    yield fields
            for (image,) in changed.execute("SELECT image FROM changed WHERE image <> ''"):
                yield json.loads(image)

    def _apply(self, changed: sqlite3.Connection) -> tuple[str, ...]:
        """Store each item's newest image in the incremental exports; return names of the key attributes."""
        changed.execute("CREATE TABLE changed (key TEXT PRIMARY KEY, written INTEGER, image TEXT)")
        names: tuple[str, ...] = ()
        for export in self.after:
            for line in export._lines("Keys"):  # noqa: SLF001  as above
                names = names or tuple(sorted(line["Keys"]))
                key, written = _key(line["Keys"], names), _written(line)
                before = _changed(changed, key)
                if before is None or before <= written:
                    image = json.dumps(line["NewImage"]) if line.get("NewImage") else ""
                    changed.execute("INSERT OR REPLACE INTO changed VALUES (?, ?, ?)", (key, written, image))
        return names

    def _lines(self, member: str) -> Iterator[Fields]:
        """Yield the lines of all data files that the manifest names; each must have `member`."""
        with self.open(FILES) as manifest:
            for line in _lines_in(manifest, f"{self.place}: {FILES}"):
                if line.strip():
                    listed = json.loads(line)
                    yield from self._file(member, listed["dataFileS3Key"], listed["itemCount"])

    def _summary(self, kind: str) -> Fields:
        """Return the manifest's summary; raise `InvalidInput` if kind or format of the export are others."""
        with self.open(SUMMARY) as file:
            content = file.read(LONGEST + 1)
        if len(content) > LONGEST:
            raise CorruptData(f"{self.place}: {SUMMARY} cannot be read: it is longer than {LONGEST >> 20} MB")
        summary: dict[str, Any] = json.loads(content)
        if summary.get("outputFormat") != "DYNAMODB_JSON":
            raise InvalidInput("export", f"{self.place} must be in DYNAMODB_JSON")
        if summary.get("exportType", FULL) != kind:
            rule = "a full export: incremental ones follow it" if kind == FULL else "an incremental export"
            raise InvalidInput("export", f"{self.place} must be {rule}")
        return summary

    def _file(self, member: str, key: str, expected: int) -> Iterator[Fields]:
        """Yield the lines of one data file, and check that it has as many as the manifest says."""
        count = 0
        try:
            with self.open(key) as packed, gzip.open(packed) as lines:
                for line in _lines_in(cast("IO[bytes]", lines), f"{self.place}: {key}"):
                    fields = json.loads(line)
                    _ = fields[member]
                    yield fields
                    count += 1
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, KeyError) as error:
            raise CorruptData(f"{self.place}: {key} cannot be read: {error}") from error
        if count != expected:
            raise CorruptData(f"{self.place}: {key} has {count:,} items, the manifest says {expected:,}")


def _lines_in(file: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of a file; raise `CorruptData` before one of more than `LONGEST` bytes is in memory."""
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise CorruptData(f"{name} cannot be read: a line is longer than {LONGEST >> 20} MB")
        yield line


def read_fields(fields: Fields) -> Item:
    """Convert the JSON of an item in an export's file to the item as DynamoDB returns it."""
    return {name: read_value(value) for name, value in fields.items()}


def _key(fields: Fields, names: Iterable[str]) -> str:
    return json.dumps([fields[name] for name in names], sort_keys=True)


def _changed(changed: sqlite3.Connection, key: str) -> int | None:
    """Return the time at which a changed item was last written; None if it has not changed."""
    row = changed.execute("SELECT written FROM changed WHERE key = ?", (key,)).fetchone()
    return None if row is None else int(row[0])


def _written(line: Fields) -> int:
    """Return the time at which the item of a line was last written, in microseconds."""
    try:
        written = line["Metadata"]["WriteTimestampMicros"]
        return int(written["N"] if isinstance(written, dict) else written)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"a change of {line['Keys']} has no valid write time") from error


def _moment(summary: Fields, place: str, name: str) -> Ticks:
    """Read a time from a manifest's summary."""
    try:
        return parse_time(summary[name], name)
    except (KeyError, InvalidInput) as error:
        raise CorruptData(f"{place}: {SUMMARY} has no {name}") from error


def export_at(place: str, s3: Callable[[str], Open], *after: str) -> Export:
    """Return the export in a folder or at `s3://bucket/prefix`, with the incremental ones at `after`.

    `s3` opens the objects of a bucket, by its name.
    """
    if after:
        return replace(export_at(place, s3), after=tuple(export_at(later_place, s3) for later_place in after))
    if place.startswith("s3://"):
        bucket, _, prefix = place.removeprefix("s3://").partition("/")
        return Export(place=place, open=_in_bucket(s3(bucket), prefix.rstrip("/")))
    return Export(place=place, open=_in_folder(Path(place)))


def _in_folder(folder: Path) -> Open:
    """Make a function that opens an export's files in a folder."""

    def opened(name: str) -> IO[bytes]:
        """Open a file of the export; raise `InvalidInput` if it cannot be read."""
        path = folder / name if name in (SUMMARY, FILES) else folder / "data" / name.rpartition("/")[2]
        if not path.exists() and path.parent != folder:  # incremental exports share the folder beside theirs
            path = folder.parent / "data" / path.name
        try:
            return path.open("rb")
        except OSError as error:
            raise InvalidInput("export", f"{path} cannot be read: {error.strerror}") from error

    return opened


def _in_bucket(open_object: Open, prefix: str) -> Open:
    """Make a function that opens an export's files in a bucket."""

    def opened(name: str) -> IO[bytes]:
        return open_object(f"{prefix}/{name}".lstrip("/") if name in (SUMMARY, FILES) else name)

    return opened
