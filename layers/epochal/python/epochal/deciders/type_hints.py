"""Shapes of types, read from their hints: dataclasses and classes of attrs as JSON values and back.

    str  bool  int  None                    themselves
    float  Decimal                          numbers, to the digit
    datetime  date  UUID                    strings, ISO 8601 and hexadecimal
    Enum  Literal                           their values, which must be strings or integers
    Flag                                    the number of any combination
    X | None                                null or X
    list  tuple  Sequence  set  frozenset   arrays; sets in an order of their own
    dict[str, X]  Mapping[str, X]           objects
    a dataclass, a class of attrs           an object of its fields
    Any                                     any JSON value

Hints are read once, when a shape is built, and a type that has no form in JSON is refused then. Values are checked
against their hints both ways: a value that could not be read back is never written. Reading is tolerant in one respect,
so that old readers can read what new writers write: members that a dataclass does not have are ignored, and a member
that is missing takes the field's default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from enum import Enum, Flag
from types import NoneType, UnionType
from typing import Any, Literal, NewType, TypeGuard, Union, get_args, get_origin, get_type_hints

from epochal.codec import json
from epochal.codec.json import TooDeep
from epochal.deciders.round_trips import must_come_back
from epochal.deciders.shapes import (
    ARRAYS,
    AWARE_TIME,
    SCALARS,
    Convert,
    Field,
    Shape,
    array_of,
    enum_of,
    fixed_of,
    flag_of,
    literal_of,
    object_of,
    optional_of,
    record_of,
)


def shape_of(hint: Any, *, aware: bool = False) -> Shape:
    """Build the shape of a type from its hints; with `aware`, times without an offset are refused.

    Raises:
        TypeError: something in it has no form in JSON.
    """
    shapes = _Shapes(aware)
    shape = shapes.of(hint)
    return Shape(shapes.write_function(shape), shape.read)


class _Shapes:
    """Builds shapes, remembering those of dataclasses, since a dataclass may contain itself.

    Attributes:
        constructed: whether a constructor of any of the classes runs code of its own, which may change what it gets.
    """

    def __init__(self, aware: bool) -> None:
        self._records: dict[type, Shape] = {}
        self._aware = aware
        self.constructed = False

    def write_function(self, shape: Shape) -> Convert:
        """Return a shape's write function; if constructors run code, it first reads back what it writes."""
        constructed = self.constructed

        def write(value: Any) -> Any:
            """Write a value; if constructors run code, check that it can be read back."""
            try:
                written = shape.write(value)
                if constructed:
                    must_come_back(value, shape.read(json.loads(json.dumps(written))))
            except RecursionError as error:
                raise TooDeep("nested too deep") from error
            return written

        return write

    def of(self, hint: Any) -> Shape:
        """Return the shape of a type hint; raise `TypeError` if it has no form in JSON."""
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__)
        if hint is datetime and self._aware:
            return AWARE_TIME
        if hint in SCALARS:
            return SCALARS[hint]
        if isinstance(hint, type) and issubclass(hint, Flag):
            return flag_of(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return enum_of(hint)
        if is_record(hint):
            return self._record(hint)
        return self._composed(hint, get_origin(hint), get_args(hint))

    def _composed(self, hint: Any, origin: Any, parts: tuple[Any, ...]) -> Shape:
        """Return the shape of a generic type such as a list, an optional or a literal; raise for others."""
        if origin is Literal:
            return literal_of(parts)
        if origin in (Union, UnionType):
            return self._optional(hint, [part for part in parts if part is not NoneType])
        if origin is tuple and parts[-1:] != (Ellipsis,):
            return fixed_of([self.of(part) for part in parts])
        if origin in ARRAYS:
            return array_of(origin, self.of(parts[0]))
        if origin in (dict, Mapping) and parts[0] is str:
            return object_of(self.of(parts[1]))
        raise _formless(hint)

    def _optional(self, hint: Any, others: list[Any]) -> Shape:
        """Return the shape of an optional type; raise `TypeError` for a union of several types."""
        if len(others) != 1:
            raise _formless(hint)
        return optional_of(self.of(others[0]))

    def _record(self, kind: type) -> Shape:
        """Return the shape of a dataclass or class of attrs, built once even if it contains itself."""

        def write(value: Any) -> Any:
            return self._records[kind].write(value)

        def read(value: Any) -> Any:
            return self._records[kind].read(value)

        if kind not in self._records:
            self._records[kind] = Shape(write, read)
            self._records[kind] = record_of(kind, self._fields(kind))
        return self._records[kind]

    def _fields(self, kind: Any) -> list[Field]:
        """Return the fields of a class with their shapes; note if its constructor does more than set them."""
        hints = hints_of(kind)
        self.constructed = self.constructed or not _has_plain_constructor(kind)
        return [
            Field(name, self._of_field(kind, name, hints[name]), optional, argument)
            for name, argument, optional in arguments_of(kind)
        ]

    def _of_field(self, kind: type, name: str, hint: Any) -> Shape:
        """Return the shape of a field, naming the field in errors."""
        try:
            return self.of(hint)
        except TypeError as error:
            raise TypeError(f"{kind.__name__}.{name}: {error}") from error


def is_record(hint: Any) -> TypeGuard[type]:
    """Return whether a type is a dataclass or a class of attrs."""
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or _is_attrs(hint))


def _is_attrs(kind: type) -> bool:
    return "__attrs_attrs__" in vars(kind)


def arguments_of(kind: Any) -> list[tuple[str, str, bool]]:
    """List the fields that a constructor takes: name, name of the argument, and whether it has a default."""
    if _is_attrs(kind):
        from attrs import NOTHING  # noqa: PLC0415  whoever made the class has loaded it

        fields = [field for field in kind.__attrs_attrs__ if field.init]
        return [(field.name, field.alias, field.default is not NOTHING) for field in fields]
    return [(field.name, field.name, _has_default(field)) for field in dataclasses.fields(kind) if field.init]


def _has_plain_constructor(kind: Any) -> bool:
    """Return whether a class's constructor only sets its fields as they are given."""
    if (
        "__post_init__" in dir(kind)
        or "__attrs_post_init__" in dir(kind)
        or "__attrs_pre_init__" in dir(kind)
    ):
        return False
    if _is_attrs(kind):
        generated = kind.__init__.__code__.co_filename.startswith("<attrs generated")
        fields = kind.__attrs_attrs__
        return generated and all(
            field.init and field.converter is None and field.validator is None for field in fields
        )
    # Beside its fields a dataclass may have arguments that are no fields (`InitVar`).
    own, fields = vars(kind).get("__dataclass_params__"), dataclasses.fields(kind)
    return (
        own is not None
        and own.init
        and kind.__new__ is object.__new__
        and len(fields) == len(kind.__dataclass_fields__)
        and all(field.init for field in fields)
    )


def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields; raise `TypeError` if a hint cannot be resolved."""
    try:
        return get_type_hints(kind)
    except NameError as error:
        raise TypeError(f"{kind.__name__}: a type hint uses an undefined name: {error}") from error


def _formless(hint: Any) -> TypeError:
    """Build the error that a type has no form in JSON, with the types that have one."""
    return TypeError(
        f"{hint!r} has no form in JSON: a field may be str, bool, int, float, Decimal, datetime, date, UUID, an Enum "
        "of strings or integers, a Flag, a Literal, X | None, list[X], tuple[X, ...], set[X], dict[str, X], Any, a "
        "dataclass or a class of attrs; classes of Pydantic and msgspec may have more"
    )


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
