"""What tagged events cost: write units by number of tags, and requests.

Units are the library's own arithmetic on the plans it sends, with AWS's rules for transactions and indexes. The tests
hold it to DynamoDB Local item by item, since that charges twice too many units for whole transactions. Events are JSON
of 300 bytes, and all heads are there already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bench.index_capacity import index_units
from bench.report import Report
from epochal.contrib.sekiban.items import EVENTS, TAGS, Keys, TagSite
from epochal.contrib.sekiban.store import DcbEvents
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.plan.costs import units
from epochal.plan.effects import after
from epochal.plan.ops import Check, Execute, Get, Op, Put, Reply, Transact, TransactionWrite
from epochal.plan.values import Item, Key
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

TAG_COUNTS = (0, 1, 2, 3, 4, 5, 10)
SPECS = {EVENTS.kind: EVENTS, TAGS.kind: TAGS}
BYTES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Cost of an append: items of its transaction, and write units of tables and of their indexes."""

    items: int
    tables: float
    indexes: int

    @property
    def whole(self) -> float:
        """Write units of tables and indexes together."""
        return self.tables + self.indexes

    def columns(self) -> tuple[str, ...]:
        """Cells of the table."""
        return (f"{self.items}", f"{self.tables:.0f}", f"{self.indexes}", f"{self.whole:.0f}")


@dataclass(slots=True)
class Till:
    """Tables in memory that compute the price of each transaction before it is performed."""

    tables: MemoryTables = field(default_factory=lambda: MemoryTables(SPECS))
    prices: list[Price] = field(default_factory=list)

    def execute(self, op: Op) -> Reply:
        """Perform a transaction, and compute its price."""
        if isinstance(op, Transact):
            self.prices.append(price_of(op, self._stored))
        return self.tables.execute(op)

    def _stored(self, table: str, key: Key) -> Item | None:
        keys = {name: key[name] for name in SPECS[table].keys}
        reply: Any = self.tables.execute(Get(table=table, key=keys))
        item: Item | None = reply.item
        return item


def price_of(op: Transact, stored: Callable[[str, Key], Item | None]) -> Price:
    """Compute the price of a transaction by the library's arithmetic."""
    return Price(
        items=len(op.writes),
        tables=units(op, stored).write,
        indexes=sum(_index_units(write, stored) for write in op.writes),
    )


def _index_units(write: TransactionWrite, stored: Callable[[str, Key], Item | None]) -> int:
    if isinstance(write, Check):
        return 0
    before = stored(write.table, write.item if isinstance(write, Put) else write.key)
    return index_units(SPECS[write.table], before, after(write, before))


def event(tags: int, number: int = 0) -> Event:
    """Return an event with 300 bytes of JSON and these tags."""
    body = {"number": number, "note": ""}
    body["note"] = "x" * (BYTES - len(json.dumps(body)))
    names = tuple(f"group{tag}:{tag:08}" for tag in range(tags))
    return Event(type="StudentSubscribedToCourse", data=json.dumps(body).encode(), tags=names)


def asking(tags: int) -> Query:
    """Return a query for an event's own tags."""
    names = frozenset(f"group{tag}:{tag:08}" for tag in range(tags))
    return Query(items=(QueryItem(types=frozenset({"Closed"}), tags=names),))


def opened(execute: Execute, events: str, tags: str, *, type_heads: bool) -> DcbEvents:
    """Return a store with its own meter."""
    site = TagSite(events=events, tags=tags, keys=Keys(), type_heads=type_heads)
    return DcbEvents(driver=Driver(execute=execute, meter=Meter()), site=site)


def price(tags: int, *, type_heads: bool, events: int = 1) -> Price:
    """Return the price of an append of events with a number of tags each, whose heads exist."""
    till = Till()
    store = opened(till.execute, EVENTS.kind, TAGS.kind, type_heads=type_heads)
    store.append([event(tags)])
    store.append([event(tags, number) for number in range(events)])
    return till.prices[-1]


def units_by_tags() -> list[tuple[str, ...]]:
    """Return the rows of the documented table, by number of tags."""
    return [
        (f"{tags}", *price(tags, type_heads=False).columns(), *price(tags, type_heads=True).columns())
        for tags in TAG_COUNTS
    ]


def units_of_ten() -> list[tuple[str, ...]]:
    """Return the rows of the documented table of ten events per append, with the units of an event."""
    return [
        (
            f"{tags}",
            *(f"{price(tags, type_heads=heads, events=10).whole / 10:.1f}" for heads in (False, True)),
        )
        for tags in (0, 1, 2, 3)
    ]


def requests() -> list[tuple[str, ...]]:
    """Return the requests of an append of one event with two tags, conditional on both, for the documented table."""
    return [(name, f"{count}") for name, count in _requests()]


def _requests() -> Iterator[tuple[str, int]]:
    till = Till()
    store = opened(till.execute, EVENTS.kind, TAGS.kind, type_heads=False)
    meter = store.driver.meter
    query = asking(2)

    def took(run: Callable[[], object]) -> int:
        before = meter.requests
        run()
        return meter.requests - before

    store.append([event(2)])
    yield "without a condition", took(lambda: store.append([event(2)]))
    yield "with a condition, no position", took(lambda: store.append([event(2)], fail_if=query))
    read = store.read(query)
    yield (
        "with a condition, and the position of its read",
        took(lambda: store.append([event(2)], fail_if=query, after=read.position)),
    )
    stale = store.read(query)
    store.append([event(2)])
    yield (
        "the same, after an unrelated event of the same tag",
        took(lambda: store.append([event(2)], fail_if=query, after=stale.position)),
    )
    store.append([replace(event(2), type="Closed")])
    yield (
        "the same, refused because of a match",
        took(lambda: store.try_append([event(2)], fail_if=query, after=stale.position)),
    )


def main() -> None:
    """Measure, and print the figures."""
    Report(
        title="Write units of an append of one 300-byte event; without, and with type heads",
        columns=("tags", "items", "tables", "indexes", "in all", "items", "tables", "indexes", "in all"),
        rows=units_by_tags(),
    ).print()
    Report(
        title="Ten events in one append under the same tags: write units an event",
        columns=("tags", "without", "with type heads"),
        rows=units_of_ten(),
    ).print()
    Report(title="Requests of an append", columns=("append", "requests"), rows=requests()).print()


if __name__ == "__main__":
    main()
