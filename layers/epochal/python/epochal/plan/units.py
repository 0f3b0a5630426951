"""Capacity units, as DynamoDB charges them."""

from __future__ import annotations

from dataclasses import dataclass


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
