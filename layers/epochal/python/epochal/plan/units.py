"""Capacity units, as DynamoDB charges them; `capacity` tells those of a whole plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WRITE_UNIT: Final = 1024
READ_UNIT: Final = 4096


@dataclass(frozen=True, slots=True)
class Units:
    """Capacity units; they add up."""

    read: float = 0.0
    write: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.read + other.read, self.write + other.write)

    def __sub__(self, other: Units) -> Units:
        return Units(self.read - other.read, self.write - other.write)


NONE = Units()


def write_units(size: int) -> int:
    """Units to write an item of `size` bytes; the least is 1."""
    return max(1, -(-size // WRITE_UNIT))


def read_units(size: int, *, consistent: bool = True) -> float:
    """Units to read `size` bytes in one request; the least is 1, or a half."""
    return max(1, -(-size // READ_UNIT)) * (1.0 if consistent else 0.5)
