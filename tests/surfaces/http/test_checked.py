"""A stage that names schemas refuses events over HTTP that do not fit, by their place, field and rule."""

from __future__ import annotations

import importlib
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal import upcast
from epochal.codec import json
from epochal.contrib.schemas.body_checks import compiled
from epochal.contrib.schemas.of_events import event_schemas
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.http.checked import Unfit
from tests.contrib.schemas.test_event_schemas import CODEC, EVENTS
from tests.support.api import Api
from tests.support.examples import examples

MODULE = "event_schemas_of_a_test"


@dataclass(frozen=True)
class Seat:
    row: int


@dataclass(frozen=True)
class Boarded:
    passenger: str
    seats: tuple[Seat, ...] = ()
    at: datetime | None = None
    day: date | None = None
    id: UUID | None = None
    price: Decimal | None = None


@dataclass(frozen=True)
class Landed:
    gate: int


CODECS: EventCodec[Any] = json_codec(
    Boarded, Landed, upcasts=[upcast("Landed", 1, to=2)(lambda event: event)]
)


@pytest.fixture(scope="module", autouse=True)
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    place = tmp_path_factory.mktemp("schemas")
    (place / f"{MODULE}.py").write_text(compiled(event_schemas(CODECS)))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(place))
        yield
    sys.modules.pop(MODULE, None)


def api(**chosen: Any) -> Api:
    return Api(pages=True, chosen={"event_schemas": MODULE, **chosen})


def sent(*events: Any) -> dict[str, Any]:
    return {"events": list(events)}


def boarded(**data: Any) -> dict[str, Any]:
    return {"type": "Boarded", "data": {"passenger": "Ada", **data}}


REFUSED = [
    ({"passenger": 7}, "events[1].data.passenger", "must be string"),
    ({"seats": [{"row": 1}, {"row": "2"}]}, "events[1].data.seats[1].row", "must be integer"),
    ({"seats": [{}]}, "events[1].data.seats[0]", "must contain ['row'] properties"),
    ({"seats": [{"row": Decimal("1.0")}]}, "events[1].data.seats[0].row", "must be integer"),
    ({"seats": [{"row": True}]}, "events[1].data.seats[0].row", "must be integer"),
    ({"at": "yesterday"}, "events[1].data.at", "cannot be validated by any definition"),
    ({"at": "2026-13-01T00:00:00Z"}, "events[1].data.at", "cannot be validated by any definition"),
    ({"day": "2026-01-02T03:04:05"}, "events[1].data.day", "cannot be validated by any definition"),
    ({"id": "no"}, "events[1].data.id", "cannot be validated by any definition"),
    ({"$v": 2}, "events[1].data.$v", "must be same as const definition: 1"),
]


@pytest.mark.parametrize(("data", "field", "rule"), REFUSED, ids=lambda each: str(each)[:30])
def test_an_event_that_does_not_fit_is_refused_by_its_place_and_rule_and_nothing_is_written(
    data: dict[str, Any], field: str, rule: str
) -> None:
    here = api()
    answer = here.call("POST", "/streams/Flight-1/events", sent(boarded(), boarded(**data)))
    assert (answer.status, answer.problem) == (400, "invalid-input")
    assert answer.json["field"] == field
    assert answer.json["rule"] == f"{rule}, as the schema of Boarded requires"
    assert here.stored == []


def test_what_fits_is_appended_as_without_schemas() -> None:
    here = api()
    data = {
        "seats": [{"row": 10**30}],
        "at": "2026-01-02T03:04:05",
        "day": "2026-01-02",
        "id": "1F0C5F8E-6c1b-4b6a-9e3f-0d6b9f3f8a11",
        "price": Decimal("1.10"),
        "more": [1],
    }
    assert here.call("POST", "/streams/Flight-1/events", sent(boarded(**data))).status == 201
    (event,) = here.streams.read("Flight-1")
    assert event.content == json.dumps({"passenger": "Ada", **data})


def test_the_version_that_is_written_today_is_asked_for() -> None:
    here = api()

    def landed(**data: Any) -> int:
        return here.call("POST", "/streams/Flight-1/events", sent({"type": "Landed", "data": data})).status

    assert [landed(gate=1), landed(gate=1, **{"$v": 1}), landed(gate=1, **{"$v": 2})] == [400, 400, 201]


def b64(text: bytes) -> str:
    return b64encode(text).decode()


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"data64": b64(b'{"passenger":7}')}, "events[0].data64.passenger"),
        ({"data64": b64(b"\xff")}, "events[0].data64"),
        ({}, "events[0].data"),
        ({"data": None}, "events[0].data"),
        ({"data": "text"}, "events[0].data"),
    ],
)
def test_a_body_of_any_form_is_held_to_its_schema(event: dict[str, Any], field: str) -> None:
    answer = api().call("POST", "/streams/Flight-1/events", sent({"type": "Boarded", **event}))
    assert (answer.status, answer.json["field"]) == (400, field)


def test_bytes_that_are_json_and_fit_are_taken() -> None:
    event = {"type": "Boarded", "data64": b64(b'{"passenger":"Ada"}')}
    assert api().call("POST", "/streams/Flight-1/events", sent(event)).status == 201


WRONG = sent(boarded(passenger=1))


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (
            "/streams",
            {"appends": [{"stream": "A-1", **sent(boarded(passenger=1))}]},
            "appends[0].events[0].data.passenger",
        ),
        (
            "/appends",
            {
                "appends": [
                    {"stream": "A-1", **sent(boarded())},
                    {"stream": "A-2", **sent(boarded(), boarded(at=1))},
                ]
            },
            "appends[1].events[1].data.at",
        ),
        ("/events", {"events": [{**boarded(passenger=1), "tags": ["a:1"]}]}, "events[0].data.passenger"),
        ("/tips/A-1/events", WRONG, "events[0].data.passenger"),
        ("/dcb/events", {"events": [{**boarded(passenger=1), "tags": ["a:1"]}]}, "events[0].data.passenger"),
        (
            "/streams/A-1/events",
            sent(
                {
                    "type": "$timer-set",
                    "data": {"name": "t", "due": "2026-01-01T00:00:00Z", **sent(boarded(passenger=1))},
                }
            ),
            "events[0].data.events[0].data.passenger",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_every_operation_that_appends_checks_all_of_its_events(path: str, body: Any, field: str) -> None:
    here = Api(chosen={"event_schemas": MODULE})
    answer = here.call("POST", path, body)
    assert (answer.status, answer.json.get("field")) == (400, field)
    assert here.stored == []


def test_a_type_without_a_schema_is_taken_or_refused_by_choice() -> None:
    event = sent({"type": "Other", "data": 1})
    assert api().call("POST", "/streams/A-1/events", event).status == 201
    answer = api(unchecked_events="refuse").call("POST", "/streams/A-1/events", event)
    assert (answer.status, answer.json["field"]) == (400, "events[0].type")


def test_a_body_in_the_bucket_cannot_be_checked_and_is_taken_or_refused_by_choice() -> None:
    claim = {"type": "Boarded", "claim": {"key": "x", "sha256": "x", "bytes": 1}}
    strict = api(unchecked_events="refuse").call("POST", "/streams/A-1/events", sent(claim))
    assert (strict.status, strict.json["field"]) == (400, "events[0].claim")
    taken = api().call("POST", "/streams/A-1/events", sent(claim))
    assert taken.json["field"] == "events[0].claim.sha256"  # by its own rule, once it is looked at


@pytest.mark.parametrize(
    "body",
    [
        {"events": 1},
        {"events": [1, {"type": 7}, {}]},
        {"events": [{"type": "Boarded", "data64": 5}]},
        {"appends": [1]},
        [],
        {"events": [{"type": "$timer-set", "data": 1}]},
    ],
)
def test_what_is_malformed_is_refused_as_without_schemas(body: Any) -> None:
    answer = api().call("POST", "/streams/A-1/events", body)
    assert (answer.status, answer.problem) == (400, "invalid-input")


def test_operations_that_take_no_events_go_on() -> None:
    here = api()
    here.call("POST", "/streams/A-1/events", sent(boarded()))
    assert here.call("POST", "/streams/A-1/prune", {"before": 1}).status == 200
    assert here.call("DELETE", "/streams/A-1").status == 200


def test_without_schemas_nothing_of_the_check_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "epochal.http.checked", raising=False)
    here = Api(pages=True)
    assert here.call("POST", "/streams/A-1/events", sent(boarded(passenger=1))).status == 201
    assert "epochal.http.checked" not in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVENTS, ids=lambda each: each.__name__)
def test_every_event_that_a_codec_writes_passes(kind: type, tmp_path: Path) -> None:
    module: dict[str, Any] = {}
    exec(compiled(event_schemas(CODEC)), module)  # noqa: S102  our own
    key = module["KEYS"][kind.__name__]

    @examples(40)
    @given(EVENTS[kind], st.data())
    def passes(event: Any, data: st.DataObject) -> None:
        body = json.loads(CODEC.encode(event).content)
        module["validate"]({key: body})
        name = data.draw(st.sampled_from(sorted(body)))
        with_ = data.draw(st.sampled_from([[{"x": None}]]))
        if not isinstance(body[name], list | dict) and name != "anything":
            with pytest.raises(Unfit):
                module["validate"]({key: {**body, name: with_}})

    passes()


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"unevaluatedProperties": False}, "A: unevaluatedProperties cannot be expressed in draft 7"),
        ({"$ref": "https://example.org/x"}, "A: refers to https://example.org/x, which is not in its"),
        ({"type": "number", "multipleOf": 0.01}, "multipleOf can be checked only for integers"),
        ({"type": "string", "pattern": "("}, "missing \\)"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused_when_the_stage_is_synthesised(
    schema: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        compiled({"A": schema})


def test_names_of_types_and_fields_are_never_code() -> None:
    odd = "a{b}\"c'\n\\.d e"
    module: dict[str, Any] = {}
    exec(compiled({odd: {"properties": {odd: {"type": "integer"}}, "required": [odd]}}), module)  # noqa: S102  our own
    key = module["KEYS"][odd]
    module["validate"]({key: {odd: 1}})
    for wrong in ({}, {odd: "1"}):
        with pytest.raises(Unfit):
            module["validate"]({key: wrong})


def test_the_module_needs_no_library_for_schemas() -> None:
    source = compiled(event_schemas(CODECS))
    assert "fastjsonschema" not in source
    assert importlib.import_module("epochal.http.checked").Unfit is Unfit


def test_the_module_has_no_schemas_in_it_which_would_be_loaded_at_each_cold_start() -> None:
    source = compiled(event_schemas(CODEC))
    assert "definition=" not in source
    assert "additionalProperties" not in source


def test_hints_are_hints_and_no_body_is_changed() -> None:
    fields = {
        "b": {"type": "string", "contentEncoding": "base64"},
        "d": {"default": 1},
        "f": {"format": "email"},
    }
    module: dict[str, Any] = {}
    exec(compiled({"A": {"properties": fields}}), module)  # noqa: S102  our own
    body = {"b": "!", "f": "no address"}
    module["validate"]({module["KEYS"]["A"]: body})
    assert body == {"b": "!", "f": "no address"}


def test_a_pattern_beside_a_format_is_held_to_as_well() -> None:
    module: dict[str, Any] = {}
    both = {"type": "string", "format": "date", "pattern": "^2026"}
    exec(compiled({"A": {"properties": {"day": both}}}), module)  # noqa: S102  our own
    module["validate"]({module["KEYS"]["A"]: {"day": "2026-01-02"}})
    for day in ("2025-01-02", "2026-13-01"):
        with pytest.raises(Unfit):
            module["validate"]({module["KEYS"]["A"]: {"day": day}})
