"""The committed OpenAPI document is one, is current, and covers every route and problem."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from epochal.contrib.event_store_adapter.http.operations import NOT_FOUND
from epochal.contrib.sekiban.http.operations import BEHIND
from epochal.contrib.sekiban.http.operations import NOT_FOUND as STATE_NOT_FOUND
from epochal.http.openapi import described_by, document, text
from epochal.http.operation import Operation
from epochal.http.operations import OPERATIONS
from epochal.http.problems import KINDS

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


def test_the_committed_document_is_what_the_code_says() -> None:
    assert COMMITTED.read_text() == text(), (
        "run: python -m epochal.http.openapi > docs/reference/openapi.json"
    )


def test_the_document_is_valid_openapi() -> None:
    validate(json.loads(COMMITTED.read_text()))


def test_every_route_is_an_operation_and_nothing_else_is() -> None:
    documented = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }
    assert documented == {(route.method, route.path, route.name) for route in OPERATIONS}
    functions = {getattr(import_module(route.module), route.perform) for route in OPERATIONS}
    assert len({id(described_by(route)) for route in OPERATIONS}) == len(functions)


def test_an_operation_on_another_layouts_store_says_what_is_true_of_it_there() -> None:
    ours, others = (document()["paths"][path]["get"] for path in ("/events/count", "/dcb/count"))
    assert "tagged_everything" in ours["description"]
    assert "lags by moments" in others["description"]
    assert {**others, "description": "", "operationId": ""} == {**ours, "description": "", "operationId": ""}


def test_every_problem_is_documented_somewhere() -> None:
    documented = set(_types(document()["components"]["responses"]))
    assert documented == {kind.type for kind in (*KINDS, NOT_FOUND, STATE_NOT_FOUND, BEHIND)}


@pytest.mark.parametrize("route", OPERATIONS, ids=lambda route: route.name)
def test_every_operation_says_how_it_fails_and_who_may_call_it(route: Operation) -> None:
    operation = document()["paths"][route.path][route.method.lower()]
    assert {"400", "404", "405", "500", "503"} <= set(operation["responses"])
    assert operation["security"] == [{"sigv4": []}, {"jwt": [route.scope]}]


@pytest.mark.parametrize("route", OPERATIONS, ids=lambda route: route.name)
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


def _types(value: Any) -> list[str]:
    if isinstance(value, dict):
        found = value.get("properties", {}).get("type", {}).get("enum", [])
        return [*found, *(each for child in value.values() for each in _types(child))]
    if isinstance(value, list):
        return [each for child in value for each in _types(child)]
    return []
