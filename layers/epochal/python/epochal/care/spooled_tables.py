"""Tables in a file on disk, which answer reads as DynamoDB would: they are filled from exports."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from epochal.care.table_exports import Fields, read_fields
from epochal.errors import CorruptData, InvalidRequest, MissingTable
from epochal.lazy_dataclasses import replace
from epochal.plan import effects, limits, ops
from epochal.plan.tables import TableSpec
from epochal.plan.values import AttributeValue, Item, Key

_CACHE_KB: Final = 64 * 1024

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS items (number INTEGER PRIMARY KEY, fields TEXT);
CREATE TABLE IF NOT EXISTS places (
    place TEXT, hash INTEGER, p, s, kp, ks, number INTEGER, PRIMARY KEY (place, p, s, kp, ks)
) WITHOUT ROWID;
"""


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
        """Insert the items of a table as an export's files have them, and return how many there were."""
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
        """Return DynamoDB's reply to one operation that reads; raise `InvalidRequest` if it would write.

        Raises:
            MissingTable: no such table.
            InvalidRequest: it would write.
        """
        with self._lock:
            return self._perform(op)

    def _perform(self, op: ops.Op) -> ops.Reply:
        """Return the reply to one operation that reads; raise if it would write. The caller holds the lock."""
        match op:
            case ops.Get(table=table, key=key):
                return ops.Found(item=self._one(table, key))
            case ops.BatchGet(table=table, keys=keys):
                items = (self._one(table, key) for key in keys)
                return ops.Items(items=tuple(item for item in items if item is not None))
            case ops.TransactGet(keys=places):
                return ops.Together(items=tuple(self._one(table, key) for table, key in places))
            case ops.Query():
                return self._query(op)
            case ops.Scan():
                return self._scan(op)
            case _:
                raise InvalidRequest(type(op).__name__, "ValidationException", "an export can only be read")

    def _one(self, table: str, key: Key) -> Item | None:
        """Read one item of a table by its key; None if there is no such item."""
        p, s = _ordered(key, self._spec(table).keys)
        row = self._file.execute(
            "SELECT fields FROM places JOIN items USING (number) WHERE place = ? AND p = ? AND s = ?",
            (table, p, s),
        ).fetchone()
        return None if row is None else read_fields(json.loads(row[0]))

    def _query(self, query: ops.Query) -> ops.Items:
        """Return a page of a query, or the count of it, from the rows of one partition key."""
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
        """Return a page of a scan's matching items, from the rows whose hash falls into its segment."""
        spec = self._spec(scan.table)
        names = _names(spec, scan.index)
        segment, total = scan.segment
        where, values = "place = ? AND hash % ? = ?", [_place(scan.table, scan.index), total, segment]
        if scan.after is not None:
            where += " AND (p, s, kp, ks) > (?, ?, ?, ?)"
            values += [*_ordered(scan.after, names), *_ordered(scan.after, spec.keys)]
        page = self._page(scan, {*spec.keys, *names}, f"{where} ORDER BY p, s, kp, ks", values)
        return replace(page, items=tuple(item for item in page.items if effects.holds(scan.where, item)))

    def _page(
        self, op: ops.Query | ops.Scan, names: Iterable[str], where: str, values: Sequence[Any]
    ) -> ops.Items:
        """Read rows up to the operation's limit or 1 MB; `names` are the attributes of the key to go on from."""
        items, size = list[Item](), 0
        statement = f"SELECT fields FROM places JOIN items USING (number) WHERE {where}"  # noqa: S608  ours
        for (fields,) in self._file.execute(statement, values):
            items.append(read_fields(json.loads(fields)))
            size += len(fields)
            if len(items) == op.limit or size >= limits.PAGE_BYTES:
                return ops.Items(items=tuple(items), last={name: items[-1][name] for name in names})
        return ops.Items(items=tuple(items))

    def _spec(self, table: str) -> TableSpec:
        """Return the specification of a table; raise `MissingTable` if the export has no such table."""
        try:
            return self._specs[table]
        except KeyError:
            raise MissingTable(table) from None


def _place(table: str, index: str | None) -> str:
    return table if index is None else f"{table}/{index}"


def _places(table: str, spec: TableSpec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the table and each of its indexes, with the names of the key attributes there."""
    yield table, spec.keys
    for index in spec.indexes:
        yield _place(table, index.name), _names(spec, index.name)


def _names(spec: TableSpec, index: str | None) -> tuple[str, ...]:
    spec_of_index = next((index_spec for index_spec in spec.indexes if index_spec.name == index), None)
    return spec.keys if spec_of_index is None else spec_of_index.key_names(spec)


def _ordered(fields: Fields, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Return an item's two keys as values that SQLite orders as DynamoDB does.

    Numbers are ordered by size, and text by UTF-8.
    """
    keys = [_comparable(fields[name]) for name in names[:2]]
    return keys[0], keys[1] if len(keys) > 1 else 0


def _comparable(value: AttributeValue) -> int | str:
    """Convert a key attribute to what SQLite orders as DynamoDB does; raise for numbers beyond 64 bits."""
    ((kind, content),) = value.items()
    if kind != "N":
        return str(content)
    if not -(1 << 63) <= (integer := int(content)) < 1 << 63:
        raise CorruptData(f"a key is the number {content}, which is beyond 64 bits")
    return integer
