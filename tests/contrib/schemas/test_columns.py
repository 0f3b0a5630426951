"""Fields of events as columns of tables: each has a type, and what has no room in it is null."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from epochal import upcast
from epochal.codec import json
from epochal.contrib.schemas.columns import Column, columns
from epochal.deciders.codecs import json_codec
from tests.contrib.schemas.test_event_schemas import ByAttrs, ByMsgspec, ByPydantic, Everything


def types_of(kind: type) -> dict[str, str]:
    return {each.name: each.type for each in columns(json_codec(kind)).of_types[kind.__name__]}


def test_each_field_of_a_dataclass_has_a_type() -> None:
    assert types_of(Everything) == {
        "text": "text",
        "flag": "bool",
        "whole": "int64",
        "ratio": "float64",
        "price": "decimal",
        "at": "timestamp",
        "day": "text",
        "id": "text",
        "cabin": "text",
        "stops": "int64",
        "word": "json",
        "gate": "int64",
        "perhaps": "timestamp",
        "legs": "json",
        "pair": "json",
        "nothing": "json",
        "many": "json",
        "sequence": "json",
        "extras": "json",
        "by_name": "json",
        "mapping": "json",
        "anything": "json",
        "none": "json",
        "later": "text",
        "made": "json",
    }


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (ByAttrs, {"at": "timestamp", "seats": "json", "first": "json"}),
        (
            ByPydantic,
            {
                "at": "timestamp",
                "day": "text",
                "price": "decimal",
                "ratio": "float64",
                "meals": "json",
                "pair": "json",
                "tailNumber": "text",
                "id": "text",
            },
        ),
        (
            ByMsgspec,
            {
                "flownAt": "timestamp",
                "day": "text",
                "price": "decimal",
                "bags": "json",
                "pair": "json",
                "cabin": "text",
                "comment": "text",
            },
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_classes_of_other_libraries_have_the_columns_of_what_they_write(
    kind: type, found: dict[str, str]
) -> None:
    assert types_of(kind) == found


class Timed(msgspec.Struct):
    perhaps: datetime | None
    aware: Annotated[datetime, msgspec.Meta(tz=True)]
    not_one: datetime | int


class Priced(pydantic.BaseModel):
    price: Decimal | None = None


def test_a_value_that_may_be_null_has_the_type_of_the_others() -> None:
    assert types_of(Timed) == {"perhaps": "timestamp", "aware": "timestamp", "not_one": "json"}
    assert types_of(Priced) == {"price": "decimal"}


@pytest.mark.parametrize(
    ("kind", "body", "held"),
    [
        ("text", '"a"', "a"),
        ("text", "1", None),
        ("int64", "-9223372036854775808", -(2**63)),
        ("int64", "9223372036854775808", None),
        ("int64", "true", None),
        ("int64", "1.0", None),
        ("float64", "1.5", 1.5),
        ("float64", "2", 2.0),
        ("float64", "1" + "0" * 400, None),
        ("float64", '"2"', None),
        ("decimal", "1.10", "1.10"),
        ("decimal", '"1.10"', "1.10"),
        ("decimal", "12345678901234567890.5", "12345678901234567890.5"),
        ("decimal", "false", None),
        ("bool", "false", False),
        ("bool", "0", None),
        ("timestamp", '"2026-01-02T03:04:05.6Z"', datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC)),
        ("timestamp", '"2026-01-02T03:04:05+02:00"', datetime(2026, 1, 2, 1, 4, 5, 0, UTC)),
        ("timestamp", '"2026-01-02T03:04:05"', datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),
        ("timestamp", '"0001-01-01T00:00:00+02:00"', None),
        ("timestamp", '"yesterday"', None),
        ("timestamp", "5", None),
        ("json", '{"a":[1.10]}', '{"a":[1.10]}'),
        ("json", "null", None),
        ("text", "null", None),
    ],
)
def test_a_column_holds_a_value_to_the_digit_and_nothing_of_another_type(
    kind: Any, body: str, held: Any
) -> None:
    found = Column("field", kind).value(json.loads(body))
    assert (found, found.__class__) == (held, held.__class__)


def test_a_decimal_is_never_read_as_a_binary_float() -> None:
    typed = columns(json_codec(Priced))
    (price,) = typed.all
    stored = json_codec(Priced).encode(Priced(price=Decimal("1.10")))
    assert price.value(typed.values("Priced", stored.content)["price"]) == "1.10"


@dataclass(frozen=True)
class Boarded:
    passenger: str
    gate: int


@dataclass(frozen=True)
class Delayed:
    gate: str
    passenger: str


@upcast("Boarded", 1, to=2)
def with_gate(event: dict[str, Any]) -> dict[str, Any]:
    return {"passenger": event["name"], "gate": 0}


def test_an_older_version_has_the_fields_of_today() -> None:
    typed = columns(json_codec(Boarded, upcasts=[with_gate]))
    assert typed.values("Boarded", b'{"name":"Ada"}') == {"passenger": "Ada", "gate": 0}
    assert typed.values("Boarded", b'{"$v":2,"passenger":"Ada","gate":7}') == {"passenger": "Ada", "gate": 7}


@pytest.mark.parametrize(
    ("name", "data"),
    [("Other", b"{}"), ("Boarded", b"{"), ("Boarded", b"[]"), ("Boarded", b'{"$v":9}'), ("Boarded", b"{}")],
)
def test_what_the_codec_could_not_read_has_no_fields_and_ends_no_export(name: str, data: bytes) -> None:
    assert columns(json_codec(Boarded, upcasts=[with_gate])).values(name, data) == {}


def test_one_table_of_all_types_has_each_field_once_and_as_json_where_types_differ() -> None:
    typed = columns(json_codec(Boarded, Delayed))
    assert typed.all == (Column("passenger", "text"), Column("gate", "json"))
    gate = typed.all[1]
    assert [gate.value(value) for value in (7, "A")] == ["7", '"A"']


def test_an_offset_of_any_zone_is_the_moment_in_utc() -> None:
    at = datetime(2026, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-5)))
    found = Column("at", "timestamp").value(at.isoformat())
    assert (found, found.tzinfo) == (at, UTC)
