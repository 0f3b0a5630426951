"""DynamoDB attribute values in their wire form, `{"S": "..."}`, because that is what both interpreters speak.

Numbers stay text: DynamoDB keeps 38 digits, which a float would not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

from epochal.errors import CorruptData

T = TypeVar("T")

AttributeValue = Mapping[str, Any]
"""One of S, N (text), B (bytes), BOOL, NULL, L, M, SS, NS, BS."""

Item = Mapping[str, AttributeValue]
Key = Mapping[str, AttributeValue]


def text(value: str) -> AttributeValue:
    """A string."""
    return {"S": value}


def number(value: int) -> AttributeValue:
    """A whole number."""
    return {"N": str(value)}


def binary(value: bytes) -> AttributeValue:
    """Bytes."""
    return {"B": value}


def sequence(values: Iterable[AttributeValue]) -> AttributeValue:
    """A list."""
    return {"L": list(values)}


def mapping(values: Mapping[str, AttributeValue]) -> AttributeValue:
    """A map."""
    return {"M": values}


def read_text(item: Item, name: str) -> str | None:
    """The string under `name`, or None where the attribute is absent."""
    value = item.get(name)
    return None if value is None else value["S"]


def read_number(item: Item, name: str) -> int | None:
    """The whole number under `name`, or None where the attribute is absent."""
    value = item.get(name)
    return None if value is None else int(value["N"])


def read_list(item: Item, name: str) -> list[AttributeValue]:
    """The list under `name`; an absent one is empty (FORMATS §1)."""
    value = item.get(name)
    return [] if value is None else value["L"]


def decodes(layout: str) -> Callable[[Callable[[Item], T]], Callable[[Item], T]]:
    """Make a reader of a layout's items raise `CorruptData` for an item that lacks an attribute or has another type."""

    def decoder(read: Callable[[Item], T]) -> Callable[[Item], T]:
        @wraps(read)
        def soundly(item: Item) -> T:
            try:
                return read(item)
            except (KeyError, TypeError, ValueError) as error:
                raise CorruptData(f"an item is not of the {layout} layout: {error!r}") from error

        return soundly

    return decoder
