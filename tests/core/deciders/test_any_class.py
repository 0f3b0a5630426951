"""Of whatever fields a class is made, and whatever is in them: an event comes back as it was, or is not stored."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.deciders.codecs import EventCodec, json_codec
from epochal.errors import InvalidInput


class Gate(enum.StrEnum):
    NORTH = "north"
    SOUTH = "south"


class Level(enum.IntEnum):
    LOW = 1


class Perks(enum.IntFlag):
    LOUNGE = 1
    WIFI = 2


class Text(str):
    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Point:
    x: int


@dataclasses.dataclass(frozen=True)
class Place(Point):
    name: str = ""


class Moment(datetime):
    pass


KINDS: dict[str, Callable[[Any], Any]] = {
    "dataclass": lambda hint: dataclasses.make_dataclass("Made", [("value", hint)], frozen=True),
    "attrs": lambda hint: attrs.make_class("Made", {"value": attrs.field(type=hint)}, frozen=True),
    "pydantic": lambda hint: pydantic.create_model("Made", value=(hint, ...)),
    "msgspec": lambda hint: msgspec.defstruct("Made", [("value", hint)]),
}

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=OFFSETS | st.just(UTC))
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Decimal: st.decimals(-(10**9), 10**9, places=3),
    datetime: MOMENTS,
    date: st.dates(),
    UUID: st.uuids(),
    Gate: st.sampled_from(Gate),
    Level: st.sampled_from(Level),
    Perks: st.sampled_from([Perks(0), Perks.LOUNGE, Perks.LOUNGE | Perks.WIFI]),
    Literal["a", 1]: st.sampled_from(["a", 1]),
    Point: st.builds(Point, st.integers(-9, 9)),
}
GENERIC: dict[type, Any] = {kind: kind for kind in (list, tuple, set, frozenset, dict)}
WRAPPED: list[tuple[Callable[[Any], Any], Callable[[Any], st.SearchStrategy[Any]]]] = [
    (lambda hint: hint, lambda leaf: leaf),
    (lambda hint: hint | None, lambda leaf: st.none() | leaf),
    (lambda hint: GENERIC[list][hint], lambda leaf: st.lists(leaf, max_size=3)),
    (lambda hint: GENERIC[tuple][hint, ...], lambda leaf: st.lists(leaf, max_size=3).map(tuple)),
    (lambda hint: GENERIC[tuple][hint, str], lambda leaf: st.tuples(leaf, TEXTS)),
    (lambda hint: GENERIC[set][hint], lambda leaf: st.sets(leaf, max_size=3)),
    (lambda hint: GENERIC[frozenset][hint], lambda leaf: st.frozensets(leaf, max_size=3)),
    (lambda hint: GENERIC[dict][str, hint], lambda leaf: st.dictionaries(TEXTS, leaf, max_size=3)),
]
WRONG: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, "5", 5, True, 5.0, 2**53 + 1, 10**30, -0.0, float("nan"), float("inf")),
        *(Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1E+3"), Decimal("-0")),
        *("\ud800", "2026-01-01", b"bytes", Text("a"), Gate.NORTH, Level.LOW, Perks(8), Place(1, "here")),
        *(datetime(2026, 1, 1), date(2026, 1, 1), Moment(2026, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
        *(object(), [], (), {}, [None], {1: 2}, {"a": (1,)}, {"$v": 2}, UUID(int=1)),
    ]
)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _event(kind: str, made: Any, value: Any) -> Any:
    """An event with any value at all, as no constructor of Pydantic's would make it."""
    return made.model_construct(value=value) if kind == "pydantic" else made(value)


def _shown(value: Any, leaf: Any) -> Any:
    """Types and values at every depth; an int shows as what the leaf's type makes of it."""
    match value:
        case datetime():
            return "datetime", value.isoformat()
        case date():
            return "date", value.isoformat()
        case list() | tuple():
            return type(value), [_shown(member, leaf) for member in value]
        case set() | frozenset():
            return type(value), sorted(repr(_shown(member, leaf)) for member in value)
        case dict():
            return type(value), {key: _shown(member, leaf) for key, member in value.items()}
        case int() if type(value) is int and leaf in (float, Decimal):
            return leaf, repr(leaf(value))
        case _:
            return type(value), repr(value)


def _read_back(made: Any, event: Any) -> Any:
    codec: EventCodec[Any] = json_codec(made)
    read: Any = codec.read(codec.encode(event))
    assert type(read) is made
    return read.value


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.sampled_from([*LEAVES]), st.sampled_from(WRAPPED))
def test_an_event_of_the_declared_types_comes_back_as_it_was(
    kind: str, data: st.DataObject, leaf: Any, wrapped: Any
) -> None:
    hint, values = wrapped[0](leaf), wrapped[1](LEAVES[leaf])
    value = data.draw(values)
    made = KINDS[kind](hint)
    assert _shown(_read_back(made, _event(kind, made, value)), leaf) == _shown(value, leaf)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.sampled_from([*LEAVES]), st.sampled_from(WRAPPED))
def test_an_event_of_other_types_comes_back_as_it_was_or_is_refused_with_its_field(
    kind: str, data: st.DataObject, leaf: Any, wrapped: Any
) -> None:
    value = data.draw(WRONG | wrapped[1](WRONG.filter(_is_hashable)))
    made = KINDS[kind](wrapped[0](leaf))
    event = _event(kind, made, value)
    try:
        back = _read_back(made, event)
    except InvalidInput as error:
        field = error.field
    else:
        field = "events.Made"
        assert _shown(back, leaf) == _shown(value, leaf)
    assert field.startswith("events.Made")
