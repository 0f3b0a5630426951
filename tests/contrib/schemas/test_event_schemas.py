"""A schema of an event's type takes what the codec writes, and refuses what the codec could not read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, NewType
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from epochal import upcast
from epochal.contrib.schemas.of_events import bundle, event_schemas
from epochal.deciders.codecs import EventCodec, Stored, json_codec
from epochal.errors import CorruptData, InvalidInput
from epochal.model.events import Event
from tests.support.examples import examples

Gate = NewType("Gate", int)


class Cabin(Enum):
    FIRST = "F"
    ECONOMY = "Y"


class Stops(IntEnum):
    NONE = 0
    ONE = 1


@dataclass(frozen=True)
class Leg:
    """One flight, and the one that it connects to."""

    origin: str
    then: Leg | None = None


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
    cabin: Cabin
    stops: Stops
    word: Literal["a", "b", 3]
    gate: Gate
    perhaps: datetime | None
    legs: list[Leg]
    pair: tuple[str, Decimal]
    nothing: tuple[()]
    many: tuple[int, ...]
    sequence: Sequence[float]
    extras: frozenset[str]
    by_name: dict[str, Leg]
    mapping: Mapping[str, int]
    anything: Any
    none: None
    later: str = "none"
    made: list[str] = field(default_factory=list)


@attrs.frozen
class Seat:
    row: int
    _letter: str = "A"


@attrs.frozen
class ByAttrs:
    at: datetime
    seats: tuple[Seat, ...] = ()
    first: Leg | None = None


class Meal(pydantic.BaseModel):
    name: str
    price: Decimal
    next: Meal | None = None


class ByPydantic(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    at: datetime
    day: date
    price: Decimal
    ratio: float = pydantic.Field(ge=0, le=1)
    meals: list[Meal]
    pair: tuple[str, int]
    tail: str = pydantic.Field(alias="tailNumber", default="")
    id: UUID | None = None


class Bag(msgspec.Struct, frozen=True):
    kilos: float
    inside: list[Bag] = []


class ByMsgspec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    flown_at: datetime
    day: date
    price: Decimal
    bags: list[Bag]
    pair: tuple[str, int]
    cabin: Cabin
    comment: str = ""


zones = st.just(UTC) | st.integers(-720, 720).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(timezones=zones)
words = st.text(max_size=5)
wholes = st.integers()
floats = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.decimals(allow_nan=False, allow_infinity=False)
prices = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=0, max_value=10**9)
plain = st.recursive(
    st.none() | st.booleans() | wholes | prices | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
legs = st.recursive(
    st.builds(Leg, origin=words), lambda then: st.builds(Leg, origin=words, then=then), max_leaves=3
)
meals = st.recursive(
    st.builds(Meal, name=words, price=prices),
    lambda then: st.builds(Meal, name=words, price=prices, next=then),
    max_leaves=3,
)
bags = st.recursive(
    st.builds(Bag, kilos=floats),
    lambda inside: st.builds(Bag, kilos=floats, inside=st.lists(inside, max_size=2)),
)

EVENTS: dict[type, st.SearchStrategy[Any]] = {
    Everything: st.builds(
        Everything,
        text=words,
        flag=st.booleans(),
        whole=wholes,
        ratio=floats,
        price=decimals,
        at=times,
        day=st.dates(),
        id=st.uuids(),
        cabin=st.sampled_from(Cabin),
        stops=st.sampled_from(Stops),
        word=st.sampled_from(["a", "b", 3]),
        gate=wholes,
        perhaps=st.none() | times,
        legs=st.lists(legs, max_size=2),
        pair=st.tuples(words, decimals),
        nothing=st.just(()),
        many=st.lists(wholes, max_size=2).map(tuple),
        sequence=st.lists(floats, max_size=2),
        extras=st.frozensets(words, max_size=2),
        by_name=st.dictionaries(words, legs, max_size=2),
        mapping=st.dictionaries(words, wholes, max_size=2),
        anything=plain,
        none=st.none(),
        later=words,
        made=st.lists(words, max_size=2),
    ),
    ByAttrs: st.builds(
        ByAttrs,
        at=times,
        seats=st.lists(st.builds(Seat, row=wholes, letter=words), max_size=2).map(tuple),
        first=st.none() | legs,
    ),
    ByPydantic: st.builds(
        ByPydantic,
        at=times,
        day=st.dates(),
        price=prices,
        ratio=st.floats(0, 1),
        meals=st.lists(meals, max_size=2),
        pair=st.tuples(words, wholes),
        tailNumber=words,
        id=st.none() | st.uuids(),
    ),
    ByMsgspec: st.builds(
        ByMsgspec,
        flown_at=times,
        day=st.dates(),
        price=prices,
        bags=st.lists(bags, max_size=2),
        pair=st.tuples(words, st.integers(-(2**63), 2**63 - 1)),
        cabin=st.sampled_from(Cabin),
        comment=words,
    ),
}
CODEC: EventCodec[Any] = json_codec(*EVENTS)
SCHEMAS = event_schemas(CODEC)
VALIDATORS = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}


def read(codec: EventCodec[Any], name: str, body: Any) -> Any:
    return codec.decode(Stored(type=name, data=json.dumps(body).encode()))


@pytest.mark.parametrize("kind", EVENTS, ids=lambda each: each.__name__)
def test_a_schema_is_one_by_its_own_dialect(kind: type) -> None:
    Draft202012Validator.check_schema(SCHEMAS[kind.__name__])


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVENTS, ids=lambda each: each.__name__)
def test_every_event_that_the_codec_writes_fits(kind: type) -> None:
    @examples(60)
    @given(EVENTS[kind])
    def fits(event: Any) -> None:
        stored = CODEC.encode(event)
        VALIDATORS[stored.type].validate(json.loads(stored.content))

    fits()


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVENTS, ids=lambda each: each.__name__)
def test_what_fits_after_a_field_was_changed_is_read_and_what_does_not_fit_is_not(kind: type) -> None:
    """A field gets another JSON value, or goes: the schema and the reader judge alike, but where readers bend."""

    @examples(150)
    @given(EVENTS[kind], st.data())
    def agree(event: Any, data: st.DataObject) -> None:
        body = json.loads(CODEC.encode(event).content)
        name = data.draw(st.sampled_from(sorted(body)))
        if data.draw(st.booleans()):
            del body[name]
        else:
            body[name] = data.draw(st.sampled_from([None, True, [], {}, ["x"], {"x": "y"}]))
        fits = VALIDATORS[kind.__name__].is_valid(body)
        try:
            read(CODEC, kind.__name__, body)
        except CorruptData:
            assert not fits
        else:
            # Pydantic takes true for 1 where nobody has asked it to be strict.
            assert fits or (kind is ByPydantic and body[name] is True)

    agree()


def test_a_member_that_readers_ignore_fits() -> None:
    body = {"origin": "EWR", "gate": 7}
    assert read(json_codec(Leg), "Leg", body) == Leg("EWR")
    assert Draft202012Validator(event_schemas(json_codec(Leg))["Leg"]).is_valid(body)


@dataclass(frozen=True)
class Boarded:
    passenger: str
    gate: int


@upcast("Boarded", 1, to=2)
def with_passenger(event: dict[str, Any]) -> dict[str, Any]:
    return {"passenger": event["name"]}


@upcast("Boarded", 2, to=3)
def with_gate(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "gate": 0}


def test_a_type_with_upcasts_takes_the_version_of_today_and_lists_the_older_ones() -> None:
    codec = json_codec(Boarded, upcasts=[with_passenger, with_gate])
    schema = event_schemas(codec)["Boarded"]
    takes = Draft202012Validator(schema).is_valid
    assert takes(json.loads(codec.encode(Boarded("Ada", 7)).content))
    assert schema["x-upcast-from"] == [1, 2]
    body = {"passenger": "Ada", "gate": 7}
    assert not takes(body)
    assert not takes({"$v": 2, **body})
    assert not takes({"$v": 4, **body})


def test_a_version_that_no_reader_knows_does_not_fit_a_type_without_upcasts() -> None:
    takes = Draft202012Validator(event_schemas(json_codec(Boarded))["Boarded"]).is_valid
    body = {"passenger": "Ada", "gate": 7}
    assert takes(body)
    assert takes({"$v": 1, **body})
    assert not takes({"$v": 2, **body})
    with pytest.raises(CorruptData):
        read(json_codec(Boarded), "Boarded", {"$v": 2, **body})


def test_the_mark_of_a_version_fits_where_a_class_forbids_other_members() -> None:
    codec = json_codec(ByMsgspec, upcasts=[upcast("ByMsgspec", 1, to=2)(lambda event: event)])
    event = ByMsgspec(
        datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 1), Decimal("1.10"), [], ("a", 1), Cabin.FIRST
    )
    written = json.loads(codec.encode(event).content)
    assert written["$v"] == 2
    assert Draft202012Validator(event_schemas(codec)["ByMsgspec"]).is_valid(written)


def test_a_class_that_holds_itself_is_at_the_root_and_among_the_definitions() -> None:
    codec = json_codec(Leg, Meal)
    for name, member in (("Leg", "then"), ("Meal", "next")):
        schema = event_schemas(codec)[name]
        assert schema["type"] == "object"
        takes = Draft202012Validator(schema).is_valid
        within = json.loads(codec.encode(Leg("EWR", Leg("ORD")) if name == "Leg" else _dinner()).content)
        assert takes(within)
        assert not takes({**within, member: {"$v": 1}})


def _dinner() -> Meal:
    return Meal(name="soup", price=Decimal(1), next=Meal(name="rice", price=Decimal(2)))


def test_two_classes_of_one_name_are_told_apart() -> None:
    def other() -> type:
        @dataclass
        class Seat:
            number: int

        return Seat

    there = other()
    holder = attrs.make_class("Holder", {"a": attrs.field(type=Seat), "b": attrs.field(type=there)})
    schema = event_schemas(json_codec(holder))["Holder"]
    assert [schema["properties"][name]["$ref"] for name in "ab"] == ["#/$defs/Seat", "#/$defs/Seat2"]
    assert list(schema["$defs"]["Seat2"]["properties"]) == ["number"]


def test_what_a_class_says_of_itself_is_its_description_and_a_signature_is_not() -> None:
    schemas = event_schemas(json_codec(Leg, Boarded))
    assert schemas["Leg"]["description"] == "One flight, and the one that it connects to."
    assert "description" not in schemas["Boarded"]


def test_each_name_of_a_class_has_its_schema_and_an_address() -> None:
    codec = json_codec(named={"Boarded": Boarded, "passenger/boarded": Boarded})
    schemas = event_schemas(codec)
    assert [each["$id"] for each in schemas.values()] == [
        "urn:epochal:event:Boarded",
        "urn:epochal:event:passenger%2Fboarded",
    ]


def test_a_bundle_refers_into_each_schema_by_its_address() -> None:
    validator = Draft202012Validator({**bundle(SCHEMAS), "$ref": "#/$defs/ByAttrs"})
    Draft202012Validator.check_schema(bundle(SCHEMAS))
    assert validator.is_valid({"at": "2026-01-01T00:00:00Z", "seats": [{"row": 1}]})
    assert not validator.is_valid({"at": "2026-01-01T00:00:00Z", "seats": [{"row": "1"}]})


def test_a_codec_of_ones_own_says_nothing_of_its_classes() -> None:
    own = EventCodec[bytes](
        encode=lambda event: Event(type="E", data=event), decode=lambda stored: stored.data
    )
    with pytest.raises(InvalidInput, match="codec: must be made by json_codec"):
        event_schemas(own)
