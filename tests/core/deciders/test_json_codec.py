"""The JSON codec: what dataclasses become in a store, and what they are held to on the way in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Generic, Literal, NewType, TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec import json
from epochal.deciders.codecs import Stored, json_codec
from epochal.deciders.mismatch import Mismatch
from epochal.deciders.type_hints import shape_of
from epochal.errors import CorruptData, InvalidInput

T = TypeVar("T")
TailNumber = NewType("TailNumber", str)


class Gate(Enum):
    NORTH = "north"
    SOUTH = "south"


class Level(IntEnum):
    LOW = 1


class Shade(Enum):
    DARK = 0.5


@dataclass(frozen=True)
class Shaded:
    shade: Shade


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Tree:
    name: str
    children: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class Everything:
    text: str
    flag: bool
    whole: int
    ratio: float
    price: Decimal
    at: datetime
    day: date
    id: UUID
    gate: Gate
    mode: Literal["fast", 1]
    tail: TailNumber
    maybe: int | None
    point: Point
    listed: list[Point]
    many: tuple[int, ...]
    pair: tuple[int, str]
    ordered: Sequence[str]
    unordered: frozenset[str]
    changing: set[int]
    by_name: dict[str, Point]
    mapped: Mapping[str, int]
    raw: Any
    nothing: None = None
    derived: int = field(init=False, default=7)


EVERYTHING = Everything(
    text="ü\u2028",
    flag=True,
    whole=10**30,
    ratio=0.1,
    price=Decimal("1.10"),
    at=datetime(2013, 1, 1, 5, 17, 30, 123456, tzinfo=timezone(timedelta(hours=-5))),
    day=date(2013, 1, 1),
    id=UUID(int=1),
    gate=Gate.SOUTH,
    mode=1,
    tail=TailNumber("N14228"),
    maybe=None,
    point=Point(1, 2),
    listed=[Point(3)],
    many=(1, 2),
    pair=(1, "a"),
    ordered=("b", "a"),
    unordered=frozenset({"b", "a"}),
    changing={2, 1},
    by_name={"p": Point(1)},
    mapped={"one": 1},
    raw={"a": [1, None, "x"]},
)


def test_every_kind_of_field_comes_back_as_it_was() -> None:
    codec = json_codec(Everything)
    event = codec.encode(EVERYTHING)
    assert event.type == "Everything"
    assert isinstance(event.data, bytes)
    assert codec.decode(Stored(type=event.type, data=event.data)) == EVERYTHING


def test_what_is_stored_is_plain_json() -> None:
    stored = json.loads(shape_bytes(EVERYTHING))
    assert stored["price"] == Decimal("1.10")
    assert stored["at"] == "2013-01-01T05:17:30.123456-05:00"
    assert stored["gate"] == "south"
    assert stored["listed"] == [{"x": 3, "y": 0}]
    assert "derived" not in stored


def shape_bytes(value: object) -> bytes:
    return json.dumps(shape_of(type(value)).write(value))


def test_sets_have_one_order_so_that_equal_events_are_equal_bytes() -> None:
    words = [f"word {number}" for number in range(50)]
    assert shape_of(frozenset[str]).write(frozenset(words)) == sorted(words)


def test_a_dataclass_may_hold_itself() -> None:
    tree = Tree("root", (Tree("leaf"), Tree("branch", (Tree("leaf"),))))
    shape = shape_of(Tree)
    assert shape.read(json.loads(json.dumps(shape.write(tree)))) == tree


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_to_the_bit(number: float) -> None:
    shape = shape_of(float)
    assert shape.read(json.loads(json.dumps(shape.write(number)))) == number


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_come_back_to_the_digit(number: Decimal) -> None:
    shape = shape_of(Decimal)
    assert shape.read(json.loads(json.dumps(shape.write(number)))) == number


@given(st.datetimes(timezones=st.none() | st.just(UTC)))
def test_times_come_back_to_the_microsecond(moment: datetime) -> None:
    shape = shape_of(datetime)
    assert shape.read(shape.write(moment)) == moment


# ---------------------------------------------------------------------------------- tolerant readers


def read(data: bytes) -> object:
    return json_codec(Point).decode(Stored(type="Point", data=data, index=4))


def test_members_that_a_class_does_not_have_are_ignored() -> None:
    assert read(b'{"x":1,"y":2,"z":3}') == Point(1, 2)


def test_members_that_are_missing_take_the_default() -> None:
    assert read(b'{"x":1}') == Point(1, 0)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"y":1}', "x: is missing"),
        (b'{"x":"1"}', "x: must be an integer"),
        (b'{"x":true}', "x: must be an integer"),
        (b'{"x":1.0}', "x: must be an integer"),
        (b'{"x":null}', "x: must be an integer"),
        (b"[1]", "must be an object"),
        (b"", ""),
        (b"\xff", ""),
        (b'{"x":1,"x":1}', "one object has a name twice"),
        (b'{"x":NaN}', "NaN is not JSON"),
    ],
)
def test_what_does_not_fit_is_corrupt_and_says_where(data: bytes, why: str) -> None:
    with pytest.raises(CorruptData, match=rf"Point \(index 4\).*{why}"):
        read(data)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, 1),
        (bool, 1),
        (float, "1"),
        (float, Decimal("1e999")),
        (float, True),
        (Decimal, "1"),
        (datetime, "yesterday"),
        (datetime, 5),
        (date, "2013-02-30"),
        (UUID, "x"),
        (Gate, "east"),
        (Level, True),
        (Literal["a", 1], "b"),
        (Literal["a", 1], True),
        (None, 0),
        (list[int], ["1"]),
        (list[int], {}),
        (tuple[int, str], [1]),
        (tuple[int, str], [1, "a", 2]),
        (frozenset[str], "ab"),
        (dict[str, int], {"a": "b"}),
        (dict[str, int], []),
        (int | None, "1"),
        (Point, {"x": {}}),
    ],
)
def test_a_value_of_another_type_is_not_read(hint: Any, value: object) -> None:
    with pytest.raises(Mismatch):
        shape_of(hint).read(value)


def test_a_class_that_refuses_its_values_makes_them_corrupt() -> None:
    @dataclass(frozen=True)
    class Positive:
        value: int

        def __post_init__(self) -> None:
            if self.value <= 0:
                raise ValueError("not positive")

    with pytest.raises(Mismatch, match="is not a valid Positive .not positive."):
        shape_of(Positive).read({"value": -1})


# ------------------------------------------------------------------------------------ strict writers


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, 1),
        (bool, 1),
        (int, True),
        (int, 1.0),
        (float, float("nan")),
        (float, float("inf")),
        (float, 10**400),
        (Decimal, Decimal("NaN")),
        (Decimal, Decimal("Infinity")),
        (Decimal, 1.5),
        (datetime, date(2013, 1, 1)),
        (date, datetime(2013, 1, 1)),  # noqa: DTZ001
        (UUID, "00000000-0000-0000-0000-000000000001"),
        (Gate, "north"),
        (Literal["a", 1], "b"),
        (list[int], "12"),
        (frozenset[str], ["a"]),
        (tuple[int, str], (1,)),
        (tuple[int, str], [1, "a"]),
        (dict[str, int], {1: 1}),
        (Point, Tree("x")),
    ],
)
def test_a_value_of_another_type_is_not_written(hint: Any, value: object) -> None:
    with pytest.raises(Mismatch):
        shape_of(hint).write(value)


def test_an_event_that_does_not_fit_is_refused_with_its_field() -> None:
    with pytest.raises(InvalidInput) as raised:
        json_codec(Tree).encode(Tree("root", (Tree(5),)))  # type: ignore[arg-type]
    assert (raised.value.field, raised.value.rule) == (
        "events.Tree.children.0.name",
        "must be a string, got 5",
    )


def test_an_event_of_a_subclass_is_refused_since_its_own_fields_would_be_lost() -> None:
    @dataclass(frozen=True)
    class Place(Point):
        name: str = ""

    with pytest.raises(InvalidInput, match="Place is not registered"):
        json_codec(Point).encode(Place(1))
    with pytest.raises(Mismatch, match="must be a Point"):
        shape_of(list[Point]).write([Place(1)])


@pytest.mark.parametrize("raw", [float("nan"), object(), "\ud800"])
def test_raw_json_that_is_none_is_refused(raw: object) -> None:
    @dataclass(frozen=True)
    class Raw:
        value: Any

    with pytest.raises(InvalidInput, match=r"events\.Raw"):
        json_codec(Raw).encode(Raw(raw))


# -------------------------------------------------------------------------------------- the register


def test_types_that_have_no_form_in_json_are_refused_when_the_codec_is_made() -> None:
    @dataclass
    class Boxed(Generic[T]):
        content: T

    @dataclass
    class Bytes:
        body: bytes

    @dataclass
    class Either:
        value: int | str

    @dataclass
    class Keys:
        by_number: dict[int, str]

    @dataclass
    class Bare:
        values: list  # type: ignore[type-arg]

    for kind, name in (
        (Boxed, "content"),
        (Bytes, "body"),
        (Either, "value"),
        (Keys, "by_number"),
        (Bare, "values"),
    ):
        with pytest.raises(TypeError, match=rf"{kind.__name__}\.{name}: .* has no form in JSON"):
            json_codec(kind)
    with pytest.raises(TypeError, match=r"Shaded\.shade: \[0\.5\]: the choices must be strings or integers"):
        json_codec(Shaded)


def test_hints_that_cannot_be_resolved_are_refused_when_the_codec_is_made() -> None:
    class Local:
        pass

    @dataclass
    class Lost:
        value: Local

    with pytest.raises(TypeError, match="Lost: a type hint uses an undefined name: name 'Local'"):
        json_codec(Lost)


def test_names_stored_can_be_other_than_the_classes() -> None:
    codec = json_codec(named={"point-moved": Point, "PointV0": Point})
    assert codec.encode(Point(1)).type == "point-moved"
    for name in ("point-moved", "PointV0"):
        assert codec.decode(Stored(type=name, data=b'{"x":1}')) == Point(1)
    assert codec.decode(Stored(type="Point", data=b'{"x":1}')) is None


def test_a_codec_is_made_of_classes_and_an_event_in_place_of_one_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a codec takes classes, not Point\(x=1, y=0\)"):
        json_codec(Point(1))  # type: ignore[call-overload]


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="two classes are called Tree"):
        json_codec(Tree, named={"Tree": Point})
    assert json_codec(Tree, named={"Tree": Tree}).encode(Tree("x")).type == "Tree"


def test_a_type_that_is_not_registered_decodes_to_nothing() -> None:
    assert json_codec(Point).decode(Stored(type="Tree", data=b"never looked at")) is None
