"""Conditions on an item, as values that every interpreter evaluates alike.

Top-level attributes only: nothing Epochal stores needs a deeper path. A comparison with an absent attribute is
false, as in DynamoDB.
"""

from __future__ import annotations

from typing import Literal

from epochal.lazy_dataclasses import dataclass
from epochal.plan.values import AttributeValue

Comparison = Literal["=", "<", "<=", ">="]


@dataclass(frozen=True, slots=True)
class Absent:
    """The attribute does not exist. On a key attribute: the item does not exist."""

    name: str


@dataclass(frozen=True, slots=True)
class Present:
    """The attribute exists. A filter of a stream has to be told its type: `kind`, which is `S`, `N`, `L`, …"""

    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Compare:
    """The attribute exists and compares with `value`, of the same type."""

    name: str
    operator: Comparison
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class BeginsWith:
    """The attribute exists, is text, and begins with `prefix`."""

    name: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Not:
    """A comparison does not hold: with an absent attribute, too."""

    condition: Compare


@dataclass(frozen=True, slots=True)
class All:
    """Every one holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one holds."""

    conditions: tuple[Condition, ...]


Condition = Absent | Present | Compare | BeginsWith | Not | All | AnyOf


def equals(name: str, value: AttributeValue) -> Compare:
    """`name = value`."""
    return Compare(name, "=", value)
