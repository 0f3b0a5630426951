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
            "schemas": {name: _schema(each) for name, each in components["schemas"].items()},
            "responses": _converted(components["responses"]),
        },
    }


def _converted(part: Any) -> Any:
    """Convert paths or responses to OpenAPI 3.0: the schemas in them, and their security requirements."""
    if isinstance(part, list):
        return [_converted(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {name: _converted(each) for name, each in part.items() if name not in ("schema", "security")}
    if "schema" in part:
        made["schema"] = _schema(part["schema"])
    if "security" in part:
        # OpenAPI 3.0 has scopes for OAuth alone; the deployment's issuer maps them.
        made["security"] = [{name: [] for name in each} for each in part["security"]]
    return made


def _schema(schema: Schema) -> Schema:
    """Convert a JSON schema to the dialect of OpenAPI 3.0."""
    made = {name: each for name, each in schema.items() if name not in ("examples", "contentEncoding")}
    if "properties" in made:
        made["properties"] = {name: _schema(each) for name, each in made["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = _schema(made[name])
    if "anyOf" in made:
        made["anyOf"] = [_schema(each) for each in made["anyOf"] if each != _NULL]
    if "examples" in schema:
        made["example"] = schema["examples"][0]
    if schema.get("contentEncoding") == "base64":
        del made["pattern"]
        made["format"] = "byte"
    return _alone(_nullable(schema, made))


def _nullable(schema: Schema, made: Schema) -> Schema:
    """Mark a converted schema as nullable where the original admits null.

    Args:
        schema: the original schema.
        made: the converted schema.
    """
    if isinstance(schema.get("type"), list):
        (kind,) = (each for each in schema["type"] if each != "null")
        return {**made, "type": kind, "nullable": True}
    if _NULL not in schema.get("anyOf", ()):
        return made
    if len(made["anyOf"]) > 1:
        return {**made, "nullable": True}
    (only,) = made.pop("anyOf")
    return {**only, **made, "nullable": True}


def _alone(schema: Schema) -> Schema:
    """Move a schema's reference into `allOf` where it has siblings, which OpenAPI 3.0 ignores."""
    if "$ref" not in schema or len(schema) == 1:
        return schema
    rest = {name: each for name, each in schema.items() if name != "$ref"}
    return {"allOf": [{"$ref": schema["$ref"]}], **rest}
