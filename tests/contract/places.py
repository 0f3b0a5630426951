"""A place of its own for each contract test: one partition of a table on one of the three stores."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from epochal.plan.ops import Done, Execute, Get, Items, Put, Query
from epochal.plan.values import (
    AttributeValue,
    Item,
    Key,
    attribute_size,
    binary,
    item_size,
    number,
    sequence,
    text,
)
from epochal.store.driver import Patience

PATIENT = Patience(seconds=120.0)
"""For races: on a busy machine 64 writers take DynamoDB Local longer than an HTTP request may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A partition that no other test uses.

    Attributes:
        store: `memory`, `ddbl` or `ministack`.
        execute: the interpreter of that store.
        table: a table with keys `p` and `i`.
    """

    store: str
    execute: Execute
    table: str
    partition: str

    def at(self, partition: str) -> Place:
        return replace(self, partition=partition)

    def key(self, sort: int = 0) -> Key:
        return {"p": text(self.partition), "i": number(sort)}

    def put(self, sort: int = 0, **attributes: AttributeValue) -> Item:
        return self.store_item({**self.key(sort), **attributes})

    def store_item(self, item: Item) -> Item:
        assert isinstance(self.execute(Put(table=self.table, item=item)), Done)
        return item

    def get(self, sort: int = 0) -> Item | None:
        return self.execute(Get(table=self.table, key=self.key(sort))).item

    def query(self, **options: object) -> Items:
        return self.execute(Query(table=self.table, partition=("p", text(self.partition)), **options))

    def all(self) -> list[Item]:
        items, last = [], None
        while True:
            page = self.query(after=last)
            items += page.items
            last = page.last
            if last is None:
                return items


@dataclass(frozen=True, slots=True, kw_only=True)
class Looped(Place):
    """A place whose interpreter waits for an event loop: its tests are run by that."""

    runner: asyncio.Runner


def padded(item: Item, size: int, name: str = "pad") -> Item:
    """The item with an attribute that brings it to exactly `size` bytes."""
    room = size - item_size(item) - attribute_size(name, binary(b""))
    assert room >= 0
    return {**item, name: binary(b"\0" * room)}


def texts(*values: str) -> AttributeValue:
    return sequence(map(text, values))
