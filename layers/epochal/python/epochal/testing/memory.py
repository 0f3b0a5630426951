"""DynamoDB in memory: the interpreter that tests run on.

It answers as DynamoDB does for every operation a plan can hold: conditions, transactions, pages of 1 MB, limits,
what is malformed (`testing.refusals`), capacity, and the change records of a table's stream. The contract suite holds
it to DynamoDB Local.
What only a distributed store does is left to a test, which puts `Faults` around it. Their schedule is a plain value:
tests enumerate schedules, or draw them, and a failing one prints and replays.

    THROTTLED    refused unread: the caller knows that nothing happened
    LOST         never arrives: the caller cannot tell
    UNANSWERED   arrives and is applied, its answer does not come back: the caller cannot tell
    Late(n)      arrives after n more requests of anyone, long after the caller gave it up
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import compress
from typing import Any
from zlib import crc32

from epochal.errors import InvalidRequest, MissingTable
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.plan import costs, effects, limits, ops
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Execute, Op, Reply
from epochal.plan.tables import IndexSpec, TableSpec
from epochal.plan.values import Item, Key, Units, item_size, read_units, write_units
from epochal.testing import refusals

_Sort = Any


@dataclass(slots=True)
class _Table:
    """A table: items by partition and sort key, with the sort keys in order for queries."""

    spec: TableSpec
    partitions: dict[Any, dict[_Sort, Item]] = field(default_factory=dict)
    order: dict[Any, list[_Sort]] = field(default_factory=dict)
    changes: list[Item] = field(default_factory=list)

    def copy(self) -> _Table:
        """Return an independent copy."""
        return _Table(
            self.spec,
            {partition: dict(items) for partition, items in self.partitions.items()},
            {partition: list(sorts) for partition, sorts in self.order.items()},
            list(self.changes),
        )

    def place(self, key: Key) -> tuple[Any, _Sort]:
        """Return the partition and sort key of an item in comparable form."""
        sort = self.spec.sort
        return effects.comparable(
            key[self.spec.partition.name]
        ), None if sort is None else effects.comparable(key[sort.name])

    def get(self, key: Key) -> Item | None:
        """Return the item under a key, or None."""
        partition, sort = self.place(key)
        return self.partitions.get(partition, {}).get(sort)

    def put(self, key: Key, item: Item | None) -> None:
        """Put or delete (None) the item under a key; record a changed new image if the table has a stream."""
        partition, sort = self.place(key)
        items, order = self.partitions.setdefault(partition, {}), self.order.setdefault(partition, [])
        if item is None:
            if items.pop(sort, None) is not None:
                order.remove(sort)
            return
        if sort not in items:
            insort(order, sort)
        if self.spec.stream and items.get(sort) != item:
            self.changes.append(item)
        items[sort] = item


class MemoryTables:
    """DynamoDB tables in memory, on which `execute` performs operations. Safe under threads."""

    def __init__(self, tables: dict[str, TableSpec], *, response_bytes: int = limits.RESPONSE_BYTES) -> None:
        """Create empty tables by name.

        Args:
            tables: shapes of the tables, by their names.
            response_bytes: largest number of bytes of items in the response to a transaction; fewer than DynamoDB's let
                small items reach that limit.
        """
        self._response_bytes = response_bytes
        self._tables = {name: _Table(spec) for name, spec in tables.items()}
        self._lock = threading.RLock()
        self._tokens: dict[str, ops.Transact] = {}

    def execute(self, op: ops.Op) -> ops.Reply:
        """Perform one operation atomically, and return its reply; raise what DynamoDB's interpreter raises.

        Args:
            op: operation to perform.

        Raises:
            TooLarge: a limit of DynamoDB.
            MissingTable: no such table.
            InvalidRequest: what DynamoDB takes for malformed.
            WrongTable: a table of other keys, or without such an index.
        """
        limits.check(op)
        with self._lock:
            refusals.check(op, self._spec)
            if isinstance(op, ops.Query | ops.Scan):
                return self._page(op)
            refusals.check_stored(op, self._stored)
            return self._perform(op)

    def _perform(
        self, op: ops.Get | ops.BatchGet | ops.TransactGet | ops.Transact | ops.TransactionWrite
    ) -> ops.Reply:
        """Perform an operation that is neither a query nor a scan, and return its reply."""
        match op:
            case ops.Get(table=table, key=key):
                item = self._stored(table, key)
                return ops.Found(item=item, units=costs.units(op, _one_by_one((item,))))
            case ops.BatchGet(table=table, keys=keys):
                there = [self._stored(table, key) for key in keys]
                return ops.Items(items=tuple(filter(None, there)), units=costs.units(op, _one_by_one(there)))
            case ops.TransactGet(keys=keys):
                items = tuple(self._stored(table, key) for table, key in keys)
                if not limits.fits_response(items, self._response_bytes):
                    return _oversized(op)
                return ops.Together(items=items, units=costs.units(op, _one_by_one(items)))
            case ops.Transact():
                return self._transact(op)
            case _:
                return self._write((op,))

    def items(self, table: str) -> Iterator[Item]:
        """Iterate over every item of a table, for assertions.

        Args:
            table: name of the table.
        """
        with self._lock:
            stored = self._table(table)
            yield from [stored.partitions[p][s] for p in stored.partitions for s in stored.order[p]]

    def changes(self, table: str) -> tuple[Item, ...]:
        """Return the new images in a table's change stream: each changed item as its write left it, in order.

        Deletions are not among them.

        Args:
            table: name of the table.
        """
        with self._lock:
            return tuple(self._table(table).changes)

    def copy(self) -> MemoryTables:
        """Return an independent copy of all tables."""
        with self._lock:
            twin = MemoryTables({}, response_bytes=self._response_bytes)
            twin._tables = {name: table.copy() for name, table in self._tables.items()}
            twin._tokens = dict(self._tokens)
            return twin

    def _table(self, name: str) -> _Table:
        try:
            return self._tables[name]
        except KeyError:
            raise MissingTable(name) from None

    def _spec(self, table: str) -> TableSpec:
        return self._table(table).spec

    def _stored(self, table: str, key: Key) -> Item | None:
        return self._table(table).get(key)

    def _page(self, op: ops.Query | ops.Scan) -> ops.Items:
        """Read a page of a query or scan, up to its limit or 1 MB, and filter it."""
        stored = self._table(op.table)
        items: list[Item] = []
        total, last = 0, None
        for item in _rows(stored, op):
            total += item_size(item)
            items.append(item)
            if len(items) == op.limit or total >= limits.PAGE_BYTES:
                last = {name: item[name] for name in _names(stored.spec, op.index)}
                break
        where = op.where if isinstance(op, ops.Scan) else None
        matching = tuple(item for item in items if effects.holds(where, item))
        cost = Units(read=read_units(total, consistent=op.consistent))
        if isinstance(op, ops.Query) and op.only_count:
            return ops.Items(items=(), counted=len(matching), last=last, units=cost)
        return ops.Items(items=matching, last=last, units=cost)

    def _transact(self, op: ops.Transact) -> ops.Reply:
        """Write a transaction, once for each token; return the reply, `Oversized` if that is too large."""
        if op.token is not None and op.token in self._tokens:
            cost = costs.units(op, self._stored)
            return ops.Done(units=cost) if self._tokens[op.token] == op else _reused(op, cost)
        reply = self._write(op.writes, times=2)
        if isinstance(reply, ops.Refusal):
            items = tuple(item if op.shows(position) else None for position, item in enumerate(reply.items))
            returned = compress(items, (bad and op.shows(place) for place, bad in enumerate(reply.failed)))
            if not limits.fits_response(returned, self._response_bytes):
                return _oversized(op)
            return (
                reply
                if op.shown is None
                else replace(reply, items=items, units=costs.refusal_units(items, 2))
            )
        if op.token is not None and isinstance(reply, ops.Done):
            self._tokens[op.token] = op
        return reply

    def _write(self, writes: tuple[ops.TransactionWrite, ...], times: int = 1) -> ops.Reply:
        """Apply all writes or none; return a refusal if a condition fails, or an overflow of an item."""
        before = [self._stored(write.table, _key(write)) for write in writes]
        failed = tuple(
            not effects.holds(write.condition, item) for write, item in zip(writes, before, strict=True)
        )
        about = zip(writes, before, failed, strict=True)
        results = [item if bad else effects.after(write, item) for write, item, bad in about]
        sizes = [item_size(result or {}) for result in results]
        largest = map(max, sizes, (item_size(item or {}) for item in before))
        cost = Units(write=times * sum(map(write_units, largest)))
        if any(failed):
            items = tuple(item if bad else None for item, bad in zip(before, failed, strict=True))
            return ops.Refusal(items=items, failed=failed, units=cost)
        over = tuple(size > limits.ITEM_BYTES for size in sizes)
        if any(over):
            return ops.Overflow(over=over if len(over) > 1 else (), units=cost)
        self._store(writes, results)
        return ops.Done(units=cost)

    def _store(self, writes: Sequence[ops.TransactionWrite], results: Sequence[Item | None]) -> None:
        """Replace items by what the writes leave."""
        for write, result in zip(writes, results, strict=True):
            if not isinstance(write, ops.Check):
                self._table(write.table).put(_key(write), result)


def _one_by_one(items: Iterable[Item | None]) -> costs.Lookup:
    """Return a lookup that returns these items one after another, for code that asks in the same order."""
    following = iter(items)
    return lambda *_: next(following)


def _oversized(op: ops.Transact | ops.TransactGet) -> ops.Oversized:
    """Return the reply, or raise the error, that a response of too many bytes means."""
    if op.divisible:
        return ops.Oversized()
    name = "TransactGetItems" if isinstance(op, ops.TransactGet) else "TransactWriteItems"
    raise InvalidRequest(name, "ValidationException", "Payload in response is too large")


def _reused(op: ops.Transact, cost: Units) -> ops.Refusal:
    """Return the refusal of a token that was used for another transaction.

    DynamoDB does not say what would become of the other one.
    """
    nothing, no = (None,) * len(op.writes), (False,) * len(op.writes)
    return ops.Refusal(items=nothing, failed=no, ambiguous=True, reused=True, units=cost)


def _key(write: ops.TransactionWrite) -> Key:
    """Return the key of the item that is written, or the item itself."""
    return write.item if isinstance(write, ops.Put) else write.key


def _names(spec: TableSpec, index: str | None) -> tuple[str, ...]:
    """Return the names of the attributes that place an item in a table or an index."""
    return spec.keys if index is None else _index_of(spec, index).key_names(spec)


def _rows(stored: _Table, op: ops.Query | ops.Scan) -> Iterator[Item]:
    """Iterate over the items that a query or scan reads, in its order."""
    if isinstance(op, ops.Scan):
        return _scanned_rows(stored, op)
    return _own_rows(stored, op) if op.index is None else _indexed_rows(stored, op, op.index)


def _scanned_rows(stored: _Table, scan: ops.Scan) -> Iterator[Item]:
    """Iterate over the items of a scan's segment, ordered by a hash of their partition keys.

    The hash also divides the segments.
    """
    names = _names(stored.spec, scan.index)
    segment, total = scan.segment

    def place(keys: Item) -> tuple[Any, ...]:
        """Return the rank of an item by its keys."""
        partition = effects.comparable(keys[names[0]])
        return (
            crc32(repr(partition).encode()),
            partition,
            *(effects.comparable(keys[name]) for name in names[1:]),
        )

    rows = [
        item
        for items in stored.partitions.values()
        for item in items.values()
        if all(name in item for name in names) and place(item)[0] % total == segment
    ]
    if scan.after is not None:
        last = place(scan.after)
        if last[0] % total != segment:
            raise InvalidRequest(
                "Scan", "ValidationException", "Exclusive start key must lie within the segment"
            )
        rows = [item for item in rows if place(item) > last]
    rows.sort(key=place)
    return _projected(stored.spec, scan.index, rows)


def _own_rows(stored: _Table, query: ops.Query) -> Iterator[Item]:
    """Iterate over the items of a partition that a query of the table reads."""
    partition = effects.comparable(query.partition[1])
    items = stored.partitions.get(partition, {})
    return (items[sort] for sort in _between(stored.spec, stored.order.get(partition, []), query))


def _between(spec: TableSpec, order: list[_Sort], query: ops.Query) -> list[_Sort]:
    """Return the sort keys that a query covers, in its order."""
    low, high = 0, len(order)
    if query.sort is not None:
        low = bisect_left(order, effects.comparable(query.sort[1]))
        high = bisect_right(order, effects.comparable(query.sort[2]))
    if query.after is not None and spec.sort is not None:
        last = effects.comparable(query.after[spec.sort.name])
        if query.forward:
            low = max(low, bisect_right(order, last))
        else:
            high = min(high, bisect_left(order, last))
    keys = order[low:high]
    return keys if query.forward else keys[::-1]


def _indexed_rows(stored: _Table, query: ops.Query, index: str) -> Iterator[Item]:
    """Iterate over the items that a query of an index reads; the index is built for each query.

    Indexes are small in tests.
    """
    names = _names(stored.spec, index)
    rows = [
        item
        for items in stored.partitions.values()
        for item in items.values()
        if all(name in item for name in names) and item[query.partition[0]] == query.partition[1]
    ]

    def place(keys: Item) -> list[Any]:
        return [effects.comparable(keys[name]) for name in names[1:]]

    rows.sort(key=place, reverse=not query.forward)
    if query.sort is not None:
        name, low, high = query.sort
        bounds = effects.comparable(low), effects.comparable(high)
        rows = [item for item in rows if bounds[0] <= effects.comparable(item[name]) <= bounds[1]]
    if query.after is not None:
        # What stood there may be gone by now.
        last = place(query.after)
        rows = [item for item in rows if (place(item) > last if query.forward else place(item) < last)]
    return _projected(stored.spec, index, rows)


def _projected(spec: TableSpec, index: str | None, rows: list[Item]) -> Iterator[Item]:
    """Iterate over items as a table or an index holds them: an index may hold only keys."""
    if index is None or not _index_of(spec, index).keys_only:
        return iter(rows)
    names = _names(spec, index)
    return ({name: item[name] for name in names} for item in rows)


def _index_of(spec: TableSpec, name: str) -> IndexSpec:
    return next(index for index in spec.indexes if index.name == name)


class Fault(Enum):
    """A way in which one request fails."""

    THROTTLED = "throttled"
    LOST = "lost"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Late:
    """A fault of a request: its sender gives up, and it arrives once `requests` more have been performed.

    Attributes:
        requests: number of requests that are performed before this one arrives.
    """

    requests: int = 1


Schedule = Mapping[int, Fault | Late]
"""Which requests, counted from 0, meet which fault; the others go well."""


class Faults:
    """Wraps the function that performs requests (an interpreter), so that some fail by a schedule. Safe under threads.

    Attributes:
        requests: number of requests made, whatever their outcome was.

    Args:
        execute: interpreter that performs the requests that do not fail.
        schedule: faults by the number of the request, from 0.
    """

    def __init__(self, execute: Execute, schedule: Schedule) -> None:
        self.requests = 0
        self._execute = execute
        self._schedule = schedule
        self._lock = threading.Lock()
        self._delayed: list[tuple[int, Op]] = []

    def execute(self, op: Op) -> Reply:
        """Perform delayed requests that are due, then an operation; return its reply or fail by the schedule.

        Args:
            op: operation to perform.

        Raises:
            RequestNotApplied: it was throttled.
            Lost: it was lost, unanswered or delayed.
        """
        with self._lock:
            number = self.requests
            self.requests += 1
            fault = self._schedule.get(number)
            if isinstance(fault, Late):
                self._delayed.append((number + fault.requests, op))
            due = self._due(number)
        for late in due:
            self._execute(late)
        return self._perform(op, fault)

    def land(self) -> None:
        """Let every delayed request arrive at the tables now."""
        with self._lock:
            late, self._delayed = self._delayed, []
        for _, op in late:
            self._execute(op)

    def _due(self, number: int) -> list[Op]:
        """Take the delayed requests that arrive by now."""
        due = [op for lands, op in self._delayed if lands < number]
        self._delayed = [(lands, op) for lands, op in self._delayed if lands >= number]
        return due

    def _perform(self, op: Op, fault: Fault | Late | None) -> Reply:
        """Perform an operation unless its fault prevents it; return the reply, or raise what a sender sees."""
        match fault:
            case None:
                return self._execute(op)
            case Fault.THROTTLED:
                raise RequestNotApplied("throttled by a schedule")
            case Fault.UNANSWERED:
                self._execute(op)
                raise Lost("answer dropped by a schedule")
            case Fault.LOST | Late():
                raise Lost("request held back by a schedule")
