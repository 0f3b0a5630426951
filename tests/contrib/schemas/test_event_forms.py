"""Events made with attrs, Pydantic and msgspec are stored and read as their library says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest
from pydantic.alias_generators import to_camel

from epochal.contrib.schemas.class_schemas import schema_of
from epochal.deciders.codecs import Stored, json_codec
from epochal.deciders.value_forms import form_of
from epochal.errors import CorruptData, InvalidInput

AT = datetime(2013, 1, 1, 5, 17, tzinfo=UTC)


class Gate(pydantic.BaseModel):
    number: int


class ByPydantic(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    at: datetime
    day: date
    price: Decimal
    ratio: float
    gate: Gate
    tail: str = pydantic.Field(alias="tailNumber")


@pydantic.dataclasses.dataclass(frozen=True)
class ByPydanticDataclass:
    at: datetime
    price: Decimal


class ByMsgspec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    at: datetime
    day: date
    price: Decimal
    ratio: float
    legs: list[int] = []


@attrs.frozen
class Leg:
    origin: str


@attrs.frozen
class ByAttrs:
    at: datetime
    price: Decimal
    legs: tuple[Leg, ...] = ()
    _seat: str = "12A"


@dataclass(frozen=True)
class ByDataclass:
    leg: Leg


EVENTS = [
    ByPydantic(
        at=AT, day=AT.date(), price=Decimal("1.10"), ratio=0.1, gate=Gate(number=3), tailNumber="N14228"
    ),
    ByPydanticDataclass(at=AT, price=Decimal("1.10")),
    ByMsgspec(at=AT, day=AT.date(), price=Decimal("1.10"), ratio=0.1, legs=[1]),
    ByAttrs(at=AT, price=Decimal("1.10"), legs=(Leg("EWR"),), seat="1C"),
    ByDataclass(Leg("EWR")),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda each: type(each).__name__)
def test_an_event_comes_back_as_it_was_whatever_library_made_its_class(event: Any) -> None:
    codec = json_codec(type(event))
    stored = codec.encode(event)
    assert stored.type == type(event).__name__
    assert codec.decode(Stored(type=stored.type, data=stored.content)) == event


def test_the_names_in_the_json_are_the_models_own() -> None:
    assert b'"tailNumber":"N14228"' in json_codec(ByPydantic).encode(EVENTS[0]).content  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        (Gate, b'{"number":"x"}', "number: Input should be a valid integer"),
        (ByMsgspec, b'{"at":1}', "at"),
        (ByMsgspec, b"{", "truncated"),
        (ByAttrs, b'{"price":1}', "at: is missing"),
    ],
)
def test_a_body_that_is_not_what_its_class_says_is_corrupt_and_the_field_is_named(
    kind: type, data: bytes, told: str
) -> None:
    codec = json_codec(kind)
    with pytest.raises(CorruptData, match=rf"{kind.__name__} \(index 7\).*{told}"):
        codec.decode(Stored(type=kind.__name__, data=data, index=7))


@pytest.mark.parametrize("position", [0, 2])
def test_what_could_not_be_read_back_is_not_written(position: int) -> None:
    whole: Any = EVENTS[position]
    broken = (
        whole.model_copy(update={"ratio": float("nan")})
        if position == 0
        else msgspec.structs.replace(whole, ratio=float("nan"))
    )
    with pytest.raises(InvalidInput, match=f"events.{type(whole).__name__}"):
        json_codec(type(whole)).encode(broken)


def test_a_struct_that_is_an_array_in_json_is_refused_when_the_codec_is_made() -> None:
    class Listed(msgspec.Struct, array_like=True):
        number: int

    with pytest.raises(TypeError, match="Listed is written as an array"):
        json_codec(Listed)


def _field(_name: str = "f", _config: Any = None, _default: Any = ..., **settings: Any) -> type:
    """A model with one field, inside of another."""
    inner = pydantic.create_model(
        "Inner", __config__=_config, **{_name: (int, pydantic.Field(_default, **settings))}
    )
    return pydantic.create_model("Outer", inner=(list[inner], ...))  # type: ignore[valid-type]


BY_NAME = pydantic.ConfigDict(populate_by_name=True)
CHOICES = pydantic.AliasChoices("new", pydantic.AliasPath("old", 0))


@pytest.mark.parametrize("default", [..., 3])
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"serialization_alias": "F"}, "Inner.f is written as F, but read as f: use one alias"),
        ({"validation_alias": "F"}, "Inner.f is written as f, but read as F"),
        ({"validation_alias": CHOICES}, "Inner.f is written as f, but read as new"),
        (
            {"validation_alias": pydantic.AliasPath("old", "f")},
            "Inner.f is written as f, but read as something deeper",
        ),
        (
            {"alias": "F", "serialization_alias": "G", "_config": BY_NAME},
            "Inner.f is written as G, but read as F or f",
        ),
        (
            {"alias": "F", "_config": pydantic.ConfigDict(validate_by_alias=False, validate_by_name=True)},
            "Inner.f is written as F, but read as f",
        ),
    ],
)
def test_a_field_that_is_not_read_as_it_is_written_is_refused_and_not_lost(
    settings: dict[str, Any], why: str, default: Any
) -> None:
    with pytest.raises(TypeError, match=why):
        form_of(_field(_default=default, **settings))


@pytest.mark.parametrize(
    ("settings", "member"),
    [
        ({}, "f"),
        ({"alias": "F"}, "F"),
        ({"alias": "F", "_config": BY_NAME}, "F"),
        ({"validation_alias": "F", "_config": BY_NAME}, "f"),
        ({"validation_alias": CHOICES, "serialization_alias": "new"}, "new"),
        ({"validation_alias": pydantic.AliasChoices("old", "new"), "serialization_alias": "new"}, "new"),
        ({"_name": "some_field", "_config": pydantic.ConfigDict(alias_generator=to_camel)}, "someField"),
    ],
)
def test_a_field_with_an_alias_is_read_as_it_was_written_and_its_schema_says_how(
    settings: dict[str, Any], member: str
) -> None:
    kind = _field(**settings)
    form = form_of(kind)
    value = form.read({"inner": [{member: 7}]})
    assert form.write(value) == {"inner": [{member: 7}]}
    assert schema_of(kind)["$defs"]["Inner"]["required"] == [member]


def test_a_field_that_is_excluded_has_a_default() -> None:
    with pytest.raises(TypeError, match="Inner.f is excluded"):
        form_of(_field(exclude=True))
    form = form_of(_field(exclude=True, _default=3))
    assert form.write(form.read({"inner": [{"f": 4}]})) == {"inner": [{}]}
