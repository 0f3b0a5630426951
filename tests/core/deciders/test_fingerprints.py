"""Fingerprints of classes: what changes them, and what does not."""

from __future__ import annotations

import enum
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict
from uuid import UUID, uuid4

import attrs
import msgspec
import pydantic
import pytest

from epochal.deciders.fingerprints import fingerprint_of
from tests.core.deciders.changed_states import CHANGES, Account, Money

Euros = NewType("Euros", int)


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Swapped(enum.Enum):
    RED = "b"
    BLUE = "r"


class Point(NamedTuple):
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    loud: bool


@dataclass
class Tree:
    children: list[Tree]
    tags: frozenset[str] = frozenset({"a", "b", "c"})
    colour: Colour = Colour.RED


@dataclass
class OtherTree:
    """The same, by another name and with what no snapshot holds."""

    children: list[OtherTree]
    tags: frozenset[str] = frozenset({"c", "b", "a"})
    colour: Colour = Colour.RED
    size: int = field(default=0, init=False)

    def grow(self) -> None:
        """Do nothing that is stored."""


def of(hint: Any, *default: Any) -> str:
    """The fingerprint of a class with one field."""
    return fingerprint_of(make_dataclass("One", [("value", hint, *default)]))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_class_changes_its_fingerprint(change: str) -> None:
    before, after = CHANGES[change]
    assert fingerprint_of(before.kind) != fingerprint_of(after.kind)


HINTS: Sequence[Any] = [
    *(
        int,
        str,
        bool,
        float,
        Decimal,
        date,
        UUID,
        Any,
        None,
        Colour,
        Swapped,
        Money,
        Account,
        Tree,
        Point,
        Options,
    ),
    *(list[int], list[str], tuple[int, ...], tuple[int, int], set[int], dict[str, int], dict[str, str]),
    *(int | None, Literal["a"], Literal["a", "b"], Literal[1], Literal["1"], list[Money], Money | None),
]


def test_no_two_types_have_one_fingerprint() -> None:
    assert len({of(hint) for hint in HINTS}) == len(HINTS)


DEFAULTS: Sequence[Any] = [
    0,
    1,
    "0",
    None,
    True,
    0.0,
    Decimal(0),
    (),
    (0,),
    frozenset({1}),
    Colour.RED,
    Money(1),
    Money(2),
]


def test_no_two_defaults_have_one_fingerprint_nor_one_with_none() -> None:
    assert len({of(Any), *(of(Any, field(default=value)) for value in DEFAULTS)}) == len(DEFAULTS) + 1
    factories = (list, dict, uuid4)
    assert len({of(Any), *(of(Any, field(default_factory=each)) for each in factories)}) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int, Euros),
        (int, Annotated[int, "positive"]),
        (int | None, Optional[int]),  # noqa: UP045  the other way to write it
        (int | None, None | int),
    ],
)
def test_two_ways_to_write_a_type_have_one_fingerprint(one: Any, other: Any) -> None:
    assert of(one) == of(other)


def test_neither_the_name_of_a_class_nor_what_is_not_stored_changes_its_fingerprint() -> None:
    assert fingerprint_of(Tree) == fingerprint_of(OtherTree)


@attrs.frozen
class Attrs:
    balance: int = 0
    _hidden: int = attrs.field(factory=int)


@attrs.frozen
class MoreAttrs:
    balance: int = 1
    _hidden: int = attrs.field(factory=int)


class Model(pydantic.BaseModel):
    balance: int = 0
    money: list[Money] = pydantic.Field(default_factory=list, alias="m")


class AliasedModel(pydantic.BaseModel):
    balance: int = 0
    money: list[Money] = pydantic.Field(default_factory=list, alias="n")


class DescribedModel(pydantic.BaseModel):
    """Describes itself."""

    balance: int = pydantic.Field(default=0, description="in cents")
    money: list[Money] = pydantic.Field(default_factory=list, alias="m", title="Money")


class LargerModel(pydantic.BaseModel):
    balance: int = 0
    money: list[Account] = pydantic.Field(default_factory=list, alias="m")


class Struct(msgspec.Struct):
    balance: int = 0
    money: Mapping[str, Money] = {}


class LargerStruct(msgspec.Struct):
    balance: int = 0
    money: Mapping[str, Money] = {}
    count: int = 0


def test_classes_of_all_libraries_have_fingerprints_that_their_fields_change() -> None:
    kinds = [Attrs, MoreAttrs, Model, AliasedModel, LargerModel, Struct, LargerStruct]
    assert len({fingerprint_of(kind) for kind in kinds}) == len(kinds)
    assert fingerprint_of(Model) == fingerprint_of(DescribedModel)


def test_a_fingerprint_is_the_same_in_every_process_and_in_every_version() -> None:
    """Another one would make every state be loaded from its events."""
    assert fingerprint_of(Tree) == "8c2343b1a196"
    script = "from tests.core.deciders.test_fingerprints import *; print(fingerprint_of(Tree))"
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": "layers/epochal/python:."},
    )
    assert found.stdout.strip() == fingerprint_of(Tree)
