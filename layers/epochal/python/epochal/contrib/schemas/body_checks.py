"""Schemas of events as a Python module that checks bodies, generated when a stage is synthesised.

A function with it needs no library for schemas, and starts as fast as without. `fastjsonschema` generates it. The
formats date-time, date and uuid are checked, as readers accept them: a time may have no offset. Other formats are
hints, as JSON Schema specifies.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, Final

from epochal.contrib.schemas.class_schemas import Schema
from epochal.contrib.schemas.drafts import define, each_schema
from epochal.errors import brought_by

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
    """Return the schemas by event type in a document of `epochal schema`; raise if it has none.

    Raises:
        ValueError: the document has no schemas of types.
    """
    match document:
        case {"$defs": dict(definitions)} if definitions:
            return definitions
    raise ValueError("must be a document printed by `epochal schema`, with the schemas of types in its $defs")


def compiled_from(document: Any) -> str:
    """Generate the module that checks events, from a document that `epochal schema` has printed.

    Raises:
        ValueError: the document has no schemas of types, or a schema has a keyword that cannot be checked.
    """
    return compiled(schemas_in(document))


def compiled(schemas: Mapping[str, Schema]) -> str:
    """Generate the source of a module that checks events by the schemas of their types.

    In the module, `KEYS` has a key for each type, and `validate({key: body})` raises `Unfit`.

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
        checks = {name: each_schema(definition, _asserted) for name, definition in definitions.items()}
        source = compile_to_code(
            {"properties": properties, "definitions": checks}, use_default=False, use_formats=False
        )
    except re.error as error:
        raise ValueError(str(error)) from error
    lean = ast.unparse(_Lean().visit(ast.parse(_RAISED.sub(_RAISED_HERE, source))))
    return f"{lean}\n\nKEYS = {keys!r}\n"


class _Lean(ast.NodeTransformer):
    """A transformer of the module's syntax tree that shortens its errors to message and place.

    The schemas that errors would else contain are most of the module.
    """

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Remove every argument but the message and `name` from the call that makes an error."""
        if isinstance(node.func, ast.Name) and node.func.id == "JsonSchemaValueException":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg == "name"]
        return node


def _asserted(schema: Schema) -> Schema:
    """Return the part of a schema that is checked: `format` as a pattern, and no annotations.

    Some annotations would change the body.

    Raises:
        ValueError: `multipleOf` is used for anything but integers.
    """
    if "multipleOf" in schema and not (schema.get("type") == "integer" and type(schema["multipleOf"]) is int):
        # A decimal of a few bytes may have a million digits.
        raise ValueError("multipleOf can be checked only for integers")
    rules = {name: rule for name, rule in schema.items() if name not in (*_HINTS, "format")}
    pattern = _FORMATS.get(str(schema.get("format")))
    if pattern is None:
        return rules
    return {"allOf": [rules, {"pattern": pattern}]} if "pattern" in rules else {**rules, "pattern": pattern}
