"""How payloads hold a type and its data: as one of the libraries of event-store-adapter writes them.

This outlives the code (FORMATS §2).

    javascript     the default: JSON under its type, `{"type":...,"data":...}`
    rust           tagged by serde: in a member `type`, or {"Created": {...}}
    go             the type in a member
    java           the type in the member `type` (Jackson); Kotlin and Scala likewise
    php            the type in the member `typeName`; stored as text
    plain          no type is named: .NET, and others

In all forms but the first, the payload is the data, to the byte: its writer names the type in it, as the other library
expects. A snapshot names no type. Data that looks wrapped is refused, since it would be that of another library.

An event is written once and read for ever. So data that a reader could not read back is refused: JSON nested so deeply
that it depends on the stack of the reader, and half of a surrogate pair, which UTF-8 cannot hold. Other libraries write
both: half a pair is read all the same, and stays escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.contrib.event_store_adapter import PAYLOADS
from epochal.errors import CorruptData, InvalidInput
from epochal.lazy_dataclasses import dataclass

MAX_DEPTH: Final = 500
"""Most levels of nested lists and objects in data: half of what Python's stack allows."""

_PLAIN: Final = b',"data":'
_MARKED: Final = _PLAIN + MARK


def wrap(kind: str, data: bytes) -> bytes:
    """Make a payload, a JSON object of type and data; raise `InvalidInput` if the data may not be stored.

    Raises:
        InvalidInput: `data` is not UTF-8 JSON, or is nested too deeply.
    """
    checked(data)
    # Spliced, not parsed and written again: the user's bytes stay as they are.
    return b'{"type":' + json.dumps(kind) + b',"data":' + data + b"}"


def checked(data: bytes) -> Any:
    """Parse data that is to be stored, and return its JSON value; raise if it may not be stored.

    Raises:
        InvalidInput: a reader could not read the data back: it is not UTF-8 JSON, begins with a byte order mark, has a
            lone surrogate, or nests more than 500 lists and objects.
    """
    if data.startswith(MARK):
        raise InvalidInput("data", "must be JSON without a byte order mark")
    try:
        value = json.loads(data)
        if b"\\u" in data:
            json.dumps(value)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "data", "must be JSON without lone surrogates, which UTF-8 cannot encode"
        ) from error
    except ValueError as error:
        raise InvalidInput("data", "must be UTF-8 JSON") from error
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise InvalidInput("data", f"must not nest more than {MAX_DEPTH} lists and objects")
    return value


def unwrap(payload: bytes) -> tuple[str, bytes]:
    """Split a wrapped payload into type and data; raise `CorruptData` if it is not JSON of that form.

    The type is empty if the payload's type is not text.

    Raises:
        CorruptData: the payload is not JSON of the form {type, data}.
    """
    # Data with a byte order mark before it was accepted once, which is no JSON inside a payload. The pattern cannot
    # match inside a text: there, the quotes before the mark would be escaped.
    plain = payload.replace(_MARKED, _PLAIN, 1) if _MARKED in payload else payload
    try:
        fields = json.loads(plain)
        kind = fields["type"]
        return kind if isinstance(kind, str) else "", json.dumps_again(fields["data"])
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData("a payload is not JSON of the form {type, data}") from error


def _depth(value: Any) -> int:
    """Return how deep lists and objects are nested in a value, without recursion."""
    depth, level = 0, [value]
    while level := [part for part in level if isinstance(part, list | dict)]:
        depth += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return depth


_UNREADABLE: Final = (CorruptData, ValueError, TypeError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A format of stored events or snapshots: a function that writes their payloads, and one that reads them.

    Attributes:
        write: function from a type and its data to a payload; raises `InvalidInput` for data that the format cannot
            hold.
        read: function from a payload to its type and data, with an empty type if it names none; raises `ValueError` or
            `CorruptData` for another format.
    """

    write: Callable[[str, bytes], bytes]
    read: Callable[[bytes], tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serializer:
    """Writes and reads payloads of events and snapshots in the format of one of the libraries that share the tables.

    Attributes:
        name: name of the serializer in error messages.
        events: format of the payloads of events.
        snapshots: format of the payloads of snapshots, which are written with the type of the aggregate.
        text: whether payloads are written as text instead of bytes; either is read.
    """

    name: str
    events: Form
    snapshots: Form
    text: bool = False

    def event(self, payload: bytes) -> tuple[str, bytes]:
        """Read the type and data of an event's payload; raise `CorruptData` if it has another format.

        Args:
            payload: payload of a stored event.
        """
        return self._read(self.events, payload)

    def snapshot(self, payload: bytes) -> bytes:
        """Read the data of a snapshot's payload; raise `CorruptData` if it has another format.

        Args:
            payload: payload of a stored snapshot.
        """
        return self._read(self.snapshots, payload)[1]

    def type_of(self, payload: bytes) -> str:
        """Read the type of an event's payload; return an empty text if it has no type that can be stored.

        JSON can hold half of a surrogate pair, UTF-8 cannot.

        Args:
            payload: payload of a stored event.
        """
        try:
            kind = self.events.read(payload)[0]
            kind.encode()
        except _UNREADABLE:
            return ""
        return kind

    def _read(self, form: Form, payload: bytes) -> tuple[str, bytes]:
        """Return type and data of a payload in the given form; raise `CorruptData` if it has another form.

        Raises:
            CorruptData: the payload has another form; the message lists the serializers to choose from.
        """
        try:
            return form.read(payload)
        except _UNREADABLE as error:
            cause = str(error) or type(error).__name__
            raise CorruptData(
                f"the serializer {self.name!r} cannot read a payload: {cause}; for payloads of another library, set "
                f"`serializer` to one of {', '.join(PAYLOADS)}"
            ) from error


_WRAPPED: Final = Form(write=wrap, read=unwrap)

JAVASCRIPT: Final = Serializer(name="javascript", events=_WRAPPED, snapshots=_WRAPPED)
"""The default serializer, whose payloads are those of the JavaScript library."""


def serializer_of(given: str | Serializer, field: str = "serializer") -> Serializer:
    """Return the serializer of the given name, or the given `Serializer`; raise for other names.

    Raises:
        InvalidInput: there is no serializer of that name; the error names `field`.
    """
    if isinstance(given, Serializer):
        return given
    if given == JAVASCRIPT.name:
        return JAVASCRIPT
    if given not in PAYLOADS:
        raise InvalidInput(field, f"must be one of {', '.join(PAYLOADS)}, or a Serializer")
    return SERIALIZERS[given]


def bare(*members: str, variants: bool = False) -> Form:
    """Make a form of payload in which the payload is the data itself, which may name its type.

    Args:
        members: names of members of an object; the first that is there holds the type. Data without any of them is
            refused in writing, and accepted in reading. Without members the data names no type.
        variants: whether an object of one member, or a text alone, is of the type of that name, as serde tags by
            default.
    """

    def read(payload: bytes) -> tuple[str, bytes]:
        """Return type and data of a payload; raise `ValueError` if it is wrapped or no JSON."""
        data = payload.removeprefix(MARK)
        value = json.loads(data)
        if _looks_wrapped(value):
            raise ValueError("it has the form {type, data}")
        return _type(value), data

    def write(kind: str, data: bytes) -> bytes:
        """Return data as its own payload, once its form and the type that it names are checked.

        Raises:
            InvalidInput: the data is no JSON to be stored, looks wrapped, or does not name the type `kind`.
        """
        value = checked(data)
        if _looks_wrapped(value):
            raise InvalidInput(
                "data",
                "must not have only the members type and data: it would be taken for a wrapped payload",
            )
        type_name = _type(value)
        if (members or variants) and type_name != kind:
            says = f"names {type_name!r}" if type_name else "names none"
            raise InvalidInput(
                "data", f"must name the type {kind!r} itself ({', '.join(members)}), but {says}"
            )
        return data

    def _type(value: Any) -> str:
        """Return the type that a value names in a member or as its variant; empty if it names none."""
        fields = value if isinstance(value, dict) else {}
        values = (fields[name] for name in members if isinstance(fields.get(name), str))
        alone = ""
        if variants:
            alone = next(iter(fields)) if len(fields) == 1 else value if isinstance(value, str) else ""
        return next(values, alone)

    return Form(write=write, read=read)


def _looks_wrapped(value: Any) -> bool:
    """Whether a value is an object with the members `type` and `data` alone."""
    return (
        isinstance(value, dict) and value.keys() == {"type", "data"} and isinstance(value["type"], str | None)
    )


SERIALIZERS: Final[Mapping[str, Serializer]] = MappingProxyType(
    {
        serializer.name: serializer
        for serializer in (
            JAVASCRIPT,
            Serializer(name="rust", events=bare("type", variants=True), snapshots=bare()),
            Serializer(name="go", events=bare("TypeName", "typeName", "type_name", "type"), snapshots=bare()),
            Serializer(name="java", events=bare("type"), snapshots=bare()),
            Serializer(name="php", events=bare("typeName", "type"), snapshots=bare(), text=True),
            Serializer(name="plain", events=bare(), snapshots=bare()),
        )
    }
)
"""Serializers by the names of their libraries."""
