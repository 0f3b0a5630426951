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
    """The condition that an attribute does not exist.

    On a key attribute: the item does not exist.

    Attributes:
        name: name of the attribute.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Present:
    """The condition that an attribute exists.

    A filter of a stream needs the attribute's type: `kind`, which is `S`, `N`, `L`, …
    """

    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Compare:
    """The condition that an attribute exists and is `=`, `<`, `<=` or `>=` `value`, of the same type."""

    name: str
    operator: Comparison
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class BeginsWith:
    """The condition that an attribute exists, is text, and begins with `prefix`."""

    name: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Not:
    """The condition that a comparison does not hold, also because the attribute is absent."""

    condition: Compare


@dataclass(frozen=True, slots=True)
class All:
    """The condition that every one of these conditions holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The condition that at least one of these conditions holds."""

    conditions: tuple[Condition, ...]


Condition = Absent | Present | Compare | BeginsWith | Not | All | AnyOf


def equals(name: str, value: AttributeValue) -> Compare:
    """Make the condition that an attribute equals a value."""
    return Compare(name, "=", value)
