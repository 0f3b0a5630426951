"""Exports of a table to S3 (DynamoDB JSON, gzip): read item by item from the bucket or from a copy in a folder, or
spooled to a file on disk and asked as DynamoDB would be.

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
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Final
from zlib import crc32

from epochal.errors import CorruptData, InvalidInput, InvalidRequest, MissingTable
from epochal.feed.indexer import read_value
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Ticks, parse_time
from epochal.plan import effects, limits, ops
from epochal.plan.tables import TableSpec
from epochal.plan.values import AttributeValue, Item, Key

SUMMARY: Final = "manifest-summary.json"
FILES: Final = "manifest-files.json"
FULL: Final = "FULL_EXPORT"
INCREMENTAL: Final = "INCREMENTAL_EXPORT"

Open = Callable[[str], IO[bytes]]
"""Opens a file of an export: a manifest by its name, a data file by the key that the manifest has."""

Fields = Mapping[str, Any]
"""An item, or its keys, as a file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An export of a table, and the incremental ones that go on from it, in their order."""

    place: str
    open: Open
    after: tuple[Export, ...] = ()

    def items(self) -> Iterator[Item]:
        """Every item; raises as `fields` does."""
        return map(_item, self.fields())

    def fields(self) -> Iterator[Fields]:
        """Every item as a file has it, a line at a time.

        Raises:
            InvalidInput: it is no full export in DynamoDB JSON; or what follows it is not incremental, or does not
                begin where what is before it ends.
            CorruptData: a file has other items than the manifest says, or cannot be read.
        """
        summary = self._summary(FULL)
        reached = _moment(summary, self.place, "exportTime") if self.after else Ticks(0)
        for each in self.after:
            summary = each._summary(INCREMENTAL)  # noqa: SLF001  of another of this class
            begins, ends = (_moment(summary, each.place, f"export{side}Time") for side in ("From", "To"))
            if begins > reached or ends < reached:
                raise InvalidInput(
                    "export", f"{each.place} must begin where what is before it ends, or before that"
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
        """Keep what is left of the changed items; the names of the table's keys, none where nothing has changed."""
        changed.execute("CREATE TABLE changed (key TEXT PRIMARY KEY, written INTEGER, image TEXT)")
        names: tuple[str, ...] = ()
        for each in self.after:
            for line in each._lines("Keys"):  # noqa: SLF001  as above
                names = names or tuple(sorted(line["Keys"]))
                key, written = _key(line["Keys"], names), _written(line)
                before = _changed(changed, key)
                if before is None or before <= written:
                    image = json.dumps(line["NewImage"]) if line.get("NewImage") else ""
                    changed.execute("INSERT OR REPLACE INTO changed VALUES (?, ?, ?)", (key, written, image))
        return names

    def _lines(self, member: str) -> Iterator[Fields]:
        with self.open(FILES) as manifest:
            for line in manifest:
                if line.strip():
                    listed = json.loads(line)
                    yield from self._file(member, listed["dataFileS3Key"], listed["itemCount"])

    def _summary(self, kind: str) -> Fields:
        with self.open(SUMMARY) as file:
            summary: dict[str, Any] = json.load(file)
        if summary.get("outputFormat") != "DYNAMODB_JSON":
            raise InvalidInput("export", f"{self.place} must be in DYNAMODB_JSON")
        if summary.get("exportType", FULL) != kind:
            rule = "a full export: incremental ones follow it" if kind == FULL else "an incremental export"
            raise InvalidInput("export", f"{self.place} must be {rule}")
        return summary

    def _file(self, member: str, key: str, expected: int) -> Iterator[Fields]:
        count = 0
        try:
            with self.open(key) as packed, gzip.open(packed) as lines:
                for line in lines:
                    found = json.loads(line)
                    _ = found[member]
                    yield found
                    count += 1
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, KeyError) as error:
            raise CorruptData(f"{self.place}: {key} cannot be read: {error}") from error
        if count != expected:
            raise CorruptData(f"{self.place}: {key} has {count:,} items, the manifest says {expected:,}")


def _item(fields: Fields) -> Item:
    return {name: read_value(value) for name, value in fields.items()}


def _key(fields: Fields, names: Iterable[str]) -> str:
    return json.dumps([fields[name] for name in names], sort_keys=True)


def _changed(changed: sqlite3.Connection, key: str) -> int | None:
    """When an item was last written, of those that have changed."""
    found = changed.execute("SELECT written FROM changed WHERE key = ?", (key,)).fetchone()
    return None if found is None else int(found[0])


def _written(line: Fields) -> int:
    """When an item was last written, in microseconds."""
    try:
        said = line["Metadata"]["WriteTimestampMicros"]
        return int(said["N"] if isinstance(said, dict) else said)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"a change of {line['Keys']} does not say when it was written") from error


def _moment(summary: Fields, place: str, name: str) -> Ticks:
    try:
        return parse_time(summary[name], name)
    except (KeyError, InvalidInput) as error:
        raise CorruptData(f"{place}: {SUMMARY} has no {name}") from error


def export_at(place: str, s3: Callable[[str], Open], *after: str) -> Export:
    """The export in a folder, or at `s3://bucket/prefix`, and the incremental ones `after` it; `s3` opens objects of
    the bucket that it is given.
    """
    if after:
        return replace(export_at(place, s3), after=tuple(export_at(each, s3) for each in after))
    if place.startswith("s3://"):
        bucket, _, prefix = place.removeprefix("s3://").partition("/")
        return Export(place=place, open=_in_bucket(s3(bucket), prefix.rstrip("/")))
    return Export(place=place, open=_in_folder(Path(place)))


def _in_folder(folder: Path) -> Open:
    def opened(name: str) -> IO[bytes]:
        path = folder / name if name in (SUMMARY, FILES) else folder / "data" / name.rpartition("/")[2]
        if not path.exists() and path.parent != folder:  # incremental exports share the folder beside theirs
            path = folder.parent / "data" / path.name
        try:
            return path.open("rb")
        except OSError as error:
            raise InvalidInput("export", f"{path} cannot be read: {error.strerror}") from error

    return opened


def _in_bucket(open_object: Open, prefix: str) -> Open:
    def opened(name: str) -> IO[bytes]:
        return open_object(f"{prefix}/{name}".lstrip("/") if name in (SUMMARY, FILES) else name)

    return opened


_CACHE_KB: Final = 64 * 1024

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS items (number INTEGER PRIMARY KEY, fields TEXT);
CREATE TABLE IF NOT EXISTS places (
    place TEXT, hash INTEGER, p, s, kp, ks, number INTEGER, PRIMARY KEY (place, p, s, kp, ks)
) WITHOUT ROWID;
"""
# `places` has an item for each table or index that it is in: p and s are its keys there, kp and ks those in its table.


class SpooledTables:
    """Tables in a file, by their names; a file is filled once, and then read by any number of processes.

    Plans read them unchanged, since an interpreter is all that a driver asks for: whatever reads a store reads its
    exports. An item is found by its keys, and in each index of its table by the keys there. Nothing can be written.
    """

    def __init__(self, file: Path, tables: Mapping[str, TableSpec]) -> None:
        self._specs = dict(tables)
        self._file = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._file.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        self._lock = threading.Lock()

    def fill(self, table: str, items: Iterable[Fields]) -> int:
        """Take in the items of a table as an export's files have them; how many there were."""
        spec, count = self._spec(table), 0
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.executescript(_TABLES)
        self._file.execute("BEGIN")
        for count, fields in enumerate(items, 1):  # noqa: B007  it is returned
            number = self._file.execute(
                "INSERT INTO items (fields) VALUES (?)", (json.dumps(fields),)
            ).lastrowid
            for place, names in _places(table, spec):
                if all(name in fields for name in names):
                    key = _ordered(fields, names), _ordered(fields, spec.keys)
                    self._file.execute(
                        "INSERT INTO places VALUES (?, ?, ?, ?, ?, ?, ?)",
                        (place, crc32(repr(key[0][0]).encode()), *key[0], *key[1], number),
                    )
        self._file.execute("COMMIT")
        return count

    def execute(self, op: ops.Op) -> ops.Reply:
        """Perform one operation that reads.

        Raises:
            MissingTable: no such table.
            InvalidRequest: it would write.
        """
        with self._lock:
            return self._perform(op)

    def _perform(self, op: ops.Op) -> ops.Reply:
        match op:
            case ops.Get(table=table, key=key):
                return ops.Found(item=self._one(table, key))
            case ops.BatchGet(table=table, keys=keys):
                found = (self._one(table, key) for key in keys)
                return ops.Items(items=tuple(item for item in found if item is not None))
            case ops.TransactGet(keys=places):
                return ops.Together(items=tuple(self._one(table, key) for table, key in places))
            case ops.Query():
                return self._query(op)
            case ops.Scan():
                return self._scan(op)
            case _:
                raise InvalidRequest(type(op).__name__, "ValidationException", "an export can only be read")

    def _one(self, table: str, key: Key) -> Item | None:
        p, s = _ordered(key, self._spec(table).keys)
        row = self._file.execute(
            "SELECT fields FROM places JOIN items USING (number) WHERE place = ? AND p = ? AND s = ?",
            (table, p, s),
        ).fetchone()
        return None if row is None else _item(json.loads(row[0]))

    def _query(self, query: ops.Query) -> ops.Items:
        spec = self._spec(query.table)
        names = _names(spec, query.index)
        where, values = (
            "place = ? AND p = ?",
            [_place(query.table, query.index), _comparable(query.partition[1])],
        )
        if query.sort is not None:
            where += " AND s BETWEEN ? AND ?"
            values += map(_comparable, query.sort[1:])
        if query.after is not None:
            where += f" AND (s, kp, ks) {'>' if query.forward else '<'} (?, ?, ?)"
            values += [_ordered(query.after, names)[1], *_ordered(query.after, spec.keys)]
        way = "ASC" if query.forward else "DESC"
        page = self._page(
            query, {*spec.keys, *names}, f"{where} ORDER BY s {way}, kp {way}, ks {way}", values
        )
        return replace(page, items=(), counted=len(page.items)) if query.only_count else page

    def _scan(self, scan: ops.Scan) -> ops.Items:
        spec = self._spec(scan.table)
        names = _names(spec, scan.index)
        segment, total = scan.segment
        where, values = "place = ? AND hash % ? = ?", [_place(scan.table, scan.index), total, segment]
        if scan.after is not None:
            where += " AND (p, s, kp, ks) > (?, ?, ?, ?)"
            values += [*_ordered(scan.after, names), *_ordered(scan.after, spec.keys)]
        page = self._page(scan, {*spec.keys, *names}, f"{where} ORDER BY p, s, kp, ks", values)
        return replace(page, items=tuple(each for each in page.items if effects.holds(scan.where, each)))

    def _page(
        self, op: ops.Query | ops.Scan, names: Iterable[str], where: str, values: Sequence[Any]
    ) -> ops.Items:
        """What is read up to a limit or 1 MB; `names` are those of the keys to go on from."""
        taken, size = list[Item](), 0
        statement = f"SELECT fields FROM places JOIN items USING (number) WHERE {where}"  # noqa: S608  ours
        for (fields,) in self._file.execute(statement, values):
            taken.append(_item(json.loads(fields)))
            size += len(fields)
            if len(taken) == op.limit or size >= limits.PAGE_BYTES:
                return ops.Items(items=tuple(taken), last={name: taken[-1][name] for name in names})
        return ops.Items(items=tuple(taken))

    def _spec(self, table: str) -> TableSpec:
        try:
            return self._specs[table]
        except KeyError:
            raise MissingTable(table) from None


def _place(table: str, index: str | None) -> str:
    return table if index is None else f"{table}/{index}"


def _places(table: str, spec: TableSpec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The table and its indexes, with the names of the keys there."""
    yield table, spec.keys
    for index in spec.indexes:
        yield _place(table, index.name), _names(spec, index.name)


def _names(spec: TableSpec, index: str | None) -> tuple[str, ...]:
    found = next((each for each in spec.indexes if each.name == index), None)
    return spec.keys if found is None else found.key_names(spec)


def _ordered(fields: Fields, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Two keys as SQLite orders them as DynamoDB does: numbers by size, text by its UTF-8."""
    keys = [_comparable(fields[name]) for name in names[:2]]
    return keys[0], keys[1] if len(keys) > 1 else 0


def _comparable(value: AttributeValue) -> int | str:
    ((kind, content),) = value.items()
    if kind != "N":
        return str(content)
    if not -(1 << 63) <= (whole := int(content)) < 1 << 63:
        raise CorruptData(f"a key is the number {content}, which is beyond 64 bits")
    return whole
