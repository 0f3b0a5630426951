"""Full exports of a table to S3 (DynamoDB JSON, gzip), read item by item from the bucket or from a copy in a folder.

An export is a folder: `manifest-summary.json` tells its kind, `manifest-files.json` has a line for each file of
`data/`, with the number of its items. Source: AWS, "DynamoDB table export output format".
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from epochal.errors import CorruptData, InvalidInput
from epochal.indexer.records import read_value
from epochal.plan.values import Item

SUMMARY: Final = "manifest-summary.json"
FILES: Final = "manifest-files.json"

Open = Callable[[str], IO[bytes]]
"""Opens a file of an export: a manifest by its name, a data file by the key that the manifest has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An export of a whole table."""

    place: str
    open: Open

    def items(self) -> Iterator[Item]:
        """Every item, a line of a file at a time.

        Raises:
            InvalidInput: it is no full export in DynamoDB JSON.
            CorruptData: a file has other items than the manifest says, or cannot be read.
        """
        self._check()
        with self.open(FILES) as manifest:
            for line in manifest:
                if line.strip():
                    listed = json.loads(line)
                    yield from self._file(listed["dataFileS3Key"], listed["itemCount"])

    def _check(self) -> None:
        with self.open(SUMMARY) as file:
            summary: dict[str, Any] = json.load(file)
        if summary.get("outputFormat") != "DYNAMODB_JSON":
            raise InvalidInput("export", f"{self.place} must be in DYNAMODB_JSON")
        if summary.get("exportType", "FULL_EXPORT") != "FULL_EXPORT":
            raise InvalidInput("export", f"{self.place} must be a full export, not an incremental one")

    def _file(self, key: str, expected: int) -> Iterator[Item]:
        count = 0
        try:
            with self.open(key) as packed, gzip.open(packed) as lines:
                for line in lines:
                    fields = json.loads(line)["Item"]
                    yield {name: read_value(value) for name, value in fields.items()}
                    count += 1
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, KeyError) as error:
            raise CorruptData(f"{self.place}: {key} cannot be read: {error}") from error
        if count != expected:
            raise CorruptData(f"{self.place}: {key} has {count:,} items, the manifest says {expected:,}")


def export_at(place: str, s3: Callable[[str], Open]) -> Export:
    """The export in a folder, or at `s3://bucket/prefix`; `s3` opens objects of the bucket that it is given."""
    if place.startswith("s3://"):
        bucket, _, prefix = place.removeprefix("s3://").partition("/")
        return Export(place=place, open=_in_bucket(s3(bucket), prefix.rstrip("/")))
    return Export(place=place, open=_in_folder(Path(place)))


def _in_folder(folder: Path) -> Open:
    def opened(name: str) -> IO[bytes]:
        path = folder / name if name in (SUMMARY, FILES) else folder / "data" / name.rpartition("/")[2]
        try:
            return path.open("rb")
        except OSError as error:
            raise InvalidInput("export", f"{path} cannot be read: {error.strerror}") from error

    return opened


def _in_bucket(open_object: Open, prefix: str) -> Open:
    def opened(name: str) -> IO[bytes]:
        return open_object(f"{prefix}/{name}".lstrip("/") if name in (SUMMARY, FILES) else name)

    return opened
