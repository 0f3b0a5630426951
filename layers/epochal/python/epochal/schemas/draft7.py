"""Schemas as draft 7 has them, which AsyncAPI takes and compilers know: what 2020-12 says otherwise, as it was said
before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from epochal.schemas.classes import Schema

_HOLDERS: Final = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
)
"""Keywords whose members are schemas by names, which are no keywords."""

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
"""Keywords that draft 7 has no words for."""


def each_schema(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """A schema and all that are in it, the inner ones first, as `change` makes them."""
    if isinstance(schema, list):
        return [each_schema(each, change) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return change(
        {
            name: value
            if name in _VALUES
            else {each: each_schema(inner, change) for each, inner in value.items()}
            if name in _HOLDERS
            else each_schema(value, change)
            for name, value in schema.items()
        }
    )


def draft7(schema: Any, refer: Callable[[str], str] = str) -> Any:
    """The schema as draft 7 has it; `refer` says where what it refers to is instead.

    Raises:
        ValueError: draft 7 cannot say it.
    """

    def older(found: Schema) -> Schema:
        if since := sorted(_SINCE & found.keys()):
            raise ValueError(f"{since[0]} has no form in draft 7")
        if "prefixItems" in found:
            if "items" in found:
                found["additionalItems"] = found["items"]
            found["items"] = found.pop("prefixItems")
        needed = {**found.pop("dependentRequired", {}), **found.pop("dependentSchemas", {})}
        if needed:
            found["dependencies"] = needed
        if "$ref" in found:
            # What is beside a reference means nothing to draft 7.
            reference = {"$ref": refer(found.pop("$ref"))}
            return {**found, "allOf": [reference, *found.get("allOf", [])]} if found else reference
        return found

    return each_schema(schema, older)


def define(schemas: Schema, place: str, key: str, schema: Schema) -> None:
    """Put a schema among those at `place` of a document, under `key`, and beside it what is in its `$defs`.

    Raises:
        ValueError: draft 7 cannot say it, or it refers to what is not in it.
    """
    inner = {f"#/$defs/{name}": f"{key}.{position}" for position, name in enumerate(schema.get("$defs", {}))}

    def refer(reference: str) -> str:
        if reference not in inner and reference != "#":
            raise ValueError(f"refers to {reference}, which is not in its $defs")
        return place + inner.get(reference, key)

    own = {name: each for name, each in schema.items() if name not in ("$schema", "$id", "$defs")}
    schemas[key] = draft7(own, refer)
    for name, each in schema.get("$defs", {}).items():
        schemas[inner[f"#/$defs/{name}"]] = draft7(each, refer)
