"""An OpenAPI 3.1 document in the dialect of 3.0.3, which generators for Java, Go and .NET understand best.

3.0 has `nullable` in place of the type null, `example` in place of `examples`, a format in place of an encoding, and
takes nothing beside a `$ref`.
"""

from __future__ import annotations

from typing import Any, Final

from epochal.http.client_profile import Document
from epochal.http.schemas import Schema

_NULL: Final = {"type": "null"}


def in_3_0(document: Document) -> Document:
    """Convert the OpenAPI 3.1 document of a client profile to OpenAPI 3.0.3."""
    components, info = document["components"], document["info"]
    return {
        **document,
        "openapi": "3.0.3",
        "info": {
            "title": info["title"],
            "version": info["version"],
            "description": info["summary"],
            "license": {"name": info["license"]["name"]},
        },
        "paths": _converted(document["paths"]),
        "components": {
            **components,
            "schemas": {name: _schema(schema) for name, schema in components["schemas"].items()},
            "responses": _converted(components["responses"]),
        },
    }


def _converted(part: Any) -> Any:
    """Convert paths or responses to OpenAPI 3.0: the schemas in them, and their security requirements."""
    if isinstance(part, list):
        return [_converted(element) for element in part]
    if not isinstance(part, dict):
        return part
    converted = {
        name: _converted(member) for name, member in part.items() if name not in ("schema", "security")
    }
    if "schema" in part:
        converted["schema"] = _schema(part["schema"])
    if "security" in part:
        # OpenAPI 3.0 has scopes for OAuth alone; the deployment's issuer maps them.
        converted["security"] = [{name: [] for name in requirement} for requirement in part["security"]]
    return converted


def _schema(schema: Schema) -> Schema:
    """Convert a schema to OpenAPI 3.0: `null`, examples, base64, and keywords beside a `$ref`; no others."""
    converted = {name: value for name, value in schema.items() if name not in ("examples", "contentEncoding")}
    if "properties" in converted:
        converted["properties"] = {name: _schema(member) for name, member in converted["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(converted.get(name), dict):
            converted[name] = _schema(converted[name])
    if "anyOf" in converted:
        converted["anyOf"] = [_schema(choice) for choice in converted["anyOf"] if choice != _NULL]
    if "examples" in schema:
        converted["example"] = schema["examples"][0]
    if schema.get("contentEncoding") == "base64":
        del converted["pattern"]
        converted["format"] = "byte"
    return _alone(_nullable(schema, converted))


def _nullable(schema: Schema, converted: Schema) -> Schema:
    """Return a converted schema, marked as nullable if the original admits null.

    Args:
        schema: the original schema.
        converted: the converted schema.
    """
    if isinstance(schema.get("type"), list):
        (kind,) = (type_ for type_ in schema["type"] if type_ != "null")
        return {**converted, "type": kind, "nullable": True}
    if _NULL not in schema.get("anyOf", ()):
        return converted
    if len(converted["anyOf"]) > 1:
        return {**converted, "nullable": True}
    (only,) = converted.pop("anyOf")
    return {**only, **converted, "nullable": True}


def _alone(schema: Schema) -> Schema:
    """Move a schema's reference into `allOf` where it has siblings, which OpenAPI 3.0 ignores."""
    if "$ref" not in schema or len(schema) == 1:
        return schema
    keywords = {name: value for name, value in schema.items() if name != "$ref"}
    return {"allOf": [{"$ref": schema["$ref"]}], **keywords}
