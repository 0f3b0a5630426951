"""Schemas as draft 7 has them, which AsyncAPI takes and compilers know: what 2020-12 says otherwise, as it was said
before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochal.schemas.classes import Schema

_HOLDERS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose members are schemas by names, which are no keywords."""

_VALUES = ("const", "enum", "default", "examples", "required", "dependentRequired")
"""Keywords that hold no schemas."""


def draft7(schema: Any, refer: Callable[[str], str] = str) -> Any:
    """The schema as draft 7 has it; `refer` says where what it refers to is instead."""
    if isinstance(schema, list):
        return [draft7(each, refer) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found: Schema = {
        name: value
        if name in _VALUES
        else {each: draft7(inner, refer) for each, inner in value.items()}
        if name in _HOLDERS
        else draft7(value, refer)
        for name, value in schema.items()
    }
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
