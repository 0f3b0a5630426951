"""Combined flags are stored as their number and come back as they were, whatever library made the class."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import attrs
import msgspec
import pydantic
import pytest

from epochal.contrib.schemas.class_schemas import schema_of
from epochal.contrib.schemas.columns import columns
from epochal.deciders.codecs import Stored, json_codec
from epochal.errors import CorruptData


class Perks(enum.IntFlag):
    LOUNGE = 1
    WIFI = 2


class Doors(enum.Flag):
    FRONT = 1
    REAR = 2
    BOTH = 3


class Masked(enum.Flag, boundary=enum.CONFORM):
    ONE = 1


@dataclass(frozen=True)
class Upgraded:
    perks: Perks
    doors: Doors = Doors.FRONT


@attrs.frozen
class UpgradedByAttrs:
    perks: Perks
    doors: Doors = Doors.FRONT


class UpgradedByPydantic(pydantic.BaseModel):
    perks: Perks
    doors: Doors = Doors.FRONT


class UpgradedByMsgspec(msgspec.Struct):
    perks: Perks
    doors: Doors = Doors.FRONT


@dataclass(frozen=True)
class Hidden:
    masked: Masked


CLASSES = [Upgraded, UpgradedByAttrs, UpgradedByPydantic, UpgradedByMsgspec]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("perks", [Perks.LOUNGE, Perks.LOUNGE | Perks.WIFI, Perks(0), Perks(8)])
@pytest.mark.parametrize("doors", [Doors.REAR, Doors.FRONT | Doors.REAR, Doors(0)])
def test_combined_flags_come_back_as_they_were(kind: Any, perks: Perks, doors: Doors) -> None:
    codec = json_codec(kind)
    event = codec.encode(kind(perks=perks, doors=doors))
    assert event.content == b'{"perks":%d,"doors":%d}' % (perks.value, doors.value)
    read: Any = codec.read(event)
    assert (read.perks, read.doors) == (perks, doors)
    assert (type(read.perks), type(read.doors)) == (Perks, Doors)


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        (Upgraded, b'{"perks":1,"doors":4}', "doors: must be the number of a Doors"),
        (Upgraded, b'{"perks":true}', "perks: must be the number of a Perks"),
        (Upgraded, b'{"perks":"1"}', "perks: must be the number of a Perks"),
        (Hidden, b'{"masked":3}', "masked: must be the number of a Masked"),
    ],
)
def test_a_number_that_is_no_combination_of_a_flag_is_corrupt(kind: Any, data: bytes, why: str) -> None:
    with pytest.raises(CorruptData, match=why):
        json_codec(kind).decode(Stored(type=kind.__name__, data=data))


@pytest.mark.parametrize("kind", CLASSES)
def test_the_schema_of_a_flag_admits_its_combinations(kind: Any) -> None:
    schema = schema_of(kind)
    perks = schema["properties"]["perks"]
    if "$ref" in perks:
        perks = schema["$defs"][perks["$ref"].removeprefix("#/$defs/")]
    assert "enum" not in perks
    assert perks["type"] == "integer"
    (column, _) = columns(json_codec(kind)).of_types[kind.__name__]
    assert column.type == "int64"
