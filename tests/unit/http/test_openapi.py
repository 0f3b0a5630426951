"""The committed OpenAPI document is one, is current, and covers every route and problem."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from epochal.contrib.event_store_adapter.http.operations import NOT_FOUND
from epochal.contrib.sekiban.http.operations import BEHIND
from epochal.contrib.sekiban.http.operations import NOT_FOUND as STATE_NOT_FOUND
from epochal.http.openapi import document, text
from epochal.http.operation import Operation, operations
from epochal.http.problems import KINDS
from epochal.http.several import MAX_APPENDS
from epochal.settings import RESPONSE_BYTES
from tests.support.api import Api, gateway_event

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


def test_the_committed_document_is_what_the_code_says() -> None:
    assert COMMITTED.read_text() == text(), (
        "run: python -m epochal.http.openapi > docs/reference/openapi.json"
    )


@pytest.mark.slow
def test_the_document_is_valid_openapi() -> None:
    validate(json.loads(COMMITTED.read_text()))


def test_every_route_is_an_operation_and_nothing_else_is() -> None:
    documented = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }
    assert documented == {(route.method, route.path, route.name) for route in operations()}
    functions = {getattr(import_module(route.module), route.perform) for route in operations()}
    assert len({function.__doc__ for function in functions}) == len(functions)


def test_an_operation_on_another_layouts_store_says_what_is_true_of_it_there() -> None:
    ours, others = (document()["paths"][path]["get"] for path in ("/events/count", "/dcb/count"))
    assert "tagged_everything" in ours["description"]
    assert "lags by moments" in others["description"]
    assert {**others, "description": "", "operationId": ""} == {**ours, "description": "", "operationId": ""}


def test_sizes_in_descriptions_are_those_that_the_code_has() -> None:
    said = [each["description"] for methods in document()["paths"].values() for each in methods.values()]
    pages = [each for each in said if "A page ends" in each or "the answer says" in each]
    assert len(pages) > 6
    assert all(f"{RESPONSE_BYTES // 1024**2} MB" in each for each in pages)
    (several,) = (each for each in said if "With an `Idempotency-Key` at most" in each)
    assert f"at most {MAX_APPENDS - 1}." in several


def test_every_problem_is_documented_somewhere() -> None:
    documented = set(_types(document()["components"]["responses"]))
    assert documented == {kind.type for kind in (*KINDS, NOT_FOUND, STATE_NOT_FOUND, BEHIND)}


@pytest.mark.slow
@pytest.mark.parametrize("route", operations(), ids=lambda route: route.name)
def test_every_operation_says_how_it_fails_and_who_may_call_it(route: Operation) -> None:
    operation = document()["paths"][route.path][route.method.lower()]
    assert {"400", "404", "405", "500", "503"} <= set(operation["responses"])
    assert operation["security"] == [{"sigv4": []}, {"jwt": [route.scope]}]


@pytest.mark.slow
@pytest.mark.parametrize("route", operations(), ids=lambda route: route.name)
def test_every_parameter_of_a_path_is_declared(route: Operation) -> None:
    operation = document()["paths"][route.path][route.method.lower()]
    declared = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
    assert declared == {part[1:-1] for part in route.path.split("/") if part.startswith("{")}


def test_no_schema_is_left_unused() -> None:
    whole = text()
    unused = [
        name for name in document()["components"]["schemas"] if f'"#/components/schemas/{name}"' not in whole
    ]
    assert unused == []


TAGGED, IDENTIFIED = (
    {"type": "T", "tags": ["a:1"]},
    {"type": "T", "id": "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"},
)
CONDITION = {"failIf": {"items": [{"tags": ["a:1"]}]}}
PAGES, TIPS, GROUP = "/streams/{stream}/events", "/tips/{stream}/events", "/groups/{group}"


@pytest.mark.parametrize(
    ("path", "body", "taken"),
    [
        (PAGES, {"events": [TAGGED], **CONDITION}, True),
        (PAGES, {"events": [IDENTIFIED]}, True),
        (PAGES, {"events": [{**TAGGED, **IDENTIFIED}]}, False),
        (PAGES, {"events": [{**IDENTIFIED, "tags": []}]}, True),
        ("/events", {"events": [{**TAGGED, **IDENTIFIED}]}, True),
        (TIPS, {"events": [{"type": "T"}]}, True),
        (TIPS, {"events": [{"type": "T"}], **CONDITION}, False),
        (TIPS, {"events": [TAGGED]}, False),
        (TIPS, {"events": [IDENTIFIED]}, False),
        (GROUP, {"act": "pause"}, True),
        (GROUP, {"act": "begin"}, False),
        (GROUP, {"act": "begin", "like": "a b"}, False),
        (GROUP, {"act": "begin", "like": "other"}, True),
        (GROUP, {"act": "reset"}, False),
        (GROUP, {"act": "reset", "to": "someday"}, False),
        (GROUP, {"act": "reset", "to": "tail"}, True),
        (GROUP, {"act": "reset", "to": "2013-01-01T00:00Z"}, True),
        (GROUP, {"act": "reset", "to": "0@17"}, False),
        (GROUP, {"act": "reset", "to": "17"}, False),
        (GROUP, {"act": "reset", "to": "0@17", "partition": 0}, True),
        ("/feed/ordered", {"within": 1, "from": "0@17"}, False),
        ("/feed/ordered", {"within": 1, "from": "2013-01-01T00:00Z"}, True),
        ("/feed/ordered", {"within": 1, "from": '{"0":["0@17"]}'}, True),
    ],
)
def test_what_depends_on_the_store_or_on_other_fields_is_said_by_the_schema_and_held_by_the_api(
    path: str, body: dict[str, Any], *, taken: bool
) -> None:
    made = document()
    schema = made["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert Draft202012Validator({**schema, "components": made["components"]}).is_valid(body) == taken
    # A group that is not there is not found, which is no fault of the body; nothing is in the feed to go on from.
    sent = gateway_event("POST", path.format(stream="A-1", group="a"), json.dumps(body).encode())
    assert (Api().invoke(sent).status == 400) != taken


@pytest.mark.parametrize(
    ("path", "name", "taken", "refused"),
    [
        ("/feed/newest", "before", ["", "0:0@0,30000:1@2", "0:17"], ["0@0", "0:0@0,", "x"]),
        ("/feed/{partition}", "from", ["tail", "0@0", "0", "2013-01-01T00:00Z"], ["", "0:0@0", "x"]),
        ("/feed/position", "source", ["pages", "tips", "journal", "dcb"], ["", "x"]),
    ],
)
def test_what_a_parameter_may_be_is_said_by_its_schema(
    path: str, name: str, taken: list[str], refused: list[str]
) -> None:
    schema = next(
        each["schema"] for each in document()["paths"][path]["get"]["parameters"] if each["name"] == name
    )
    assert [value for value in taken + refused if Draft202012Validator(schema).is_valid(value)] == taken
    asked = {
        value: f"{name}={quote(value)}" + ("&stream=A-1&version=1" if name == "source" else "")
        for value in taken + refused
    }
    api = Api()
    sent = {
        value: gateway_event("GET", path.format(partition=0), query=query) for value, query in asked.items()
    }
    assert [value for value, event in sent.items() if api.invoke(event).json.get("field") != name] == taken


def _types(value: Any) -> list[str]:
    if isinstance(value, dict):
        found = value.get("properties", {}).get("type", {}).get("enum", [])
        return [*found, *(each for child in value.values() for each in _types(child))]
    if isinstance(value, list):
        return [each for child in value for each in _types(child)]
    return []
