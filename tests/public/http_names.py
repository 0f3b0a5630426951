"""The names that the HTTP API has: operations, parameters, headers, problems and fields, from the OpenAPI document of
all operations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.public.library_names import ROOT

DOCUMENT: Final = ROOT / "docs" / "reference" / "openapi-rules.json"
METHODS: Final = ("get", "put", "post", "delete", "patch", "head")


def names() -> list[str]:
    """All of them, each with the place that it is in."""
    document = json.loads(DOCUMENT.read_text("utf-8"))
    lines = set()
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                lines |= set(_operation(f"{method.upper()} {path}", item[method]))
    for name, schema in document["components"]["schemas"].items():
        lines.add(f"schema {name}")
        lines |= set(fields(f"schema {name}", schema))
    return sorted(lines)


def _operation(title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"{title} is {operation['operationId']}"
    for parameter in operation.get("parameters", ()):
        if "$ref" in parameter:
            yield f"{title} takes {parameter['$ref'].rpartition('/')[2]}"
        else:
            yield f"{title} takes {parameter['in']} {parameter['name']}"
    yield from _content(f"{title} body", operation.get("requestBody", {}))
    for status, response in operation["responses"].items():
        if "$ref" in response:
            yield f"{title} {status} {response['$ref'].rpartition('/')[2]}"
        else:
            yield f"{title} {status}"
            yield from _content(f"{title} {status}", response)
            yield from (f"{title} {status} header {name}" for name in response.get("headers", ()))


def _content(title: str, body: dict[str, Any]) -> Iterator[str]:
    for kind, content in body.get("content", {}).items():
        schema = content.get("schema", {})
        if "$ref" in schema:
            yield f"{title} {kind} {schema['$ref'].rpartition('/')[2]}"
        yield from fields(f"{title} {kind}", schema)


def fields(place: str, schema: Any) -> Iterator[str]:
    """The fields of a schema, and of the schemas in it; those that it refers to have lines of their own."""
    if isinstance(schema, list):
        for each in schema:
            yield from fields(place, each)
    elif isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            yield f"{place}.{name}"
            yield from fields(f"{place}.{name}", field)
        for keyword in ("items", "additionalProperties", "oneOf", "anyOf", "allOf"):
            mark = {"items": "[]", "additionalProperties": ".*"}.get(keyword, "")
            yield from fields(f"{place}{mark}", schema.get(keyword))
