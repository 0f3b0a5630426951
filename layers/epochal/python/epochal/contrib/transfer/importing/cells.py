"""Conversion of the text in a table cell to a value of a JSON Schema's type. Pure.

    string       the text as it is; so are times, dates and UUIDs, which are strings in JSON
    integer      digits, with or without a sign, also `5.0`, as programs write integers in columns with blanks
    number       digits with a decimal point and an exponent, to the digit
    boolean      true false, t f, yes no, y n, 1 0, in any case
    enum, const  one of the values
    array        its JSON, and likewise for an object
    null         a blank cell

In a union with null, a blank is null, and in a union with a string, a text that a string may have is a string. Every
class that `json_codec` accepts has a schema, whichever library the class is made with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from epochal.codec import json
from epochal.contrib.schemas.class_schemas import DEFINITIONS, Schema
from epochal.deciders.mismatch import Mismatch

_TRUE: Final = frozenset(("true", "t", "yes", "y", "1"))
_FALSE: Final = frozenset(("false", "f", "no", "n", "0"))

_INTEGER: Final = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_LONGEST: Final = 4_000
"""Most digits of an integer: Python reads up to 4,300."""

LEFT_OUT: Final = object()
"""Stands for no value: of a blank cell whose field takes its default, or of a text that is not of a type."""


def value_of(text: str, schema: Schema, definitions: Mapping[str, Schema], *, optional: bool) -> Any:
    """Convert the text of a table cell to a value of a JSON Schema type; raise `Mismatch` if it has none.

    Args:
        text: text of the cell
        schema: JSON Schema of the type
        definitions: schemas that `$ref` refers to, by name
        optional: whether the field has a default, so that a blank cell gives `LEFT_OUT`

    Raises:
        Mismatch: the type has no such value.
    """
    types = list(_types(schema, definitions))
    if not text:
        return _blank(types, optional=optional)
    for choose in (_chosen, _string, _converted):
        for kind in types:
            value = choose(text, kind)
            if value is not LEFT_OUT:
                return value
    raise Mismatch(f"must be {_rule(types)}")


def _types(schema: Schema, definitions: Mapping[str, Schema]) -> Iterator[Schema]:
    """Yield the types that a schema is a union of, with references resolved."""
    if (reference := schema.get("$ref")) is not None:
        yield from _types(definitions[reference.removeprefix(DEFINITIONS)], definitions)
        return
    parts = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if parts:
        for part in parts:
            yield from _types(part, definitions)
    elif isinstance(kinds := schema.get("type"), list):
        for kind in kinds:
            yield {**schema, "type": kind}
    else:
        yield schema


def _choices(schema: Schema) -> list[Any]:
    """Return the values of an enum or constant; none for other types."""
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _blank(types: list[Schema], *, optional: bool) -> Any:
    """Return the value of a blank cell: null, `LEFT_OUT` or empty text, whichever the types allow.

    Raises:
        Mismatch: the types allow none of them.
    """
    if any(kind.get("type") == "null" for kind in types):
        return None
    if optional:
        return LEFT_OUT
    if any("" in _choices(kind) or _string("", kind) == "" for kind in types):
        return ""
    raise Mismatch(f"must be {_rule(types)}")


def _chosen(text: str, schema: Schema) -> Any:
    """Return the value of an enum or constant that a text stands for; `LEFT_OUT` if there is none."""
    for value in _choices(schema):
        as_text = value if isinstance(value, str) else json.dumps(value).decode()
        if text == as_text:
            return value
    return LEFT_OUT


def _string(text: str, schema: Schema) -> Any:
    """Return the text if the type is a string or anything; otherwise `LEFT_OUT`."""
    return text if schema.get("type", "string") == "string" and not _choices(schema) else LEFT_OUT


def _integer(text: str) -> Any:
    """Convert digits to an integer; `LEFT_OUT` if the text is none."""
    matched = _INTEGER.fullmatch(text)
    return int(matched[1]) if matched and len(text) <= _LONGEST else LEFT_OUT


def _number(text: str) -> Any:
    """Convert digits with a decimal point and exponent to a decimal; `LEFT_OUT` if the text is none."""
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else LEFT_OUT
    except ArithmeticError:  # the exponent is too large for a decimal
        return LEFT_OUT


def _boolean(text: str) -> Any:
    """Convert a word for true or false to a boolean; `LEFT_OUT` if the text is none."""
    word = text.lower()
    return word in _TRUE if word in _TRUE | _FALSE else LEFT_OUT


def _json_of(kind: type) -> Callable[[str], Any]:
    """Make a function that parses JSON text of a Python type, and returns `LEFT_OUT` for other text."""

    def parsed(text: str) -> Any:
        """Parse text as JSON of the type; return `LEFT_OUT` for other text."""
        try:
            value = json.loads(text)
        except ValueError:
            return LEFT_OUT
        return value if isinstance(value, kind) else LEFT_OUT

    return parsed


_CONVERSIONS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "integer": (_integer, "an integer"),
    "number": (_number, "a number"),
    "boolean": (_boolean, "true or false (or t, f, yes, no, y, n, 1, 0)"),
    "array": (_json_of(list), "a JSON array"),
    "object": (_json_of(dict), "a JSON object"),
}
"""For each type of JSON Schema, the function that converts a text, and the name of such texts in errors."""


def _converted(text: str, schema: Schema) -> Any:
    """Convert a text to an integer, number, boolean, array or object; `LEFT_OUT` if that is impossible."""
    convert, _ = _CONVERSIONS.get(schema.get("type", ""), (None, ""))
    return LEFT_OUT if convert is None or _choices(schema) else convert(text)


def _rule(types: list[Schema]) -> str:
    """Describe in words which texts a cell of these types may hold."""
    rules = list[str]()
    for type_ in types:
        kind = type_.get("type", "")
        if choices := _choices(type_):
            rules.append("one of " + ", ".join(map(repr, choices)))
        elif kind in _CONVERSIONS:
            rules.append(_CONVERSIONS[kind][1])
        else:
            rules.append({"null": "blank"}.get(kind, "text"))
    return " or ".join(dict.fromkeys(rules))
