"""Payloads of the `journal` layout that are the event or the snapshot itself, as all of event-store-adapter's libraries
but one write them by default. This outlives the code: FORMATS §2.

    rust           tagged by serde: in a member `type`, or {"Created": {...}}
    go             the type in a member
    java           the type in the member `type` (Jackson); Kotlin and Scala likewise
    php            the type in the member `typeName`; stored as text
    plain          no type is named: .NET's, and others'

The payload is the data, to the byte: its writer names the type in it, as the other library expects. A snapshot
names no type. What looks wrapped is refused: it is another library's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.codec.payloads import JAVASCRIPT, Form, Serializer
from epochal.codec.wrapped import checked
from epochal.errors import InvalidInput


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
