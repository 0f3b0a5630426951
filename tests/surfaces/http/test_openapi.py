"""The committed OpenAPI documents are valid, current, and cover every route and problem. Those for clients have shapes
alone; whatever rule they leave out is enforced by the API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from epochal.contrib.event_store_adapter.http.operations import NOT_FOUND
from epochal.contrib.sekiban.http.operations import BEHIND
from epochal.contrib.sekiban.http.operations import NOT_FOUND as STATE_NOT_FOUND
from epochal.deferred import loaded_function
from epochal.http.openapi import RULES, document, documents, main
from epochal.http.operation import Operation
from epochal.http.problems import KINDS
from epochal.http.routes import operations
from epochal.http.several import MAX_APPENDS
from epochal.settings import RESPONSE_BYTES
from tests.support.api import Api, gateway_event

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
MADE = documents()
PROFILES = {name: json.loads(text) for name, text in MADE.items() if name != RULES}


def test_the_committed_documents_are_what_the_code_says() -> None:
    committed = {path.name: path.read_text("utf-8") for path in REFERENCE.glob("openapi*.json")}
    assert committed == MADE, (
        "run: python -m epochal.http.openapi --write docs/reference, then python -m tests.clients.schema"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_every_document_is_valid_openapi(name: str) -> None:
    validate(json.loads(MADE[name]))


@pytest.mark.parametrize("name", ["openapi.json", "openapi-3.0.json", RULES])
def test_the_command_prints_the_document_that_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([name])
    assert capsys.readouterr().out == MADE[name]


def test_the_command_prints_the_one_for_clients_or_writes_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([])
    assert capsys.readouterr().out == MADE["openapi.json"]
    main(["--write", str(tmp_path)])
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == MADE


def test_each_operation_is_in_the_document_of_its_layout_and_in_no_other() -> None:
    paths = {
        name: {(method.upper(), path) for path, methods in made["paths"].items() for method in methods}
        for name, made in PROFILES.items()
        if made["openapi"] == "3.1.0"
    }
    assert sum(map(len, paths.values())) == len(operations())
    assert set().union(*paths.values()) == {(route.method, route.path) for route in operations()}
    begins = {"openapi-tips.json": ("/tips",), "openapi-dcb.json": ("/dcb", "/projections")}
    begins |= {"openapi-journal.json": ("/aggregates",)}
    others = tuple(start for starts in begins.values() for start in starts)
    for name, served in paths.items():
        for _, path in served:
            assert path.startswith(begins[name]) if name in begins else not path.startswith(others)


SHAPES = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "$ref", "anyOf", "allOf"),
    *("description", "default", "example", "examples", "format", "contentEncoding", "nullable"),
    *("pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "x-extensible-enum"),
}


def schemas_in(part: Any) -> Iterator[dict[str, Any]]:
    """Every schema of a document, and those inside of them."""
    if isinstance(part, list):
        for each in part:
            yield from schemas_in(each)
    if isinstance(part, dict):
        for name, each in part.items():
            yield from within(each) if name == "schema" else schemas_in(each)


def within(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("allOf", ())]
    inner += [
        schema[name] for name in ("items", "additionalProperties") if isinstance(schema.get(name), dict)
    ]
    for each in inner:
        yield from within(each)


def all_schemas(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from schemas_in(made["paths"])
    yield from schemas_in(made["components"]["responses"])
    for each in made["components"]["schemas"].values():
        yield from within(each)


@pytest.mark.parametrize("name", PROFILES)
def test_what_clients_are_generated_from_has_shapes_alone(name: str) -> None:
    for schema in all_schemas(PROFILES[name]):
        assert schema.keys() <= SHAPES
        assert "type" in schema or "enum" not in schema
        if "properties" in schema:
            assert not {"anyOf", "allOf"} & schema.keys()
        for each in schema.get("anyOf", ()):
            assert {"type", "$ref"} & each.keys(), "a choice without a type is a rule"
        assert schema.get("required") != []


@pytest.mark.parametrize("name", [name for name in PROFILES if "3.0" in name])
def test_the_dialect_of_3_0_has_none_of_the_words_of_3_1(name: str) -> None:
    for schema in all_schemas(PROFILES[name]):
        assert not {"examples", "contentEncoding"} & schema.keys()
        assert isinstance(schema.get("type", ""), str)
        assert schema.get("type") != "null"
        assert "$ref" not in schema or len(schema) == 1
    for methods in PROFILES[name]["paths"].values():
        for operation in methods.values():
            assert operation["security"] == [{"sigv4": []}, {"jwt": []}]


@pytest.mark.parametrize("name", PROFILES)
def test_the_gateways_own_answers_are_described_beside_the_problems(name: str) -> None:
    made = PROFILES[name]
    problem, message, both = (
        {"$ref": f"#/components/schemas/{each}"} for each in ("Problem", "GatewayMessage", "Refusal")
    )
    for methods in made["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if "$ref" not in answer:
                    continue
                response = made["components"]["responses"][answer["$ref"].rpartition("/")[2]]
                content = {media: each["schema"] for media, each in response["content"].items()}
                if status in ("401", "403", "429"):
                    assert content == {"application/json": message}
                elif status in ("404", "413", "500", "503"):
                    assert content == {"application/problem+json": both, "application/json": both}
                else:
                    assert content == {"application/problem+json": problem}
            assert {"401", "403", "404", "429"} <= operation["responses"].keys()
            assert ("413" in operation["responses"]) == ("requestBody" in operation)


def test_what_is_sent_is_closed_and_what_is_only_answered_may_get_further_fields() -> None:
    schemas = PROFILES["openapi.json"]["components"]["schemas"]
    for sent in ("Append", "NewEvent", "NewUnfold", "Claim", "EventQueryItem"):
        assert schemas[sent]["additionalProperties"] is False
    for answered in ("Appended", "Event", "FeedItem", "Problem"):
        assert "additionalProperties" not in schemas[answered]


def test_the_types_of_problems_are_text_whose_present_values_are_listed() -> None:
    for name, made in PROFILES.items():
        kind = made["components"]["schemas"]["Problem"]["properties"]["type"]
        assert "enum" not in kind
        listed = set(kind["x-extensible-enum"])
        assert {"urn:epochal:problem:invalid-input", "urn:epochal:problem:not-deployed"} <= listed
        assert (NOT_FOUND.type in listed) == ("journal" in name)


EVENT = {"type": "T"}
CLAIM = {"key": f"bodies/{'0' * 64}", "sha256": "0" * 64, "bytes": 1}
UNFOUNDED = {"events": [EVENT], "after": "x"}

LEFT_OUT: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("POST", "/streams/A-1/events", {}, "events", "at least one event"),
    ("POST", "/streams/A-1/events", {"events": [], "unfolds": []}, "events", "at least one event"),
    ("POST", "/streams/A-1/events", UNFOUNDED, "after", "must not be given without failIf"),
    (
        "POST",
        "/streams/A-1/events",
        {"events": [{**EVENT, "data": 1, "data64": ""}]},
        "events[0].data64",
        "data",
    ),
    (
        "POST",
        "/streams/A-1/events",
        {"events": [{**EVENT, "data": 1, "claim": CLAIM}]},
        "events[0].claim",
        "data",
    ),
    (
        "POST",
        "/streams/A-1/events",
        {"events": [{**EVENT, "meta": 1, "meta64": ""}]},
        "events[0].meta64",
        "meta",
    ),
    (
        "POST",
        "/streams/A-1/events",
        {"unfolds": [{**EVENT, "data": 1, "data64": ""}]},
        "unfolds[0].data64",
        "data",
    ),
    ("POST", "/tips/A-1/events", {}, "events", "at least one event"),
    (
        "POST",
        "/tips/A-1/events",
        {"events": [{**EVENT, "data": 1, "data64": ""}]},
        "events[0].data64",
        "data",
    ),
    ("POST", "/streams", {"appends": [{"stream": "A-1"}]}, "appends[0].events", "at least one event"),
    (
        "POST",
        "/streams",
        {"appends": [{"stream": "A-1", "events": [EVENT]}], "after": "x"},
        "after",
        "must not be given without failIf",
    ),
    ("POST", "/appends", {"appends": [{"stream": "A-1"}]}, "appends[0].events", "at least one event"),
    (
        "POST",
        "/appends",
        {"appends": [{"stream": "A-1", **UNFOUNDED}]},
        "appends[0].after",
        "must not be given without failIf",
    ),
    ("POST", "/groups/g", {"act": "begin"}, "like", "is required to begin"),
    ("POST", "/groups/g", {"act": "reset"}, "to", "is required to reset"),
]


@pytest.mark.parametrize(("method", "path", "body", "field", "rule"), LEFT_OUT)
def test_a_rule_that_clients_are_not_told_is_enforced_by_the_api(
    method: str, path: str, body: dict[str, Any], field: str, rule: str
) -> None:
    """The body has the shape that the document for clients describes, and breaks a rule of the other document."""
    template = next(
        each.path for each in operations() if each.method == method and each.parameters(path) is not None
    )
    profile = PROFILES["openapi-tips.json" if path.startswith("/tips") else "openapi.json"]
    for made, is_valid in ((profile, True), (document(), False)):
        operation = made["paths"][template][method.lower()]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert Draft202012Validator({**schema, "components": made["components"]}).is_valid(body) == is_valid
    answer = Api().invoke(gateway_event(method, path, json.dumps(body).encode()))
    assert (answer.status, answer.json["field"]) == (400, field)
    assert rule in answer.json["rule"]


def test_every_route_is_an_operation_and_nothing_else_is() -> None:
    documented = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }
    assert documented == {(route.method, route.path, route.name) for route in operations()}
    functions = {loaded_function(route.perform) for route in operations()}
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
    limits = f"At most {MAX_APPENDS} appends, or {MAX_APPENDS - 1} with an `Idempotency-Key`."
    assert [each for each in said if limits in each] != []


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
    for text in MADE.values():
        names = json.loads(text)["components"]["schemas"]
        assert [name for name in names if f'"#/components/schemas/{name}"' not in text] == []


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
