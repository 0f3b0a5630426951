"""How payloads hold a type and its data: as one of event-store-adapter's libraries writes them. This outlives the code
(FORMATS §2).

    javascript     the default: JSON under its type, `{"type":...,"data":...}`
    rust           tagged by serde: in a member `type`, or {"Created": {...}}
    go             the type in a member
    java           the type in the member `type` (Jackson); Kotlin and Scala likewise
    php            the type in the member `typeName`; stored as text
    plain          no type is named: .NET's, and others'

Of all but the first, the payload is the data, to the byte: its writer names the type in it, as the other library
expects. A snapshot names no type. What looks wrapped is refused: it is another library's.

An event is written once and read for ever. So what a reader could not read back is refused: JSON nested so deeply that
it depends on the reader's stack, and half of a surrogate pair, which UTF-8 cannot hold. Other libraries write both:
half a pair is read all the same, and stays escaped.
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
"""Levels of lists and objects: half of what Python's stack allows."""

_PLAIN: Final = b',"data":'
_MARKED: Final = _PLAIN + MARK


def wrap(kind: str, data: bytes) -> bytes:
    """The payload of an event or a snapshot; raises `InvalidInput` where `data` is not UTF-8 JSON, or is too deep."""
    checked(data)
    # Spliced, not parsed and written again: the user's bytes stay as they are.
    return b'{"type":' + json.dumps(kind) + b',"data":' + data + b"}"


def checked(data: bytes) -> Any:
    """Parse data that is to be stored; raises `InvalidInput` where a reader could not read it back."""
    if data.startswith(MARK):
        raise InvalidInput("data", "must be JSON without a byte order mark before it")
    try:
        value = json.loads(data)
        if b"\\u" in data:
            json.dumps(value)
    except UnicodeEncodeError as error:
        raise InvalidInput("data", "must be JSON that UTF-8 can hold, without lone surrogates") from error
    except ValueError as error:
        raise InvalidInput("data", "must be UTF-8 JSON") from error
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise InvalidInput("data", f"must not nest more than {MAX_DEPTH} lists and objects")
    return value


def unwrap(payload: bytes) -> tuple[str, bytes]:
    """Type and data of a payload; raises `CorruptData` where it is not of that form."""
    # A mark before the data was taken once, and is no JSON there. In a text, the quotes before it would be escaped.
    plain = payload.replace(_MARKED, _PLAIN, 1) if _MARKED in payload else payload
    try:
        fields = json.loads(plain)
        kind = fields["type"]
        return kind if isinstance(kind, str) else "", json.dumps_again(fields["data"])
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData("a payload is not JSON of the form {type, data}") from error


def _depth(value: Any) -> int:
    """How deep lists and objects are nested, without a stack of calls."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


_UNREADABLE: Final = (CorruptData, ValueError, TypeError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One form of payload.

    Attributes:
        write: a payload from a type and its data; raises `InvalidInput` for data that it cannot hold.
        read: type, empty where it names none, and data; raises `ValueError` or `CorruptData` for another form.
    """

    write: Callable[[str, bytes], bytes]
    read: Callable[[bytes], tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serializer:
    """Payloads of one library.

    Attributes:
        name: by which errors call it.
        events, snapshots: the form of each. The type of a snapshot is its aggregate's.
        text: payloads are stored as text, not as bytes; either is read.
    """

    name: str
    events: Form
    snapshots: Form
    text: bool = False

    def event(self, payload: bytes) -> tuple[str, bytes]:
        """Type and data of an event; raises `CorruptData`."""
        return self._read(self.events, payload)

    def snapshot(self, payload: bytes) -> bytes:
        """Data of a snapshot; raises `CorruptData`."""
        return self._read(self.snapshots, payload)[1]

    def type_of(self, payload: bytes) -> str:
        """Type of an event; empty where it tells none that could be stored: JSON can hold half of a surrogate pair,
        UTF-8 cannot.
        """
        try:
            kind = self.events.read(payload)[0]
            kind.encode()
        except _UNREADABLE:
            return ""
        return kind

    def _read(self, form: Form, payload: bytes) -> tuple[str, bytes]:
        try:
            return form.read(payload)
        except _UNREADABLE as error:
            cause = str(error) or type(error).__name__
            raise CorruptData(
                f"a payload that the serializer {self.name!r} cannot read: {cause}; libraries write other forms, which "
                f"`serializer` chooses: {', '.join(PAYLOADS)}"
            ) from error


_WRAPPED: Final = Form(write=wrap, read=unwrap)

JAVASCRIPT: Final = Serializer(name="javascript", events=_WRAPPED, snapshots=_WRAPPED)
"""The default, and the JavaScript library's."""


def serializer_of(given: str | Serializer, field: str = "serializer") -> Serializer:
    """The serializer that a name stands for; raises `InvalidInput` of `field` for any other name."""
    if isinstance(given, Serializer):
        return given
    if given == JAVASCRIPT.name:
        return JAVASCRIPT
    if given not in PAYLOADS:
        raise InvalidInput(field, f"must be one of {', '.join(PAYLOADS)}, or a Serializer")
    return SERIALIZERS[given]


def bare(*members: str, variants: bool = False) -> Form:
    """Payloads that are the data.

    Args:
        members: of an object; the first that is there holds the type. Data without any is refused, and read
            all the same. Without members the data names no type.
        variants: an object of one member, or a text alone, is of the type of that name, as serde tags by default.
    """

    def read(payload: bytes) -> tuple[str, bytes]:
        data = payload.removeprefix(MARK)
        value = json.loads(data)
        if _looks_wrapped(value):
            raise ValueError("it is of the form {type, data}")
        return _type(value), data

    def write(kind: str, data: bytes) -> bytes:
        value = checked(data)
        if _looks_wrapped(value):
            raise InvalidInput(
                "data", "may not have the members type and data alone: it would be taken for wrapped"
            )
        found = _type(value)
        if (members or variants) and found != kind:
            says = f"says {found!r}" if found else "does not say it"
            raise InvalidInput(
                "data", f"must name the type {kind!r} itself ({', '.join(members)}), and {says}"
            )
        return data

    def _type(value: Any) -> str:
        fields = value if isinstance(value, dict) else {}
        named = (fields[name] for name in members if isinstance(fields.get(name), str))
        alone = ""
        if variants:
            alone = next(iter(fields)) if len(fields) == 1 else value if isinstance(value, str) else ""
        return next(named, alone)

    return Form(write=write, read=read)


def _looks_wrapped(value: Any) -> bool:
    return (
        isinstance(value, dict) and value.keys() == {"type", "data"} and isinstance(value["type"], str | None)
    )


SERIALIZERS: Final[Mapping[str, Serializer]] = MappingProxyType(
    {
        each.name: each
        for each in (
            JAVASCRIPT,
            Serializer(name="rust", events=bare("type", variants=True), snapshots=bare()),
            Serializer(name="go", events=bare("TypeName", "typeName", "type_name", "type"), snapshots=bare()),
            Serializer(name="java", events=bare("type"), snapshots=bare()),
            Serializer(name="php", events=bare("typeName", "type"), snapshots=bare(), text=True),
            Serializer(name="plain", events=bare(), snapshots=bare()),
        )
    }
)
"""Forms by library."""
