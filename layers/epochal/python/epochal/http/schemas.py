"""JSON schemas of requests and answers of the HTTP API: one function for each kind of value.

The bounds in a schema are enforced: `components` and `query_strings` read each value by its schema.
"""

from __future__ import annotations

from typing import Any, Final

from epochal.model.stream_names import MAX_NAME_BYTES, USER_NAME

Schema = dict[str, Any]

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 10_000
"""Most events of a page. With the usual 300 bytes an event, a page ends at 4 MB before it has as many."""

_DAY: Final = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?([.,]\d+)?"
_ZONE: Final = r"([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)"
MOMENT: Final = rf"{_DAY}[Tt ]{_CLOCK} ?{_ZONE}"


def ref(name: str) -> Schema:
    """Return a reference to a named schema of the OpenAPI document."""
    return {"$ref": f"#/components/schemas/{name}"}


def text(description: str, *, most: int | None = None, pattern: str | None = None, **more: Any) -> Schema:
    """Return the schema of non-empty text.

    Args:
        most: limit in bytes of UTF-8. JSON Schema counts characters, so that the schema's limit is an upper bound.
        pattern: regular expression that the whole text must match.
        more: further JSON Schema keywords.
    """
    schema: Schema = {"type": "string", "description": description, "minLength": 1, **more}
    if most is not None:
        schema["maxLength"] = most
    if pattern is not None:
        schema["pattern"] = f"^{pattern}$"
    return schema


def name(description: str, example: str) -> Schema:
    """Return the schema of a name that a new stream, or a part of its name, may have.

    The rules are those of `model.stream_names.stream_name` and `no_step`.
    """
    pattern = rf"(?!\.{{1,2}}$){USER_NAME}"
    return text(description, most=MAX_NAME_BYTES, pattern=pattern, examples=[example])


def words(description: str = "") -> Schema:
    """Return the schema of any text, for members of answers."""
    return {"type": "string", "description": description} if description else {"type": "string"}


def whole(description: str, least: int = 0, most: int | None = None, **more: Any) -> Schema:
    """Return the schema of a whole number from `least` to `most`."""
    schema: Schema = {"type": "integer", "description": description, "minimum": least, **more}
    return schema if most is None else {**schema, "maximum": most}


def base64(description: str) -> Schema:
    """Return the schema of bytes in base64, with padding and without line breaks."""
    return {
        "type": "string",
        "contentEncoding": "base64",
        "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        "description": description,
    }


def moment(description: str) -> Schema:
    """Return the schema of a time in ISO 8601.

    The pattern does not check how many days a month has.
    """
    return text(description, most=64, pattern=MOMENT)


def flag(description: str) -> Schema:
    """Return the schema of a boolean."""
    return {"type": "boolean", "description": description}


def array(items: Schema, description: str, most: int | None = None) -> Schema:
    """Return the schema of an array with at most `most` items."""
    schema: Schema = {"type": "array", "description": description, "items": items}
    return schema if most is None else {**schema, "maxItems": most}


def or_null(schema: Schema, description: str) -> Schema:
    """Return a schema that admits null besides the values of another schema."""
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"description": description, "anyOf": [inner, {"type": "null"}]}


def direction(description: str) -> Schema:
    """Return the schema of a read direction: `forward`, the default, or `backward`."""
    return {"enum": ["forward", "backward"], "default": "forward", "description": description}


def record(
    properties: dict[str, Schema],
    *,
    required: tuple[str, ...] | None = None,
    description: str = "",
    **more: Any,
) -> Schema:
    """Return the schema of an object with these fields and no others.

    Args:
        required: names of the required fields; None for all fields.
        more: further JSON Schema keywords.
    """
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
        **more,
    }
    return {"description": description, **schema} if description else schema


def only_one(*names: str) -> Schema:
    """Return the schema of an object that has at most one of the named fields."""
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    return {"not": {"anyOf": [{"required": list(pair)} for pair in pairs]}}


_UNITS: Final = {"type": "number", "minimum": 0}
CAPACITY: Final = record(
    {"read": _UNITS, "write": _UNITS}, description="DynamoDB capacity units that the request used."
)

LIMIT: Final = whole("", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
