"""What operations take and answer, each declared once: the declaration parses requests, shows answers and is the
OpenAPI document.

    Component   an object of the document, by name; `read` gives the members of one that was sent
    Shown       one that is answered: called with what is found, it gives the members
    operation   says of a function what it takes, gives and fails with, and hands it the parsed query string

A member's schema has its bounds: `QueryString` reads each parameter as its schema says. A refusal names the place:
`events[2].data64: must be base64`. Nothing is coerced: `"5"`, `5.0` and `true` are not 5, and null is not an absent
field. A document is bounded in depth, its numbers exact.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial, wraps
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeVar

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.errors import InvalidInput, TooLarge
from epochal.http.operation import Request, Response
from epochal.http.problems import Kind, UnsupportedMedia
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import MAX_ID_BYTES, MAX_NAME_BYTES, USER_NAME, parse_time
from epochal.model.versions import ANY, MAX_VERSION, NO_STREAM, STREAM_EXISTS, AtVersion, Expected, Token
from epochal.plan.values import Units
from epochal.settings import KEY_WINDOW_SECONDS
from epochal.store.driver import Driver, Meter

if TYPE_CHECKING:
    from epochal.store.streams import Streams

Schema = dict[str, Any]
Parameter = dict[str, Any]
R = TypeVar("R")

Read = Callable[["Node"], Any]
"""Reads a value that was sent; raises `InvalidInput` naming the place of what breaks a rule."""

_BY_SCHEMA: Final[Mapping[str, Read]] = MappingProxyType({})

Perform = Callable[[Any, Request], Response]
"""What performs an operation: on what `opened` of its module made, and a request."""

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 10_000
"""Events of a page. Most pages of the usual 300 bytes an event reach 4 MB before."""

_DAY: Final = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?([.,]\d+)?"
_ZONE: Final = r"([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)"
MOMENT: Final = rf"{_DAY}[Tt ]{_CLOCK} ?{_ZONE}?"
_ETAG: Final = r'(W/)?"[!#-~]*"'


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


Members = Mapping[str, "Schema | tuple[Schema, str]"]


class Component:
    """A schema of the document; without a name it is only part of others."""

    def __init__(
        self,
        name: str,
        schema: Schema,
        *,
        reads: Mapping[str, Read] = _BY_SCHEMA,
        one_of: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        """Declare it.

        Args:
            name: in the document.
            schema: of an object.
            reads: what reads members of which their schemas do not say all; of an array, each of its items.
            one_of: names of members of which at most one may be sent.
        """
        self.name, self.special, self._one_of = name, reads, one_of
        self.schema = {**schema, "allOf": [only_one(*each) for each in one_of]} if one_of else schema

    @property
    def names(self) -> Mapping[str, Schema]:
        """The members that it may have."""
        found: Mapping[str, Schema] = self.schema["properties"]
        return found

    @cached_property
    def _reads(self) -> dict[str, Read]:
        return {name: _read(schema, self.special.get(name)) for name, schema in self.names.items()}

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        return {name: each["default"] for name, each in self.names.items() if "default" in each}

    def read(self, node: Node) -> dict[str, Any]:
        """The members that are sent, or have a default, by their names; raises `InvalidInput` naming the one that
        breaks a rule.
        """
        reads = self._reads
        fields = node.members(reads)
        for name in self.schema["required"]:
            if name not in fields:
                raise InvalidInput(node.below(name), "is required")
        for names in self._one_of:
            if len(fields.keys() & names) > 1:
                first, second, *_ = (fields[name].name for name in names if name in fields)
                raise InvalidInput(second, f"may not be given together with {first}")
        found = {name: reads[name](each) for name, each in fields.items()}
        return {**self._defaults, **found} if self._defaults else found


def _read(schema: Schema, special: Read | None) -> Read:
    """What reads a value as its schema says; what has none of these kinds is left to who asks."""
    match schema:
        case {"type": "array", "items": items, "maxItems": most}:
            each, least = _read(items, special), schema.get("minItems", 0)
            return lambda node: tuple(map(each, node.items(most, least)))
        case _ if special is not None:
            return special
        case {"enum": choices}:
            return partial(Node.choice, choices=choices)
        case {"type": "integer", "minimum": least, "maximum": most}:
            return partial(Node.whole, least=least, most=most)
        case {"type": "boolean"}:
            return Node.flag
        case {"contentEncoding": "base64"}:
            return Node.base64
        case {"maxLength": most}:
            return lambda node: node.text(most)
        case _:
            return lambda node: node


class Shown(Component):
    """An object that is answered. A member is a schema, whose value is given with each call, or a schema and the name
    of the attribute that has the value; `optional` members may be missing.
    """

    def __init__(self, name: str, members: Members, *, optional: tuple[str, ...] = (), **more: Any) -> None:
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
    pattern=rf"(\*|{_ETAG}( *, *{_ETAG})*)",
)
IDEMPOTENCY_KEY: Final = header(
    "Idempotency-Key",
    "Repeats of the request with the same key and content are answered like the first for "
    f"{KEY_WINDOW_SECONDS // 3600} hours, whatever they expect.",
    most=255,
    pattern=r"[\x21-\x7e]{1,255}",
)
NO_CACHE: Final = {"Cache-Control": text("`no-cache`: to be kept, but asked about each time.")}


# What is sent, read: a body as a JSON document, values whose place in it is known, and query strings.

_DIGITS: Final = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)

MAX_DEPTH: Final = 100
"""Nested arrays and objects. Readers in other languages often stop at 64 to 512, and Python's own at some 1,000."""

_TOO_DEEP: Final = f"may nest at most {MAX_DEPTH} levels"


class UnknownName(InvalidInput):
    """A name of the caller's making where there is no such field or parameter.

    Attributes:
        place: where it stood, which can be logged: the name itself may identify someone.
    """

    def __init__(self, place: str, name: str, rule: str) -> None:
        super().__init__(name, rule)
        self.place = place


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON value and where it stood; `at` is empty for a document's root."""

    value: Any
    at: str = ""

    @property
    def name(self) -> str:
        """The place as an error names it."""
        return self.at or "body"

    def members(self, known: Collection[str]) -> dict[str, Node]:
        """An object's fields; one that is not `known` is refused by name."""
        if not isinstance(self.value, dict):
            raise InvalidInput(self.name, "must be an object")
        unknown = next((name for name in self.value if name not in known), None)
        if unknown is not None:
            rule = f"is not known here; known are {', '.join(known)}"
            raise UnknownName(self.name, self.below(printable(unknown)), rule)
        return {name: Node(value, self.below(name)) for name, value in self.value.items()}

    def items(self, most: int, least: int = 0) -> tuple[Node, ...]:
        """The items of an array of `least` to `most`."""
        if not isinstance(self.value, list):
            raise InvalidInput(self.name, "must be an array")
        if len(self.value) > most:
            raise TooLarge(self.name, len(self.value), most, "items")
        if len(self.value) < least:
            raise InvalidInput(self.name, "must not be empty")
        return tuple(Node(value, f"{self.at}[{k}]") for k, value in enumerate(self.value))

    def text(self, most: int) -> str:
        """Text of 1 to `most` bytes of UTF-8."""
        if not isinstance(self.value, str):
            raise InvalidInput(self.name, "must be text")
        size = len(utf8(self.value, self.name))
        if size > most:
            raise InvalidInput(self.name, f"must be at most {most:,} bytes")
        if not size:
            raise InvalidInput(self.name, "must not be empty")
        return self.value

    def whole(self, least: int, most: int) -> int:
        """A whole number from `least` to `most`."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise InvalidInput(self.name, "must be a whole number")
        if not least <= self.value <= most:
            raise InvalidInput(self.name, f"must be from {least:,} to {most:,}")
        return self.value

    def choice(self, choices: Sequence[str]) -> str:
        """One of these words."""
        if self.value not in choices:
            raise InvalidInput(self.name, f"must be {' or '.join(choices)}")
        return str(self.value)

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise InvalidInput(self.name, "must be true or false")
        return self.value

    def base64(self) -> bytes:
        """Bytes written in base64 with padding, without line breaks."""
        if not isinstance(self.value, str):
            raise InvalidInput(self.name, "must be base64 text")
        try:
            return binascii.a2b_base64(self.value.encode("ascii"), strict_mode=True)
        except ValueError as error:
            raise InvalidInput(self.name, "must be base64 with padding and without line breaks") from error

    def below(self, name: str) -> str:
        """The place of a member of an object, whether it is there or not."""
        return f"{self.at}.{name}" if self.at else name


def utf8(text: str, at: str) -> bytes:
    """Text as UTF-8, or `InvalidInput` where it holds half of a surrogate pair, which UTF-8 cannot say."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(at, "must be Unicode text without lone surrogates") from error


def printable(text: str) -> str:
    """A name that a caller sent, short and in a form that any answer or log can hold."""
    return text[:64].encode("utf-8", "backslashreplace").decode() or "(empty)"


def required(node: Node, fields: Mapping[str, Node], name: str) -> Node:
    """A field that must be there."""
    if name not in fields:
        raise InvalidInput(node.below(name), "is required")
    return fields[name]


def optional_id(fields: Mapping[str, Node], name: str) -> str | None:
    """An id of the caller's, where it is given."""
    return fields[name].text(MAX_ID_BYTES) if name in fields else None


def json_body(node: Node) -> bytes:
    """A value as it is stored: compact UTF-8, its numbers exact."""
    try:
        return json.dumps(node.value)
    except UnicodeEncodeError as error:
        raise InvalidInput(node.name, "must hold Unicode text without lone surrogates") from error


def time_of(node: Node) -> str:
    """A time in ISO 8601, as it was written."""
    text = node.text(64)
    parse_time(text, node.name)
    return text


# Documents.


def document(request: Request) -> Node:
    """The body as JSON. A missing Content-Type is taken for JSON.

    Raises:
        UnsupportedMedia: the headers say that it is something else.
        InvalidInput: it is empty, not JSON, not UTF-8, or nested too deep.
    """
    _check_media(request)
    if not request.body:
        raise InvalidInput("body", "must not be empty")
    if request.body.startswith(MARK):
        raise InvalidInput("body", "must be JSON without a byte order mark before it")
    try:
        value = json.loads(request.body)
    except json.TooDeep as error:
        raise InvalidInput("body", _TOO_DEEP) from error
    except ValueError as error:
        raise InvalidInput("body", f"must be JSON in UTF-8: {str(error).partition('; ')[0]}") from error
    if nests_too_deep(request.body, value):
        raise InvalidInput("body", _TOO_DEEP)
    return Node(value)


def no_document(request: Request) -> None:
    """Refuse a body where none has a meaning."""
    if request.body:
        raise InvalidInput("body", "must be empty")


def _check_media(request: Request) -> None:
    media, _, parameter = (request.header("Content-Type") or "application/json").lower().partition(";")
    kind = media.strip()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedMedia("Content-Type", "must be application/json")
    if parameter.replace(" ", "").replace('"', "") not in ("", "charset=utf-8"):
        raise UnsupportedMedia("Content-Type", "must be application/json, in UTF-8")
    if (request.header("Content-Encoding") or "identity").lower() != "identity":
        raise UnsupportedMedia("Content-Encoding", "must be identity: bodies are not decompressed")


def nests_too_deep(text: bytes, value: Any) -> bool:
    """Whether the value of a JSON text has more levels than `MAX_DEPTH`."""
    # Fewer brackets than levels allowed is the usual case, and cheap to see.
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    # Level by level, since a function that called itself would end where Python's stack does.
    level = _children([value])
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: dict[str, Any] | list[Any]) -> list[Any]:
    """The arrays and objects directly inside one."""
    inside = value.values() if isinstance(value, dict) else value
    return [child for child in inside if isinstance(child, dict | list)]


# Query strings.


class QueryString:
    """The parameters of a request's query string, each known, given once and read as its schema says; one that is an
    array may be given any number of times.
    """

    def __init__(self, request: Request, declared: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse what is not `declared`."""
        self._declared = declared
        self._values: dict[str, list[str]] = {}
        for name, value in request.query:
            if name not in declared:
                raise UnknownName("query", printable(name), _unknown(declared))
            self._values.setdefault(name, []).append(value)
            if len(self._values[name]) > 1 and not _is_list(declared[name]):
                raise InvalidInput(name, "may be given only once")

    def text(self, name: str) -> str | None:
        """A parameter's value; None where it is absent."""
        values = self._values.get(name)
        return None if values is None else values[0]

    def texts(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be given more than once."""
        return tuple(self._values.get(name, ()))

    def whole(self, name: str) -> int | None:
        """A whole number in plain digits, within its bounds; None where it is absent."""
        value, schema = self.text(name), self._declared[name]
        if value is None:
            return None
        least, most = schema["minimum"], schema["maximum"]
        if not _DIGITS.fullmatch(value) or not least <= int(value) <= most:
            raise InvalidInput(name, f"must be a whole number from {least:,} to {most:,}")
        return int(value)

    def limit(self) -> int:
        """Items of a page."""
        found, default = self.whole("limit"), self._declared["limit"]["default"]
        return int(default) if found is None else found

    def choice(self, name: str) -> str:
        """One of its choices; the first where it is absent."""
        return self._one_of(name, tuple(self._declared[name]["enum"]))

    def flag(self, name: str) -> bool:
        """`true` or `false`; false where it is absent."""
        return self._one_of(name, ("false", "true")) == "true"

    def _one_of(self, name: str, choices: tuple[str, ...]) -> str:
        value = self.text(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise InvalidInput(name, f"must be {' or '.join(choices)}")
        return value


def _unknown(declared: Mapping[str, Mapping[str, Any]]) -> str:
    if not declared:
        return "is not known here: this operation takes no query parameters"
    # Those that may come more than once are named last.
    return f"is not known here; known are {', '.join(sorted(declared, key=lambda name: _is_list(declared[name])))}"


def _is_list(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array"


# What a writer expects of a stream, and which state a reader already has (RFC 9110, sections 8.8.3 and 13.1).
#
# An ETag is a token between quotes: it names the exact state of a stream, unfolds included, so it is a strong
# validator. A writer names its expectation in one place: `If-Match`, `If-None-Match: *`, or `expected` in the body.

Named = TypeVar("Named")
"""What an ETag names: an exact state."""

EXPECTATIONS: Final = tuple(sorted(member.value for member in Expected))

_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS: Final = re.compile(rf"[\s,]*{_TAG}(?:[ \t]*,[\s,]*{_TAG})*[\s,]*", re.ASCII)
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_EACH: Final = re.compile(r'"([^"]*)"')


def etag(token: Token) -> str:
    """The ETag of the state that a token names."""
    return f'"{token.text()}"'


def precondition(
    request: Request, in_body: Expected | AtVersion | None, parse: Callable[[str, str], Named | AtVersion]
) -> tuple[Expected | AtVersion | Named, bool]:
    """The writer's expectation, wherever it is given, `ANY` where it is not; and whether it was in a header, where its
    failure is 412; in the body it is 409.

    Args:
        parse: reads an ETag without its quotes; raises `InvalidInput` naming the header, which is its second argument.
    """
    headers = {name: request.header(name) for name in ("If-Match", "If-None-Match")}
    given = {name: each for name, each in (*headers.items(), ("expected", in_body)) if each is not None}
    if len(given) > 1:
        first, *_, last = given
        raise InvalidInput(last, f"may not be given together with {first}")
    if headers["If-None-Match"] not in (None, "*"):
        raise InvalidInput("If-None-Match", "must be * when writing: the stream must not exist")
    match headers["If-Match"]:
        case None if in_body is not None:
            return in_body, False
        case None:
            return (NO_STREAM, True) if given else (ANY, False)
        case "*":
            return STREAM_EXISTS, True
        case value if match := _EACH.fullmatch(value):
            return parse(match[1], "If-Match"), True
        case _:
            raise InvalidInput("If-Match", "must be * or one strong ETag in double quotes")


def unchanged(request: Request, token: Token) -> bool:
    """Whether `If-None-Match` names the state that `token` does."""
    named = _named(request)
    return named == "*" or token.bare in {_bare(each) for each in named}


def is_named(request: Request, tag: str) -> bool:
    """Whether `If-None-Match` names the ETag `tag`, given without quotes (weak comparison, as RFC 9110 asks)."""
    named = _named(request)
    return named == "*" or tag in named


def _named(request: Request) -> list[str] | Literal["*"]:
    """The ETags of `If-None-Match`, without quotes."""
    value = request.header("If-None-Match")
    if value is None:
        return []
    if value == "*":
        return "*"
    if not _TAGS.fullmatch(value):
        raise InvalidInput("If-None-Match", "must be * or a list of ETags in double quotes")
    return _EACH.findall(value)


def _bare(tag: str) -> str:
    """What names the state: a seal says who made the ETag, and a low-water mark may lag."""
    return ".".join(tag.split(".")[:7])


def expectation_of(node: Node) -> Expected | AtVersion:
    """An expectation in a body: a version, or a word."""
    if isinstance(node.value, str) and node.value in EXPECTATIONS:
        return Expected(node.value)
    if not isinstance(node.value, int) or isinstance(node.value, bool):
        raise InvalidInput(node.name, f"must be a version or one of {', '.join(EXPECTATIONS)}")
    return AtVersion(version=node.whole(0, MAX_VERSION))


def idempotency_key(request: Request) -> str | None:
    """The request's idempotency key, if it has one."""
    key = request.header("Idempotency-Key")
    return None if key is None else checked_key(key, "Idempotency-Key")


def checked_key(key: object, field: str) -> str:
    """An idempotency key. Raises `InvalidInput` where it is none."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidInput(field, "must be 1 to 255 visible ASCII characters")
    return key


# What an operation declares.


PARAGRAPH: Final = "\n\n"
"""Between the summary of an operation and its description, in its docstring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class operation:  # noqa: N801  a decorator, named as it reads
    """What a function takes and answers, as its `described`. Its request has no body, unless it `takes` one, and no
    other query parameters than these, which it gets. Its docstring is what the document says of it: a summary, and a
    description.

    Attributes:
        takes, gives: the request's and the answer's body.
        headers: of the answer.
        fails: kinds of problem besides those of every operation.
    """

    gives: Component
    takes: Component | None = None
    status: int = 200
    parameters: tuple[Parameter, ...] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    not_modified: bool = False
    fails: tuple[Kind, ...] = ()

    def __call__(
        self, perform: Callable[[R, Request, QueryString], Response]
    ) -> Callable[[R, Request], Response]:
        """The function that is served."""
        declared = {each["name"]: each["schema"] for each in self.parameters if each["in"] == "query"}

        @wraps(perform)
        def performed(opened: R, request: Request) -> Response:
            if self.takes is None:
                no_document(request)
            return perform(opened, request, QueryString(request, declared))

        vars(performed)["described"] = self
        return performed


def described(
    perform: Callable[[R, Request], Response], description: str
) -> Callable[[R, Request], Response]:
    """The same operation on another store, of which there is something else to say."""

    @wraps(perform)
    def performed(opened: R, request: Request) -> Response:
        return perform(opened, request)

    performed.__doc__ = f"{(perform.__doc__ or '').partition(PARAGRAPH)[0]}{PARAGRAPH}{description}"
    return performed


# How operations run on a store: each request is measured, and bounded by its time.


class MeteredStore(Protocol):
    """A dataclass whose requests all go through its driver, as every store is."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def driver(self) -> Driver:
        """What runs its requests."""


S = TypeVar("S", bound=MeteredStore)


def measured(store: S, request: Request) -> tuple[S, Meter]:
    """The store for one request."""
    driver, meter = driver_for(request, store.driver)
    return replace(store, driver=driver), meter


def streams_for(streams: Streams, request: Request) -> tuple[Streams, Meter]:
    """`measured`, of streams, whose archive is asked within the same request."""
    driver, meter = driver_for(request, streams.driver)
    return streams.on(driver), meter


def driver_for(request: Request, driver: Driver) -> tuple[Driver, Meter]:
    """The driver for one request: bounded by its time, its cost counted apart from others'."""
    meter = Meter()
    return replace(driver, meter=meter, deadline=driver.clock() + request.seconds), meter


def answer(
    meter: Meter,
    view: Any,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    figures: Mapping[str, float] | None = None,
) -> Response:
    """A JSON value as an answer; what it cost joins its figures."""
    figures = {**(figures or {}), **consumed(meter.units)}
    return Response(status=status, body=text_of(view), headers=headers or {}, figures=figures)


def appends(events: Sequence[object], *, replayed: bool) -> dict[str, float]:
    """Figures of an append of these events; none where an earlier request has made it."""
    return {} if replayed else {"Appends": 1.0, "Events": float(len(events))}


def consumed(units: Units) -> dict[str, float]:
    """What a request cost, as figures for its metrics."""
    return {"ReadUnits": units.read, "WriteUnits": units.write}


def text_of(value: Any) -> str:
    """A value as JSON text."""
    return json.dumps(value).decode()


def capacity(units: Units) -> dict[str, float]:
    """What a request cost, as an answer tells it."""
    return {"read": units.read, "write": units.write}
