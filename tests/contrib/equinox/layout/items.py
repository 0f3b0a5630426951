"""Tips and calves by hand, as another library or an older version would have left them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from epochal.index.checkpoints import TIP
from epochal.plan.ops import Done, Put
from epochal.plan.values import AttributeValue, Item, binary, mapping, number, sequence, text
from epochal.testing.memory import MemoryTables

STREAM = "Flight-1"
TABLE = "tips"


def event(data: bytes = b"{}", **more: AttributeValue) -> AttributeValue:
    return mapping({"t": text("2013-01-01T05:15:00.0000000+00:00"), "d": binary(data), **more})


def item(key: int, following: int, events: Iterable[AttributeValue], **more: AttributeValue) -> Item:
    listed = list(events)
    lists = {"e": sequence(listed), "c": sequence(text("E") for _ in listed)} if listed else {}
    return {"p": text(STREAM), "i": number(key), "n": number(following), **lists, **more}


def tip(following: int, events: Iterable[AttributeValue] = (), **more: AttributeValue) -> Item:
    return item(TIP, following, events, **{"etag": text("0" * 32), "a": number(1)} | more)


def calf(base: int, events: Iterable[AttributeValue]) -> Item:
    listed = list(events)
    return item(base, base + len(listed), listed)


def numbered(first: int, last: int) -> list[AttributeValue]:
    """Events whose bodies are their indices."""
    return [event(b"%d" % index) for index in range(first, last)]


def store(tables: MemoryTables, *items: Item) -> None:
    for each in items:
        assert isinstance(tables.execute(Put(table=TABLE, item=each)), Done)


def without(stored: Item, *names: str) -> dict[str, Any]:
    return {name: value for name, value in stored.items() if name not in names}
