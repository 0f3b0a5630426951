"""What operations take and answer, each declared once: the declaration parses requests, shows answers and is the
OpenAPI document.

    Component   an object of the document, by name; `names` are the members that a request may send
    Shown       one that is answered: called with what is found, it gives the members
    operation   says of a function what it takes, gives and fails with, and hands it the parsed query string

A member's schema has its bounds: `QueryString` reads each parameter as its schema says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from operator import attrgetter
from typing import Any, Final, TypeVar

from epochal.http import problems
from epochal.http.fields import DEFAULT_LIMIT, MAX_LIMIT, QueryString, no_document
from epochal.http.operation import Request, Response
from epochal.http.problems import Kind
from epochal.model.names import MAX_NAME_BYTES, USER_NAME
from epochal.settings import KEY_WINDOW_SECONDS, RESPONSE_BYTES

Schema = dict[str, Any]
Parameter = dict[str, Any]
R = TypeVar("R")

Perform = Callable[[Any, Request], Response]
"""What performs an operation: on what `opened` of its module made, and a request."""

MEGABYTES: Final = RESPONSE_BYTES // 1024**2

_DAY: Final = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?([.,]\d+)?"
_ZONE: Final = r"([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)"
_MOMENT: Final = rf"{_DAY}[Tt ]{_CLOCK} ?{_ZONE}?"
_TAG: Final = r'(W/)?"[!#-~]*"'


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
    """A stream's name, or a part of one, that a new stream may have (`model.names.stream_name`, `no_step`)."""
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
    return text(description, most=64, pattern=_MOMENT)


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


Members = Mapping[str, "Schema | tuple[Schema, str]"]


class Component:
    """A schema of the document; without a name it is only part of others."""

    def __init__(self, name: str, schema: Schema) -> None:
        self.name, self.schema = name, schema

    @property
    def names(self) -> Mapping[str, Schema]:
        """The members that it may have."""
        found: Mapping[str, Schema] = self.schema["properties"]
        return found


class Shown(Component):
    """An object that is answered. A member is a schema, whose value is given with each call, or a schema and the name
    of the attribute that has the value; `optional` members may be missing.
    """

    def __init__(
        self,
        name: str,
        members: Members,
        *,
        optional: tuple[str, ...] = (),
        **more: Any,
    ) -> None:
        schemas = {each: value[0] if isinstance(value, tuple) else value for each, value in members.items()}
        required = tuple(each for each in schemas if each not in optional)
        super().__init__(name, record(schemas, required=required, **more))
        self._members = [
            (each, attrgetter(value[1]) if isinstance(value, tuple) else None)
            for each, value in members.items()
        ]

    def __call__(self, found: object = None, /, **given: Any) -> dict[str, Any]:
        """The object that shows what is found."""
        return {
            name: given[name] if get is None else get(found)
            for name, get in self._members
            if get is not None or name in given
        }


def parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> Parameter:
    """A parameter of a path, a query or the headers."""
    description = schema["description"]
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": where, "required": required, "description": description, "schema": inner}


def path(name: str, schema: Schema) -> Parameter:
    """A parameter of the path."""
    return parameter("path", name, schema, required=True)


def query(name: str, schema: Schema) -> Parameter:
    """A parameter of the query string; an array may be given more than once."""
    return parameter("query", name, schema)


def header(name: str, description: str, **more: Any) -> Parameter:
    """A header of the request."""
    return parameter("header", name, text(description, **more))


KNOWN_STATES: Final = header(
    "If-None-Match",
    "ETags that the caller has a state of already, or `*`.",
    pattern=rf"(\*|{_TAG}( *, *{_TAG})*)",
)
IDEMPOTENCY_KEY: Final = header(
    "Idempotency-Key",
    "Repeats of the request with the same key and content are answered like the first for "
    f"{KEY_WINDOW_SECONDS // 3600} hours, whatever they expect.",
    most=255,
    pattern=r"[\x21-\x7e]{1,255}",
)
NO_CACHE: Final = {"Cache-Control": text("`no-cache`: to be kept, but asked about each time.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What an operation takes and answers.

    Attributes:
        takes, gives: names of the schemas of the request's and the answer's body.
        headers: of the answer.
        fails: kinds of problem besides those of every operation.
    """

    summary: str
    description: str
    gives: str
    takes: str | None = None
    status: int = 200
    parameters: tuple[Parameter, ...] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    not_modified: bool = False
    fails: tuple[Kind, ...] = ()


TAKES_JSON: Final = (problems.TOO_LARGE, problems.UNSUPPORTED_MEDIA)


def operation(
    summary: str,
    description: str,
    *,
    gives: Component,
    takes: Component | None = None,
    status: int = 200,
    parameters: tuple[Parameter, ...] = (),
    headers: Mapping[str, Schema] | None = None,
    not_modified: bool = False,
    fails: tuple[Kind, ...] = (),
) -> Callable[[Callable[[R, Request, QueryString], Response]], Callable[[R, Request], Response]]:
    """Declares what a function takes and answers, as its `described`. Its request has no body, unless it `takes` one,
    and no other query parameters than these, which it gets.
    """
    declared = {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}

    def describe(perform: Callable[[R, Request, QueryString], Response]) -> Callable[[R, Request], Response]:
        @wraps(perform)
        def performed(opened: R, request: Request) -> Response:
            if takes is None:
                no_document(request)
            return perform(opened, request, QueryString(request, declared))

        described = Description(
            summary=summary,
            description=description,
            gives=gives.name,
            takes=None if takes is None else takes.name,
            status=status,
            parameters=parameters,
            headers=headers or {},
            not_modified=not_modified,
            fails=fails if takes is None else (*TAKES_JSON, *fails),
        )
        vars(performed)["described"] = described
        return performed

    return describe
