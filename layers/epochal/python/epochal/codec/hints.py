"""Dataclasses, and classes of attrs, as JSON values and back, by their type hints.

    str  bool  int  None                    themselves
    float  Decimal                          numbers, to the digit
    datetime  date  UUID                    strings, ISO 8601 and hexadecimal
    Enum  Literal                           their values, which must be strings or integers
    X | None                                null or X
    list  tuple  Sequence  set  frozenset   arrays; sets in an order of their own
    dict[str, X]  Mapping[str, X]           objects
    a dataclass, a class of attrs           an object of its fields
    Any                                     whatever JSON it is

Hints are read once, when a shape is made, and what has no form in JSON is refused then. Values are held to their hints
both ways: what could not be read back is never written. Reading is tolerant in one respect, so that old readers survive
new writers: members that a dataclass does not have are ignored, and a member that is missing takes the field's default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from epochal.codec.shapes import (
    ARRAYS,
    SCALARS,
    Field,
    Shape,
    array_of,
    enum_of,
    fixed_of,
    literal_of,
    object_of,
    optional_of,
    record_of,
)


def shape_of(hint: Any) -> Shape:
    """The shape of a type; raises `TypeError` where something in it has no form in JSON."""
    return _Shapes().of(hint)


class _Shapes:
    """Makes shapes; remembers those of dataclasses, since a dataclass may hold itself."""

    def __init__(self) -> None:
        self._records: dict[type, Shape] = {}

    def of(self, hint: Any) -> Shape:
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__)
        if hint in SCALARS:
            return SCALARS[hint]
        if isinstance(hint, type) and issubclass(hint, Enum):
            return enum_of(hint)
        if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or _is_attrs(hint)):
            return self._record(hint)
        return self._composed(hint, get_origin(hint), get_args(hint))

    def _composed(self, hint: Any, origin: Any, parts: tuple[Any, ...]) -> Shape:
        if origin is Literal:
            return literal_of(parts)
        if origin in (Union, UnionType):
            return self._optional(hint, [part for part in parts if part is not NoneType])
        if origin is tuple and parts[-1:] != (Ellipsis,):
            return fixed_of([self.of(part) for part in parts])
        if origin in ARRAYS:
            return array_of(self.of(parts[0]), ARRAYS[origin])
        if origin in (dict, Mapping) and parts[0] is str:
            return object_of(self.of(parts[1]))
        raise _formless(hint)

    def _optional(self, hint: Any, others: list[Any]) -> Shape:
        if len(others) != 1:
            raise _formless(hint)
        return optional_of(self.of(others[0]))

    def _record(self, kind: type) -> Shape:
        def write(value: Any) -> Any:
            return self._records[kind].write(value)

        def read(value: Any) -> Any:
            return self._records[kind].read(value)

        if kind not in self._records:
            self._records[kind] = Shape(write, read)
            self._records[kind] = record_of(kind, self._fields(kind))
        return self._records[kind]

    def _fields(self, kind: Any) -> list[Field]:
        hints = _hints(kind)
        return [
            Field(name, self._of_field(kind, name, hints[name]), optional, argument)
            for name, argument, optional in _arguments(kind)
        ]

    def _of_field(self, kind: type, name: str, hint: Any) -> Shape:
        try:
            return self.of(hint)
        except TypeError as error:
            raise TypeError(f"{kind.__name__}.{name}: {error}") from error


def _is_attrs(kind: type) -> bool:
    return "__attrs_attrs__" in vars(kind)


def _arguments(kind: Any) -> list[tuple[str, str, bool]]:
    """For each field that the constructor takes: its name, its argument's name, and whether it has a default."""
    if _is_attrs(kind):
        from attrs import NOTHING  # noqa: PLC0415  whoever made the class has loaded it

        fields = [each for each in kind.__attrs_attrs__ if each.init]
        return [(each.name, each.alias, each.default is not NOTHING) for each in fields]
    return [(each.name, each.name, _has_default(each)) for each in dataclasses.fields(kind) if each.init]


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError as error:
        raise TypeError(f"{kind.__name__}: a hint names what its module does not: {error}") from error


def _formless(hint: Any) -> TypeError:
    return TypeError(f"{hint!r} has no form in JSON; docs/guide/events.md lists what has")


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
