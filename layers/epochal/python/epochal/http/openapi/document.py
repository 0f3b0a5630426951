"""The document, put together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from epochal.http.openapi.description import ALWAYS, Description, Perform
from epochal.http.openapi.schemas import components
from epochal.http.openapi.shapes import Schema, ref
from epochal.http.openapi.shapes import text as text_schema
from epochal.http.operation import JSON, PROBLEM, Operation
from epochal.http.operations import OPERATIONS
from epochal.http.problems import METHOD_NOT_ALLOWED, PRECONDITION_FAILED, UNAVAILABLE, VERSION_CONFLICT, Kind
from epochal.http.projections import described as projections
from epochal.plugins import parts

_CORRELATION = "X-Correlation-Id"


def _performs(operation: Operation) -> Any:
    return getattr(import_module(operation.module), operation.perform)


def _described(package: Any) -> Mapping[Perform, Description]:
    found: Mapping[Perform, Description] = import_module(f"{package.__name__}.described").DESCRIPTIONS
    return found


DESCRIPTIONS: Final[Mapping[Perform, Description]] = {
    **{each: each.described for each in map(_performs, OPERATIONS) if hasattr(each, "described")},
    **projections.DESCRIPTIONS,
    **{key: each for package in parts("operations") for key, each in _described(package).items()},
}


def text() -> str:
    """The document as it is committed."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Epochal",
            "version": "1",
            "summary": "A serverless event store: append to streams, replay them, follow the feed.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "Where the stack's output ApiUrl says"}],
        "tags": [{"name": name} for name in sorted({operation.function for operation in OPERATIONS})],
        "paths": paths,
        "components": {
            "schemas": components(),
            "responses": dict(sorted(_problems().items())),
            "securitySchemes": _security(),
        },
    }


def _security() -> dict[str, Any]:
    return {
        "sigv4": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "AWS Signature Version 4 for the service `execute-api`; IAM policies name the routes.",
            "x-amazon-apigateway-authtype": "awsSigv4",
        },
        "jwt": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "Where the deployment names an issuer; a token needs a scope that the operation's maps to.",
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described = DESCRIPTIONS.get(_performs(operation))
    if described is None:
        raise LookupError(
            f"{operation.key}: `described.py` beside {operation.module} lacks {operation.perform}"
        )
    made: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.function],
        "summary": described.summary,
        "description": described.description,
        "security": [{"sigv4": []}, {"jwt": [operation.scope]}],
    }
    if described.parameters:
        made["parameters"] = list(described.parameters)
    if described.takes is not None:
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": ref(described.takes)}}}
    made["responses"] = _responses(described)
    return made


def _responses(described: Description) -> dict[str, Any]:
    headers = _headers(described.headers)
    made: dict[str, Any] = {
        str(described.status): {
            "description": f"{described.gives}.",
            "headers": headers,
            "content": {JSON: {"schema": ref(described.gives)}},
        }
    }
    if described.not_modified:
        made["304"] = {"description": "The caller has this state already.", "headers": headers}
    for status, kinds in _by_status(described).items():
        made[str(status)] = {"$ref": f"#/components/responses/{_name(kinds)}"}
    return dict(sorted(made.items()))


def _by_status(described: Description) -> dict[int, list[Kind]]:
    """The problems that an operation may answer with."""
    found: dict[int, list[Kind]] = {}
    for kind in (*ALWAYS, *described.fails):
        found.setdefault(kind.status, []).append(kind)
    return found


def _problems() -> dict[str, Any]:
    """Every answer that is a problem, by name: several kinds may share a status."""
    groups = (kinds for described in DESCRIPTIONS.values() for kinds in _by_status(described).values())
    return {_name(kinds): _problem(kinds) for kinds in groups}


def _name(kinds: list[Kind]) -> str:
    return ".".join(kind.name for kind in kinds)


def _problem(kinds: list[Kind]) -> dict[str, Any]:
    narrowed = {"properties": {"type": {"enum": [kind.type for kind in kinds]}}}
    return {
        "description": "; ".join(f"{kind.title} (`{kind.type}`)" for kind in kinds),
        "headers": _headers(_problem_headers(kinds)),
        "content": {PROBLEM: {"schema": {"allOf": [ref("Problem"), narrowed]}}},
    }


def _problem_headers(kinds: Iterable[Kind]) -> dict[str, Schema]:
    made: dict[str, Schema] = {}
    for kind in kinds:
        if kind in (VERSION_CONFLICT, PRECONDITION_FAILED):
            made["ETag"] = text_schema("The state that the stream is in, where it exists.")
        if kind is UNAVAILABLE:
            made["Retry-After"] = text_schema("Seconds to wait.")
        if kind is METHOD_NOT_ALLOWED:
            made["Allow"] = text_schema("The methods that the path has.")
    return made


def _headers(schemas: Mapping[str, Schema]) -> dict[str, Any]:
    named = {**schemas, _CORRELATION: text_schema("Names the request in the logs.")}
    return {
        name: {
            "description": schema["description"],
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }
        for name, schema in named.items()
    }
