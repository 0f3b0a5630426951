"""Schemas inside of a schema, and schemas of draft 7: what 2020-12 says otherwise, as it was said before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from epochal.contrib.schemas.class_schemas import Schema

_HOLDERS: Final = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
)
"""Keywords whose members are schemas, under names that are not keywords."""

_VALUES: Final = ("const", "enum", "default", "examples", "required", "dependentRequired")
"""Keywords that hold no schemas."""

_SINCE: Final = frozenset(
    (
        "$dynamicRef",
        "$recursiveRef",
        "minContains",
        "maxContains",
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
"""Keywords for which draft 7 has no equivalent."""


def each_schema(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Rebuild a schema by calling `change` on it and every schema in it, the inner ones first."""
    if isinstance(schema, list):
        return [each_schema(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return change(
        {
            name: value
            if name in _VALUES
            else {member: each_schema(inner, change) for member, inner in value.items()}
            if name in _HOLDERS
            else each_schema(value, change)
            for name, value in schema.items()
        }
    )


def draft7(schema: Any, refer: Callable[[str], str] = str) -> Any:
    """Convert a 2020-12 schema to draft 7, its references by `refer`; raise `ValueError` if it cannot be.

    Raises:
        ValueError: the schema has a keyword that draft 7 cannot express.
    """

    def older(schema: Schema) -> Schema:
        """Convert one schema, whose inner schemas have been converted, to draft 7."""
        if since := sorted(_SINCE & schema.keys()):
            raise ValueError(f"{since[0]} cannot be expressed in draft 7")
        if "prefixItems" in schema:
            if "items" in schema:
                schema["additionalItems"] = schema["items"]
            schema["items"] = schema.pop("prefixItems")
        needed = {**schema.pop("dependentRequired", {}), **schema.pop("dependentSchemas", {})}
        if needed:
            schema["dependencies"] = needed
        if "$ref" in schema:
            # Draft 7 ignores all keywords beside a reference.
            reference = {"$ref": refer(schema.pop("$ref"))}
            return {**schema, "allOf": [reference, *schema.get("allOf", [])]} if schema else reference
        return schema

    return each_schema(schema, older)


def define(schemas: Schema, place: str, key: str, schema: Schema) -> None:
    """Add a schema and its definitions to a document's schemas, as draft 7.

    Args:
        schemas: schemas of the document, which this function adds to.
        place: prefix of references to these schemas.
        key: key of the new schema; its definitions get `key` and a number.
        schema: the schema to add, of draft 2020-12.

    Raises:
        ValueError: draft 7 cannot express the schema, or it refers to a definition that it does not contain.
    """
    inner = {f"#/$defs/{name}": f"{key}.{position}" for position, name in enumerate(schema.get("$defs", {}))}

    def refer(reference: str) -> str:
        """Map a reference of the schema to the place of its target in the document."""
        if reference not in inner and reference != "#":
            raise ValueError(f"refers to {reference}, which is not in its $defs")
        return place + inner.get(reference, key)

    own = {name: member for name, member in schema.items() if name not in ("$schema", "$id", "$defs")}
    schemas[key] = draft7(own, refer)
    for name, definition in schema.get("$defs", {}).items():
        schemas[inner[f"#/$defs/{name}"]] = draft7(definition, refer)
