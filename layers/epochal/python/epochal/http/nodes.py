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
from epochal.model.events import MAX_ID_BYTES
from epochal.model.moments import read_moment


class UnknownName(InvalidInput):
    """A request names a field or parameter that does not exist.

    Attributes:
        place: place of the name in the request, which can be logged: the name itself may identify a person.
    """

    def __init__(self, place: str, name: str, rule: str) -> None:
        super().__init__(name, rule)
        self.place = place


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON value that was sent, and its place in the document.

    Attributes:
        at: place of the value, such as `events[2].data`; empty for the document's root.
    """

    value: Any
    at: str = ""

    @property
    def name(self) -> str:
        """Place of the value as an error message names it."""
        return self.at or "body"

    def members(self, names: Collection[str]) -> dict[str, Node]:
        """Return an object's fields as nodes, by name; raise unless it is an object with fields in `names`.

        Raises:
            InvalidInput: the value is no object.
            UnknownName: a field is not among `names`.
        """
        if not isinstance(self.value, dict):
            raise InvalidInput(self.name, "must be an object")
        unknown = next((name for name in self.value if name not in names), None)
        if unknown is not None:
            rule = f"is not a known field; known fields are {', '.join(names)}"
            raise UnknownName(self.name, self.below(printable(unknown)), rule)
        return {name: Node(value, self.below(name)) for name, value in self.value.items()}

    def items(self, most: int, least: int = 0) -> tuple[Node, ...]:
        """Return an array's items as nodes; raise if it is no array, or has too few or too many items.

        Raises:
            InvalidInput: the value is no array, or has fewer than `least` items.
            TooLarge: it has more than `most` items.
        """
        if not isinstance(self.value, list):
            raise InvalidInput(self.name, "must be an array")
        if len(self.value) > most:
            raise TooLarge(self.name, len(self.value), most, "items")
        if len(self.value) < least:
            raise InvalidInput(self.name, "must not be empty")
        return tuple(Node(value, f"{self.at}[{k}]") for k, value in enumerate(self.value))

    def text(self, most: int) -> str:
        """Return the value as text of 1 to `most` bytes of UTF-8, or raise `InvalidInput`.

        Raises:
            InvalidInput: it is anything else.
        """
        if not isinstance(self.value, str):
            raise InvalidInput(self.name, "must be text")
        size = len(utf8(self.value, self.name))
        if size > most:
            raise InvalidInput(self.name, f"must be at most {most:,} bytes")
        if not size:
            raise InvalidInput(self.name, "must not be empty")
        return self.value

    def whole(self, least: int, most: int) -> int:
        """Return the value as a whole number from `least` to `most`, or raise `InvalidInput`.

        Raises:
            InvalidInput: it is anything else.
        """
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise InvalidInput(self.name, "must be a whole number")
        if not least <= self.value <= most:
            raise InvalidInput(self.name, f"must be from {least:,} to {most:,}")
        return self.value

    def choice(self, choices: Sequence[str]) -> str:
        """Return the value as one of the words in `choices`, or raise `InvalidInput`."""
        if self.value not in choices:
            raise InvalidInput(self.name, f"must be {' or '.join(choices)}")
        return str(self.value)

    def flag(self) -> bool:
        """Return the value as a boolean, or raise `InvalidInput`."""
        if not isinstance(self.value, bool):
            raise InvalidInput(self.name, "must be true or false")
        return self.value

    def base64(self) -> bytes:
        """Return the bytes of a base64 text, padded and without line breaks, or raise `InvalidInput`.

        Raises:
            InvalidInput: the value is anything else.
        """
        if not isinstance(self.value, str):
            raise InvalidInput(self.name, "must be base64 text")
        try:
            return binascii.a2b_base64(self.value.encode("ascii"), strict_mode=True)
        except ValueError as error:
            raise InvalidInput(self.name, "must be base64 with padding and without line breaks") from error

    def below(self, name: str) -> str:
        """Return the place of a member of an object, which need not exist."""
        return f"{self.at}.{name}" if self.at else name


def utf8(text: str, field: str) -> bytes:
    """Return text encoded as UTF-8; raise `InvalidInput` if it has a lone surrogate.

    Args:
        field: place of the text, for the error.

    Raises:
        InvalidInput: the text holds half of a surrogate pair, which UTF-8 cannot encode.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(field, "must be Unicode text without lone surrogates") from error


def printable(text: str) -> str:
    """Shorten and escape a name that a caller sent, so that every answer and log can hold it."""
    return text[:64].encode("utf-8", "backslashreplace").decode() or "(empty)"


def required(node: Node, fields: Mapping[str, Node], name: str) -> Node:
    """Return the field `name` of an object; raise `InvalidInput` if it is missing.

    Args:
        node: the object.
        fields: its fields, as `Node.members` returns them.

    Raises:
        InvalidInput: the field is missing.
    """
    if name not in fields:
        raise InvalidInput(node.below(name), "is required")
    return fields[name]


def optional_id(fields: Mapping[str, Node], name: str) -> str | None:
    """Return an optional id field as text; None where the field is missing."""
    return fields[name].text(MAX_ID_BYTES) if name in fields else None


def json_body(node: Node) -> bytes:
    """Return a value as it is to be stored: compact JSON in UTF-8, with its numbers exact.

    Raises:
        InvalidInput: the value holds half of a surrogate pair.
    """
    try:
        return json.dumps(node.value)
    except UnicodeEncodeError as error:
        raise InvalidInput(node.name, "must hold Unicode text without lone surrogates") from error


def time_of(node: Node) -> str:
    """Return the ISO 8601 time in a node, as it was written; raise `InvalidInput` for anything else.

    Raises:
        InvalidInput: the value is no such time.
    """
    text = node.text(64)
    read_moment(text, node.name)
    return text
