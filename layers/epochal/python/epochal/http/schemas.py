"""JSON schemas of what the HTTP API takes and answers: one function for each kind of value.

The bounds in a schema are the ones that are enforced: `components` and `query_strings` read a value as its schema says.
"""

from __future__ import annotations

from typing import Any, Final

from epochal.model.events import MAX_NAME_BYTES, USER_NAME

Schema = dict[str, Any]

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 10_000
"""Events of a page. Most pages of the usual 300 bytes an event reach 4 MB before."""

_DAY: Final = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?([.,]\d+)?"
_ZONE: Final = r"([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)"
MOMENT: Final = rf"{_DAY}[Tt ]{_CLOCK} ?{_ZONE}?"


def ref(name: str) -> Schema:
    """A schema of the document, by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def text(description: str, *, most: int | None = None, pattern: str | None = None, **more: Any) -> Schema:
    """Text that is not empty. `most` counts bytes of UTF-8; JSON schemas count characters, so it is an upper bound."""
    schema: Schema = {"type": "string", "description": description, "minLength": 1, **more}
    if most is not None:
        schema["maxLength"] = most
    if pattern is not None:
        schema["pattern"] = f"^{pattern}$"
    return schema


def name(description: str, example: str) -> Schema:
    """A stream's name, or a part of one, that a new stream may have (`model.events.stream_name`, `no_step`)."""
    pattern = rf"(?!\.{{1,2}}$){USER_NAME}"
    return text(description, most=MAX_NAME_BYTES, pattern=pattern, examples=[example])


def words(description: str = "") -> Schema:
    """Any text, as it is answered."""
    return {"type": "string", "description": description} if description else {"type": "string"}


def whole(description: str, least: int = 0, most: int | None = None, **more: Any) -> Schema:
    """A whole number."""
    schema: Schema = {"type": "integer", "description": description, "minimum": least, **more}
    return schema if most is None else {**schema, "maximum": most}


def base64(description: str) -> Schema:
    """Bytes in base64, with padding and without line breaks."""
    return {
        "type": "string",
        "contentEncoding": "base64",
        "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        "description": description,
    }


def moment(description: str) -> Schema:
    """A time in ISO 8601. Which days a month has is more than a pattern can say."""
    return text(description, most=64, pattern=MOMENT)


def flag(description: str) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": description}


def array(items: Schema, description: str, most: int | None = None) -> Schema:
    """A list."""
    schema: Schema = {"type": "array", "description": description, "items": items}
    return schema if most is None else {**schema, "maxItems": most}


def or_null(schema: Schema, description: str) -> Schema:
    """Something, or null."""
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"description": description, "anyOf": [inner, {"type": "null"}]}


def direction(description: str) -> Schema:
    """Which way to read."""
    return {"enum": ["forward", "backward"], "default": "forward", "description": description}


def record(
    properties: dict[str, Schema],
    *,
    required: tuple[str, ...] | None = None,
    description: str = "",
    **more: Any,
) -> Schema:
    """An object of these fields and no others; all are required unless `required` says which."""
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
        **more,
    }
    return {"description": description, **schema} if description else schema


def only_one(*names: str) -> Schema:
    """At most one of these fields."""
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    return {"not": {"anyOf": [{"required": list(pair)} for pair in pairs]}}


_UNITS: Final = {"type": "number", "minimum": 0}
CAPACITY: Final = record(
    {"read": _UNITS, "write": _UNITS}, description="DynamoDB capacity units that the request used."
)

LIMIT: Final = whole("", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
