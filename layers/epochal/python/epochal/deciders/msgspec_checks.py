"""Refuses classes of msgspec whose values could not be read back as they were written.

The class is checked when a codec is built from it. What depends on values, such as members of subclasses, is checked
when a value is written (`round_trips`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from epochal.model.body_marks import VERSION


def check_struct(kind: Any, *, event: bool) -> None:
    """Raise `TypeError` unless a msgspec class, with those in its fields, can be read back as written.

    An `event` is checked by the rules of events, too.

    Raises:
        TypeError: it is no object in JSON, or has a field that could not be read as it is written.
    """
    if kind.__struct_config__.array_like:
        raise TypeError(f"{kind.__name__} is written as an array, but an event must be an object")
    if event and kind.__struct_config__.tag_field == VERSION:
        raise TypeError(f"{kind.__name__} has the tag field {VERSION}, reserved for the event's version")
    for owner, field in _fields(inspect.type_info(kind)):
        where = f"{owner.__name__}.{field.name}"
        if event and owner is kind and field.encode_name == VERSION:
            raise TypeError(f"{where} is written as {VERSION}, which is reserved for the event's version")
        for part in _parts(field.type):
            if isinstance(part, inspect.CustomType | inspect.RawType | inspect.ExtType):
                type_name = getattr(part, "cls", type(part).__name__.removesuffix("Type"))
                raise TypeError(f"{where}: {type_name!r} has no form in JSON")
            if event and isinstance(part, inspect.DateTimeType) and part.tz is False:
                raise TypeError(f"{where} accepts only times without a zone, but an event's need one")


def _fields(root: Any) -> Iterator[tuple[type, inspect.Field]]:
    """Yield the fields of a class and of the classes in its fields, each with its class, each class once."""
    seen, infos = set[Any](), [root]
    while infos:
        info = infos.pop()
        fields = getattr(info, "fields", None)
        if fields is None:
            infos += _inner(info)
        elif info.cls not in seen:
            seen.add(info.cls)
            for field in fields:
                yield info.cls, field
                infos.append(field.type)


def _parts(info: Any) -> Iterator[Any]:
    """Iterate over the types in a field's type, down to those in the fields of other classes."""
    yield info
    if not hasattr(info, "fields"):
        for part in _inner(info):
            yield from _parts(part)


def _inner(info: msgspec.Struct) -> list[Any]:
    """List the types directly inside a type."""
    parts: list[Any] = []
    for name in info.__struct_fields__:
        value = getattr(info, name)
        parts += value if isinstance(value, tuple) else [value]
    return [part for part in parts if isinstance(part, inspect.Type)]
