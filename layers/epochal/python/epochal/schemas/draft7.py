"""Schemas as draft 7 has them, which AsyncAPI takes and compilers know: what 2020-12 says otherwise, as it was said
before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from epochal.errors import brought_by
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


# Schemas of events as a Python module that checks bodies, made when a stage is synthesised: a function that gets it
# needs no library for schemas, and starts as fast. `fastjsonschema` writes it. Of formats, date-time, date and uuid
# are held to, as readers take them: a time may have no offset. Others are hints, as JSON Schema has it.

_DAY: Final = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?"
_ZONE: Final = r"([Zz]|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9](:?[0-5][0-9](\.[0-9]+)?)?)?)"
_FORMATS: Final = {
    "date-time": f"^{_DAY}[Tt ]{_CLOCK}{_ZONE}?$",
    "date": f"^{_DAY}$",
    "uuid": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
}
_HINTS: Final = ("default", "contentEncoding", "contentMediaType", "title", "description", "examples")

_RAISED: Final = re.compile(r"^from fastjsonschema import .*$", re.MULTILINE)
_RAISED_HERE: Final = (
    "from epochal.http.checked import Unfit as JsonSchemaValueException, Unfit as JsonSchemaValuesException"
)


def schemas_in(document: Any) -> Mapping[str, Schema]:
    """The schemas of types that `epochal schema` has printed; raises `ValueError` where these are none."""
    match document:
        case {"$defs": dict(found)} if found:
            return found
    raise ValueError("must be a document of `epochal schema`, with the schemas of types in its $defs")


def compiled(schemas: Mapping[str, Schema]) -> str:
    """The source of the module: `KEYS` has a key for each type, and `validate({key: body})` raises `Unfit`.

    Raises:
        ValueError: a schema has what cannot be checked.
    """
    with brought_by("cdk", "compiled schemas", "fastjsonschema"):
        from fastjsonschema import compile_to_code  # noqa: PLC0415  of synthesis alone

    definitions, keys = Schema(), {name: f"t{position}" for position, name in enumerate(schemas)}
    for name, schema in schemas.items():
        try:
            define(definitions, "#/definitions/", keys[name], schema)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    properties = {key: {"$ref": f"#/definitions/{key}"} for key in keys.values()}
    try:
        checks = {name: each_schema(each, _asserted) for name, each in definitions.items()}
        source = compile_to_code(
            {"properties": properties, "definitions": checks}, use_default=False, use_formats=False
        )
    except re.error as error:
        raise ValueError(str(error)) from error
    lean = ast.unparse(_Lean().visit(ast.parse(_RAISED.sub(_RAISED_HERE, source))))
    return f"{lean}\n\nKEYS = {keys!r}\n"


class _Lean(ast.NodeTransformer):
    """Leaves out what errors say beside their words and place: the schemas around it, which are most of the module."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if isinstance(node.func, ast.Name) and node.func.id == "JsonSchemaValueException":
            node.keywords = [each for each in node.keywords if each.arg == "name"]
        return node


def _asserted(schema: Schema) -> Schema:
    """What is held to: `format` as a pattern, and no hints, of which some would change the body."""
    if "multipleOf" in schema and not (schema.get("type") == "integer" and type(schema["multipleOf"]) is int):
        # A decimal of a few bytes may have a million digits.
        raise ValueError("multipleOf can be checked of integers alone")
    kept = {name: each for name, each in schema.items() if name not in (*_HINTS, "format")}
    pattern = _FORMATS.get(str(schema.get("format")))
    if pattern is None:
        return kept
    return {"allOf": [kept, {"pattern": pattern}]} if "pattern" in kept else {**kept, "pattern": pattern}
