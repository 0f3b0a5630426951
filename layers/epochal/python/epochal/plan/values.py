"""DynamoDB attribute values, the bytes that they take, and the units of those.

Values are in their wire form, `{"S": "..."}`, because that is what both interpreters speak. Numbers stay text: DynamoDB
keeps 38 digits, which a float would not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar

from epochal.errors import CorruptData
from epochal.lazy_dataclasses import dataclass

T = TypeVar("T")

AttributeValue = Mapping[str, Any]
"""One of S, N (text), B (bytes), BOOL, NULL, L, M, SS, NS, BS."""

Item = Mapping[str, AttributeValue]
Key = Mapping[str, AttributeValue]


def text(value: str) -> AttributeValue:
    """Make the attribute value of a string."""
    return {"S": value}


def number(value: int) -> AttributeValue:
    """Make the attribute value of a whole number."""
    return {"N": str(value)}


def binary(value: bytes) -> AttributeValue:
    """Make the attribute value of bytes."""
    return {"B": value}


def sequence(values: Iterable[AttributeValue]) -> AttributeValue:
    """Make the attribute value of a list."""
    return {"L": list(values)}


def mapping(values: Mapping[str, AttributeValue]) -> AttributeValue:
    """Make the attribute value of a map."""
    return {"M": values}


def read_text(item: Item, name: str) -> str | None:
    """Return the string under `name`; None where the attribute is absent."""
    value = item.get(name)
    return None if value is None else value["S"]


def read_number(item: Item, name: str) -> int | None:
    """Return the whole number under `name`; None where the attribute is absent."""
    value = item.get(name)
    return None if value is None else int(value["N"])


def read_list(item: Item, name: str) -> list[AttributeValue]:
    """Return the list under `name`; an absent list is empty (FORMATS §1)."""
    value = item.get(name)
    return [] if value is None else value["L"]


def decodes(layout: str) -> Callable[[Callable[[Item], T]], Callable[[Item], T]]:
    """Make a decorator for readers of a layout's items, which then raise `CorruptData` for other items.

    Such an item lacks an attribute, or has one of another type.
    """

    def decoder(read: Callable[[Item], T]) -> Callable[[Item], T]:
        """Wrap a reader so that it raises `CorruptData` for an item of another layout."""

        @wraps(read)
        def soundly(item: Item) -> T:
            try:
                return read(item)
            except (KeyError, TypeError, ValueError) as error:
                raise CorruptData(f"an item is not of the {layout} layout: {error!r}") from error

        return soundly

    return decoder


# How many bytes an item takes, by DynamoDB's published rules, to the byte.
#
# Names and strings count their UTF-8 bytes, binaries their bytes, numbers a byte for every two significant
# digits and one more (and one for a minus sign), NULL and BOOL one; lists and maps three, and one for every
# element. Source: AWS, "DynamoDB item sizes and formats". DynamoDB Local agrees (tests/contract).

CONTAINER: Final = 3
ELEMENT: Final = 1
NUMBER: Final = 21
"""Largest bytes of a number: a negative number of full length takes no further byte for its sign."""


def item_size(item: Item) -> int:
    """Compute the bytes of a whole item: names and values.

    The loop makes few calls, since every read and write needs the size.
    """
    total = 0
    for name, value in item.items():
        ((kind, content),) = value.items()
        total += len(name) if name.isascii() else len(name.encode())
        if kind == "S" and content.isascii():
            total += len(content)
        else:
            total += _SIZES[kind](content)
    return total


def attribute_size(name: str, value: AttributeValue) -> int:
    """Compute the bytes of one top-level attribute."""
    return _utf8(name) + value_size(value)


def value_size(value: AttributeValue) -> int:
    """Compute the bytes of a value without its name."""
    ((kind, content),) = value.items()
    return _SIZES[kind](content)


@lru_cache(maxsize=4096)
def number_size(digits: str) -> int:
    """Compute the bytes of a number, where leading and trailing zeroes do not count.

    Results are cached, because items repeat each other's versions, times and lengths.
    """
    if digits.isdecimal():
        # Nearly all are whole and have no sign, and every item has some.
        stripped = digits.rstrip("0")
        return _paired(len(stripped.lstrip("0")), len(digits) - len(stripped))
    mantissa, _, exponent = digits.lower().partition("e")
    negative = mantissa.startswith("-")
    integer, _, fraction = mantissa.lstrip("+-").partition(".")
    if not (integer + fraction).strip("0"):
        return 1
    shift = int(exponent or 0) - len(fraction)
    significant = (integer + fraction).lstrip("0")
    stripped = significant.rstrip("0")
    return _paired(len(stripped), shift + len(significant) - len(stripped), negative=negative)


def _paired(significant: int, power: int, *, negative: bool = False) -> int:
    """Compute the bytes of a number from its significant digits and the power of ten of the last one.

    A byte holds two digits, aligned to the decimal point: an odd power takes half a byte more.
    """
    pairs = (significant + (power % 2) + 1) // 2 if significant else 0
    return min(1 + pairs + negative, NUMBER)


def _utf8(content: str) -> int:
    return len(content) if content.isascii() else len(content.encode())


def _list_size(content: list[AttributeValue]) -> int:
    """Compute the bytes of a list."""
    total = CONTAINER + ELEMENT * len(content)
    for value in content:
        ((kind, inner),) = value.items()
        total += _SIZES[kind](inner)
    return total


def _map_size(content: Mapping[str, AttributeValue]) -> int:
    return CONTAINER + ELEMENT * len(content) + item_size(content)


def _constant(_: Any) -> int:
    return 1


_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    "S": _utf8,
    "N": number_size,
    "B": len,
    "BOOL": _constant,
    "NULL": _constant,
    "L": _list_size,
    "M": _map_size,
    "SS": lambda content: sum(_utf8(element) for element in content),
    "NS": lambda content: sum(number_size(element) for element in content),
    "BS": lambda content: sum(len(element) for element in content),
}


# Capacity units, as DynamoDB charges them.

WRITE_UNIT: Final = 1024
READ_UNIT: Final = 4096


@dataclass(frozen=True, slots=True)
class Units:
    """Capacity units of reads and writes, which can be added and subtracted."""

    read: float = 0.0
    write: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.read + other.read, self.write + other.write)

    def __sub__(self, other: Units) -> Units:
        return Units(self.read - other.read, self.write - other.write)


NONE = Units()


def write_units(size: int) -> int:
    """Compute the units to write an item of `size` bytes; at least 1."""
    return max(1, -(-size // WRITE_UNIT))


def read_units(size: int, *, consistent: bool = True) -> float:
    """Compute the units to read `size` bytes in one request; at least 1, or a half without consistency."""
    return max(1, -(-size // READ_UNIT)) * (1.0 if consistent else 0.5)


def stored_size(item: Item | None) -> int:
    """Compute the bytes of the item that is stored under a key; 0 where there is none."""
    return 0 if item is None else item_size(item)
