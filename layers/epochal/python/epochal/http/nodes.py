"""JSON values that were sent, each with its place in the document.

A refusal names the place: `events[2].data64: must be base64`. Nothing is coerced: `"5"`, `5.0` and `true` are not 5,
and null is not an absent field.
"""

from __future__ import annotations

import binascii
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from epochal.codec import json
from epochal.errors import InvalidInput, TooLarge
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import MAX_ID_BYTES, parse_time


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
