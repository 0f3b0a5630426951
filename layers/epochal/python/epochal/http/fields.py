"""Reading what was sent: a body as a JSON document, values whose place in it is known, and query strings.

A refusal names the place: `events[2].data64: must be base64`. Nothing is coerced: `"5"`, `5.0` and `true` are not 5,
and null is not an absent field. A document is bounded in depth, its numbers exact.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.errors import InvalidInput, TooLarge
from epochal.http.operation import Request
from epochal.model.times import parse_time

MAX_TYPE_BYTES: Final = 512
MAX_ID_BYTES: Final = 512

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 10_000
"""Events of a page. Most pages of the usual 300 bytes an event reach 4 MB before."""

_DIGITS: Final = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)

MAX_DEPTH: Final = 100
"""Nested arrays and objects. Readers in other languages often stop at 64 to 512, and Python's own at some 1,000."""

_NOT_JSON: Final = "must be JSON in UTF-8, with unique names in an object and numbers of at most 4,300 digits"
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

    def items(self, most: int) -> tuple[Node, ...]:
        """The items of an array of at most `most`."""
        if not isinstance(self.value, list):
            raise InvalidInput(self.name, "must be an array")
        if len(self.value) > most:
            raise TooLarge(self.name, len(self.value), most, "items")
        return tuple(Node(value, f"{self.at}[{k}]") for k, value in enumerate(self.value))

    def text(self, most: int) -> str:
        """Text of 1 to `most` bytes of UTF-8."""
        if not isinstance(self.value, str):
            raise InvalidInput(self.name, "must be text")
        size = len(utf8(self.value, self.name))
        if size > most:
            raise TooLarge(self.name, size, most)
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


def only_one(fields: Mapping[str, Node], *names: str) -> Node | None:
    """The one of these fields that is given, or None; raises `InvalidInput` where several are."""
    given = [fields[name] for name in names if name in fields]
    if len(given) > 1:
        raise InvalidInput(given[1].name, f"may not be given together with {given[0].name}")
    return given[0] if given else None


def json_body(node: Node) -> bytes:
    """A value as it is stored: compact UTF-8, its numbers exact."""
    try:
        return json.dumps(node.value)
    except UnicodeEncodeError as error:
        raise InvalidInput(node.name, "must hold Unicode text without lone surrogates") from error


def moment(node: Node) -> str:
    """A time in ISO 8601, as it was written."""
    text = node.text(64)
    parse_time(text, node.name)
    return text


# Documents.


class UnsupportedMedia(InvalidInput):
    """A body under a media type, charset or content coding that this API does not read."""


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
        raise InvalidInput("body", _NOT_JSON) from error
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
