"""How payloads of the `journal` layout hold a type and its data: as each of event-store-adapter's libraries writes them
by default. This outlives the code: FORMATS §2.

    javascript     wrapped, {"type", "data"}, events and snapshots
    rust           the event itself, tagged by serde: in a member `type`, or {"Created": {...}}
    go             the event itself, its type in a member
    java           the event itself, its type in the member `type` (Jackson); Kotlin and Scala likewise
    php            the event itself, its type in the member `typeName`; stored as text
    plain          the event itself, which does not name its type: .NET's, and others'

What lies bare is the data, to the byte: who appends it names the type in it, as the other library expects. A snapshot
names no type, but for the wrapped one. A bare payload that looks wrapped is refused: it is another library's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from epochal.codec import json
from epochal.codec.wrapped import MARK, checked, unwrap, wrap
from epochal.errors import CorruptData, InvalidInput

_UNREADABLE: Final = (CorruptData, ValueError, ArithmeticError, RecursionError, TypeError, KeyError)


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
                f"`serializer` chooses: {', '.join(SERIALIZERS)}"
            ) from error


def bare(*members: str, variants: bool = False) -> Form:
    """Payloads that are the data.

    Args:
        members: of an object, the first of which that is there holds the type. Data without any is refused, and read
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


WRAPPED: Final = Form(write=wrap, read=unwrap)

JAVASCRIPT: Final = Serializer(name="javascript", events=WRAPPED, snapshots=WRAPPED)
"""The default, and the JavaScript library's."""

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
"""By the library that writes so."""


def serializer_of(given: str | Serializer, field: str = "serializer") -> Serializer:
    """The serializer that a name stands for; raises `InvalidInput` of `field` for any other name."""
    if isinstance(given, Serializer):
        return given
    if given not in SERIALIZERS:
        raise InvalidInput(field, f"must be one of {', '.join(SERIALIZERS)}, or a Serializer")
    return SERIALIZERS[given]
