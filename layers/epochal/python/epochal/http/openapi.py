"""The API as OpenAPI documents, made from its routes, declarations of operations, limits and problems.

    python -m epochal.http.openapi                          prints openapi.json
    python -m epochal.http.openapi openapi-3.0.json         prints another one
    python -m epochal.http.openapi --write docs/reference   writes all of them

`openapi.json` is for generators of clients (`client_profile`), and `openapi-3.0.json` is the same in OpenAPI 3.0.3.
Other layouts have documents of their own, named after them. `openapi-rules.json` has all operations and every rule of
their requests; every test of the API checks each answer against it. The documents are committed, and a test compares
them. No module that serves requests imports this one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from epochal import extensions
from epochal.deferred import loaded_function
from epochal.http import (
    appends,
    bodies,
    bulk_appends,
    declarations,
    events,
    feed,
    feed_items,
    groups,
    health,
    problems,
    sent_events,
    several,
    stream_views,
    streams,
    tag_views,
    tagged,
    tagged_requests,
    tagged_views,
    whole_feed,
)
from epochal.http.appends import APPEND, APPEND_UNTAGGED
from epochal.http.client_profile import client_profile
from epochal.http.components import Component
from epochal.http.declarations import PARAGRAPH
from epochal.http.event_fields import INDEX, POSITION
from epochal.http.openapi_3_0 import in_3_0
from epochal.http.operation import JSON, PROBLEM, Operation
from epochal.http.problems import METHOD_NOT_ALLOWED, PRECONDITION_FAILED, UNAVAILABLE, VERSION_CONFLICT, Kind
from epochal.http.routes import operations, operations_of_layout
from epochal.http.schemas import Schema, array, flag, ref, whole
from epochal.http.schemas import text as text_schema
from epochal.http.several import IN_THE_WAY
from epochal.http.stream_fields import TOKEN, VERSION
from epochal.plugins import NATIVE, layouts

ALWAYS: Final = (
    problems.INVALID_INPUT,
    problems.ROUTE_NOT_FOUND,
    problems.METHOD_NOT_ALLOWED,
    problems.INTERNAL,
    problems.CORRUPT_DATA,
    problems.UNAVAILABLE,
    problems.NOT_DEPLOYED,
)
"""Problems that any operation may answer with."""

_OF_BODIES: Final = (problems.TOO_LARGE, problems.UNSUPPORTED_MEDIA)
"""Further problems that an operation may answer with if its request has a body."""

_UNTAGGED: Final[Mapping[str, str]] = {APPEND.name: APPEND_UNTAGGED.name}
"""Schemas of requests on stores without tags, by the schemas that the operations declare."""

_CORRELATION: Final = "X-Correlation-Id"

_PROBLEM: Final[Schema] = {
    "type": "object",
    "description": "RFC 9457. Compare `type`; the rest is for people and logs.",
    "properties": {
        "type": text_schema("Type of the problem."),
        "title": text_schema("Title of the problem."),
        "status": whole("The HTTP status.", 400, 599),
        "detail": text_schema("What happened in this case."),
        "instance": text_schema("Identifies this occurrence in the logs."),
        "field": text_schema("Field, parameter or header that broke a rule."),
        "rule": text_schema("Rule that it broke."),
        "size": whole("Size of the refused value."),
        "limit": whole("Largest size allowed."),
        "stream": text_schema("Stream that the problem concerns."),
        "streams": array(IN_THE_WAY, "Streams that refused an append to several streams."),
        "version": {**VERSION, "description": "Current version of what the problem concerns."},
        "token": {
            **TOKEN,
            "description": "Current state of the stream, if it exists: its ETag without the quotes.",
        },
        "index": INDEX,
        "partition": whole("Partition that was requested."),
        "events": array(ref("TaggedEvent"), "Events that refused a conditional append."),
        "position": {
            **POSITION,
            "description": "Position after these events, for the `after` of a later append.",
        },
        "more": flag("Whether there are more such events, beyond the position."),
    },
    "required": ["type", "title", "status", "instance"],
    "additionalProperties": False,
}


RULES: Final = "openapi-rules.json"
"""The file of the document that has every operation and every rule."""


def documents() -> dict[str, str]:
    """Build every OpenAPI document; return the JSON texts by file name."""
    contents: dict[str, dict[str, Any]] = {}
    for layout in sorted(layouts(), key=lambda layout: layout.name != NATIVE):
        name = "openapi" if layout.name == NATIVE else f"openapi-{layout.name}"
        profile = client_profile(document(operations_of_layout(layout.name)))
        contents |= {f"{name}.json": profile, f"{name}-3.0.json": in_3_0(profile)}
    contents[RULES] = document()
    return {
        name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in contents.items()
    }


def document(served: Sequence[Operation] | None = None) -> dict[str, Any]:
    """Build the OpenAPI 3.1 document, with every rule, of all operations or of the given ones."""
    served = operations() if served is None else served
    paths: dict[str, dict[str, Any]] = {}
    for operation in served:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Epochal",
            "version": "1",
            "summary": "A serverless event store: append to streams, replay them, follow the feed.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The address in the stack's output ApiUrl"}],
        "tags": [{"name": name} for name in sorted({operation.function for operation in served})],
        "paths": paths,
        "components": {
            "schemas": _components(served),
            "responses": dict(sorted(_problems(served).items())),
            "securitySchemes": _security(),
        },
    }


def _components(served: Iterable[Operation]) -> dict[str, Schema]:
    """Return all declared schemas by name, and `Problem` with members that the operations add."""
    serving = map(import_module, sorted({operation.module for operation in served}))
    of_plugins = [getattr(module, "OF_PROBLEMS", {}) for module in serving]
    properties = {
        name: schema for fields in (_PROBLEM["properties"], *of_plugins) for name, schema in fields.items()
    }
    schemas: dict[str, Schema] = {"Problem": {**_PROBLEM, "properties": properties}}
    for module in _declaring():
        declared = [value for value in vars(module).values() if isinstance(value, Component)]
        schemas |= {component.name: component.schema for component in declared if component.name}
    return dict(sorted(schemas.items()))


def _declaring() -> Iterator[ModuleType]:
    """Yield the modules that declare schemas, also those of layouts and optional packages."""
    yield from (bodies, sent_events, events, feed_items, feed, whole_feed, groups, health)
    yield from (streams, stream_views, appends, several, bulk_appends)
    yield from (tagged, tagged_requests, tagged_views, tag_views)
    yield from extensions.parts("documented")
    for own in (layout.plugin.operations for layout in layouts()):
        yield from map(
            import_module, sorted({operation.module for operation in (() if own is None else own())})
        )


def _security() -> dict[str, Any]:
    """Return the security schemes of the API: AWS Signature Version 4, and JWT."""
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
            "description": "If the deployment names an issuer. A token needs a scope to which the deployment maps the "
            "operation's scope.",
        },
    }


def described_by(operation: Operation) -> declarations.operation:
    """Return the declaration of an operation's function."""
    described: declarations.operation = vars(loaded_function(operation.perform))["described"]
    return described


def _operation(operation: Operation) -> dict[str, Any]:
    """Build the OpenAPI object of an operation from its declaration and docstring."""
    described = described_by(operation)
    summary, _, description = (loaded_function(operation.perform).__doc__ or "").partition(PARAGRAPH)
    result: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.function],
        "summary": summary.removesuffix("."),
        "description": " ".join(description.split()),
        "security": [{"sigv4": []}, {"jwt": [operation.scope]}],
    }
    if described.parameters:
        result["parameters"] = list(described.parameters)
    if described.takes is not None:
        untagged = {layout.plugin.streams for layout in layouts() if not layout.plugin.tagged}
        form = described.takes.name
        takes = _UNTAGGED.get(form, form) if operation.store in untagged else form
        result["requestBody"] = {"required": True, "content": {JSON: {"schema": ref(takes)}}}
    result["responses"] = _responses(described)
    return result


def _responses(described: declarations.operation) -> dict[str, Any]:
    """Build the responses of an operation: its success, 304 where declared, and its problems."""
    headers = _headers(described.headers)
    responses: dict[str, Any] = {
        str(described.status): {
            "description": f"{described.gives.name}.",
            "headers": headers,
            "content": {JSON: {"schema": ref(described.gives.name)}},
        }
    }
    if described.not_modified:
        responses["304"] = {"description": "The caller already has this state.", "headers": headers}
    for status, kinds in _by_status(described).items():
        responses[str(status)] = {"$ref": f"#/components/responses/{_name(kinds)}"}
    return dict(sorted(responses.items()))


def _by_status(described: declarations.operation) -> dict[int, list[Kind]]:
    """Return the problems that an operation may answer with, by HTTP status."""
    kinds: dict[int, list[Kind]] = {}
    of_body = () if described.takes is None else _OF_BODIES
    for kind in (*ALWAYS, *of_body, *described.fails):
        kinds.setdefault(kind.status, []).append(kind)
    return kinds


def _problems(served: Iterable[Operation]) -> dict[str, Any]:
    """Return every response that is a problem, by name; kinds that share a status share a response."""
    groups = (kinds for operation in served for kinds in _by_status(described_by(operation)).values())
    return {_name(kinds): _problem(kinds) for kinds in groups}


def _name(kinds: list[Kind]) -> str:
    """Return the name of the response for these kinds of problems."""
    return ".".join(kind.name for kind in kinds)


def _problem(kinds: list[Kind]) -> dict[str, Any]:
    """Build the response that is one of these kinds of problems."""
    narrowed = {"properties": {"type": {"enum": [kind.type for kind in kinds]}}}
    return {
        "description": "; ".join(f"{kind.title} (`{kind.type}`)" for kind in kinds),
        "headers": _headers(
            {name: header for kind in kinds for name, header in _OF_KINDS.get(kind, {}).items()}
        ),
        "content": {PROBLEM: {"schema": {"allOf": [ref("Problem"), narrowed]}}},
    }


_STATE: Final = {"ETag": text_schema("Current state of the stream, if it exists.")}
_OF_KINDS: Final[Mapping[Kind, Mapping[str, Schema]]] = {
    VERSION_CONFLICT: _STATE,
    PRECONDITION_FAILED: _STATE,
    UNAVAILABLE: {"Retry-After": text_schema("Seconds to wait.")},
    METHOD_NOT_ALLOWED: {"Allow": text_schema("The methods that the path has.")},
}
"""Headers of answers that are a problem of a kind."""


def _headers(schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Build the headers of a response from their schemas, the correlation id included."""
    headers = {**schemas, _CORRELATION: text_schema("Identifies the request in the logs.")}
    return {
        name: {
            "description": schema["description"],
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }
        for name, schema in headers.items()
    }


def main(arguments: Sequence[str]) -> None:
    """Print one OpenAPI document, or write all of them to a folder, as arguments ask."""
    texts = documents()
    parser = argparse.ArgumentParser(prog="python -m epochal.http.openapi", description="OpenAPI documents.")
    parser.add_argument(
        "name", nargs="?", choices=list(texts), default="openapi.json", help="document to print"
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="DIRECTORY",
        help="folder to write all documents to, instead of printing one",
    )
    options = parser.parse_args(arguments)
    if options.write is None:
        sys.stdout.write(texts[options.name])
        return
    for name, text in texts.items():
        (options.write / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
