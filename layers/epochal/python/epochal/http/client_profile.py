"""The client profile of the OpenAPI document: the shapes of values, as generators of clients understand them.

Generators make a type of every subschema. A rule such as "at least one of these fields" describes no type, and a type
made of it loosens the type of the whole object: a misspelt field compiles, or the object cannot be built. So rules
between fields are left out here; the API enforces them on every request, and the document with all rules states them
(`openapi`).

- Problems are one schema for all statuses. Their `type` is text, since later versions may have further types.
- Schemas that occur only in answers are not closed, since later versions may add fields.
- API Gateway's own answers are described, also where a problem of the API has the same status.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from epochal.http.operation import JSON, PROBLEM
from epochal.http.schemas import Schema, ref, words

Document = dict[str, Any]

_RULES: Final = frozenset({"not", "if", "then", "else", "dependentRequired"})
"""Keywords that only state which values may occur together."""

_CHOICES: Final = ("allOf", "anyOf", "oneOf")
"""Keywords that state beside `properties` which values may occur together, and elsewhere the types of a value."""

_TYPED: Final = frozenset({"type", "$ref", "enum", "const", *_CHOICES})
"""Keywords by which a schema has a type."""

_OF_THE_GATEWAY: Final[Mapping[str, str]] = {
    "401": "The token is missing or not valid (the gateway's own answer).",
    "403": "The request is not signed, or its caller is not allowed to send it (the gateway's own answer).",
    "429": "Too many requests: wait, and send it again (the gateway's own answer).",
}
"""Statuses that the gateway alone answers with."""

_OF_BOTH: Final = frozenset({"404", "413", "500", "503"})
"""Statuses that the gateway answers with, too: no such route, a body above 10 MB, and a function that fails."""

_GATEWAY_MESSAGE: Final[Schema] = {
    "type": "object",
    "description": "Answer of API Gateway itself, before or instead of the API.",
    "properties": {"message": words("What is wrong, in the gateway's words.")},
}
_REFUSAL: Final[Schema] = {
    "description": "A problem of the API, or the gateway's own answer, which has no `type`.",
    "anyOf": [ref("Problem"), ref("GatewayMessage")],
}


def client_profile(document: Document) -> Document:
    """Return an OpenAPI document reduced for generators of clients, with the gateway's own answers added."""
    components = document["components"]
    requested = _reached(
        components["schemas"],
        [operation["requestBody"] for operation in _operations(document) if "requestBody" in operation],
    )
    schemas = {
        name: _shape(schema, closed=name in requested) for name, schema in components["schemas"].items()
    }
    schemas["Problem"]["properties"]["type"]["x-extensible-enum"] = _types(components["responses"])
    schemas |= {"GatewayMessage": _GATEWAY_MESSAGE, "Refusal": _REFUSAL}
    paths = {
        path: {method: _operation(operation) for method, operation in methods.items()}
        for path, methods in document["paths"].items()
    }
    responses = {
        name: _problem(response, _status(document, name))
        for name, response in components["responses"].items()
    }
    responses |= {
        f"gateway-{status}": _by_the_gateway(profile) for status, profile in _OF_THE_GATEWAY.items()
    }
    reached = _reached(schemas, [paths, responses])
    return {
        **document,
        "paths": paths,
        "components": {
            **components,
            "schemas": {name: schema for name, schema in sorted(schemas.items()) if name in reached},
            "responses": dict(sorted(responses.items())),
        },
    }


def _operations(document: Document) -> Iterator[Document]:
    """Yield every operation of a document."""
    for methods in document["paths"].values():
        yield from methods.values()


def _operation(operation: Document) -> Document:
    """Return a copy of an operation with reduced parameter schemas, and the gateway's own answers added."""
    profile = {**operation}
    if "parameters" in operation:
        profile["parameters"] = [
            {**parameter, "schema": _shape(parameter["schema"], closed=True)}
            for parameter in operation["parameters"]
        ]
    gateway = {status: {"$ref": f"#/components/responses/gateway-{status}"} for status in _OF_THE_GATEWAY}
    profile["responses"] = dict(sorted({**operation["responses"], **gateway}.items()))
    return profile


def _problem(response: Document, status: str) -> Document:
    """Return a response that is a problem, or the gateway's own answer where both share its status."""
    if status in _OF_BOTH:
        return {**response, "content": {media: {"schema": ref("Refusal")} for media in (PROBLEM, JSON)}}
    return {**response, "content": {PROBLEM: {"schema": ref("Problem")}}}


def _by_the_gateway(description: str) -> Document:
    """Return a response that API Gateway gives by itself."""
    return {"description": description, "content": {JSON: {"schema": ref("GatewayMessage")}}}


def _status(document: Document, response: str) -> str:
    """Return the HTTP status of a named response that operations share.

    Args:
        response: name of the response in the document.
    """
    where = {"$ref": f"#/components/responses/{response}"}
    chosen: str = next(
        status
        for operation in _operations(document)
        for status, response in operation["responses"].items()
        if response == where
    )
    return chosen


def _types(responses: Document) -> list[str]:
    """Return the sorted types of problems that these responses may have."""
    schemas = [response["content"][PROBLEM]["schema"]["allOf"][1] for response in responses.values()]
    return sorted({kind for schema in schemas for kind in schema["properties"]["type"]["enum"]})


def _shape(schema: Schema, *, closed: bool) -> Schema:
    """Return a schema reduced for generators of clients: no rules between fields, for example.

    Args:
        closed: whether the schema refuses further fields.
    """
    shape = {name: value for name, value in schema.items() if name not in _RULES}
    if "properties" in shape:
        shape = {name: value for name, value in shape.items() if name not in _CHOICES}
        shape["properties"] = {
            name: _shape(schema, closed=closed) for name, schema in shape["properties"].items()
        }
        if not closed:
            shape.pop("additionalProperties", None)
        if not shape["required"]:
            del shape["required"]  # OpenAPI 3.0 allows no empty list
    elif isinstance(shape.get("additionalProperties"), dict):
        shape["additionalProperties"] = _shape(shape["additionalProperties"], closed=closed)
    if "items" in shape:
        shape["items"] = _shape(shape["items"], closed=closed)
    for choice in _CHOICES:
        if choice in shape:
            shape[choice] = [
                _shape(option, closed=closed) for option in shape[choice] if _TYPED & option.keys()
            ]
    if len(shape.get("allOf", ())) == 1:
        (only,) = shape.pop("allOf")
        shape = {**only, **shape}
    if "const" in shape:
        value = shape.pop("const")
        shape |= {"type": "boolean"} if isinstance(value, bool) else {"type": "string", "enum": [value]}
    return {"type": "string", **shape} if "enum" in shape else shape


def _reached(schemas: Mapping[str, Schema], places: list[Any]) -> set[str]:
    """Return the names of the schemas that `places` refer to, directly or not; empty the list `places`.

    Args:
        schemas: schemas of the document, by name.
        places: parts of the document; emptied by the search.
    """
    reached: set[str] = set()
    waiting = places
    while waiting:
        for name in set(re.findall(r"'#/components/schemas/([^']+)'", repr(waiting.pop()))) - reached:
            reached.add(name)
            waiting.append(schemas[name])
    return reached
