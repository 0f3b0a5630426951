"""Shapes of values in JSON: each has a function to write them and one to read them back.

Both hold a value to its rule and raise `Mismatch`, so that what could not be read back is never written. Shapes of
types are put together from these in `codec.hints`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, NamedTuple
from uuid import UUID

from epochal.codec.json import dumps

Convert = Callable[[Any], Any]
Accept = Callable[[Any], bool]


MISSING: Final = "is missing"
"""The rule that an object breaks which lacks a field."""


class Mismatch(ValueError):
    """A value is not what it should be: `path` leads to it, `rule` is what it broke."""

    def __init__(self, rule: str, path: str = "") -> None:
        super().__init__(f"{path}: {rule}" if path else rule)
        self.rule = rule
        self.path = path

    def inside(self, name: str) -> Mismatch:
        """The same, seen from the value that holds it under `name`."""
        return Mismatch(self.rule, f"{name}.{self.path}" if self.path else name)


class Shape(NamedTuple):
    """The shape of values of one type. Both functions raise `Mismatch`."""

    write: Convert
    read: Convert


class Field(NamedTuple):
    """A field of a record, which its constructor calls `argument`; one that is `optional` may be missing when read."""

    name: str
    shape: Shape
    optional: bool
    argument: str


def record_of(kind: type, fields: Sequence[Field]) -> Shape:
    """An object of these fields, for exactly this class: one of a subclass would lose its own."""

    def write(value: Any) -> Any:
        if type(value) is not kind:
            raise Mismatch(f"must be a {kind.__name__}")
        return {
            field.name: _within(field.name, field.shape.write, getattr(value, field.name)) for field in fields
        }

    def read(value: Any) -> Any:
        members = _mapping(value)
        missing = [field.name for field in fields if field.name not in members and not field.optional]
        if missing:
            raise Mismatch(MISSING, missing[0])
        present = [field for field in fields if field.name in members]
        return kind(
            **{
                field.argument: _within(field.name, field.shape.read, members[field.name])
                for field in present
            }
        )

    return Shape(write, _one(_anything, f"is not a valid {kind.__name__}", read))


def optional_of(shape: Shape) -> Shape:
    """Null or a value of the shape."""
    return Shape(
        lambda value: None if value is None else shape.write(value),
        lambda value: None if value is None else shape.read(value),
    )


def array_of(shape: Shape, build: Callable[[Iterable[Any]], Any]) -> Shape:
    """An array of any length, read into what `build` makes of it."""
    unordered = build in (set, frozenset)
    accepts, rule = (_is(AbstractSet), "must be a set") if unordered else (_is_sequence, "must be an array")

    def write(value: Any) -> list[Any]:
        written = [_within(str(position), shape.write, element) for position, element in enumerate(value)]
        return sorted(written, key=dumps) if unordered else written

    def read(value: Any) -> Any:
        return build([_within(str(position), shape.read, element) for position, element in enumerate(value)])

    return Shape(_one(accepts, rule, write), _one(_is(list), "must be an array", read))


def fixed_of(shapes: Sequence[Shape]) -> Shape:
    """An array of so many values, read into a tuple."""
    rule = f"must be an array of {len(shapes)}"

    def convert(way: Callable[[Shape], Convert], build: Callable[[Iterable[Any]], Any]) -> Convert:
        def converted(value: Any) -> Any:
            if len(value) != len(shapes):
                raise Mismatch(rule)
            pairs = enumerate(zip(shapes, value, strict=True))
            return build(
                [_within(str(position), way(shape), element) for position, (shape, element) in pairs]
            )

        return converted

    return Shape(
        _one(_is(tuple), rule, convert(lambda shape: shape.write, list)),
        _one(_is(list), rule, convert(lambda shape: shape.read, tuple)),
    )


def object_of(shape: Shape) -> Shape:
    """An object with values of one shape."""
    return Shape(
        lambda value: {name: _within(name, shape.write, member) for name, member in _mapping(value).items()},
        lambda value: {name: _within(name, shape.read, member) for name, member in _mapping(value).items()},
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Mismatch("must be an object")
    return value


def enum_of(kind: type[Enum]) -> Shape:
    """A member by its value."""
    values = [member.value for member in kind]
    rule = _rule(values)
    return Shape(_one(_is(kind), rule, lambda member: member.value), _one(_chosen_from(values), rule, kind))


def literal_of(values: Sequence[Any]) -> Shape:
    """One of these strings or integers."""
    return _same(_chosen_from(values), _rule(values))


def _rule(values: Sequence[Any]) -> str:
    if not all(isinstance(value, str) or _is_integer(value) for value in values):
        raise TypeError(f"{list(values)!r}: only strings and integers can be chosen from")
    return "must be one of " + ", ".join(map(repr, values))


def _chosen_from(values: Sequence[Any]) -> Accept:
    # 1 is True to Python, and not to JSON.
    return lambda value: isinstance(value, str | int) and not isinstance(value, bool) and value in values


def _within(name: str, convert: Convert, value: Any) -> Any:
    try:
        return convert(value)
    except Mismatch as mismatch:
        raise mismatch.inside(name) from None


def _one(accepts: Accept, rule: str, convert: Convert | None = None) -> Convert:
    def checked(value: Any) -> Any:
        if not accepts(value):
            raise Mismatch(rule)
        try:
            return value if convert is None else convert(value)
        except Mismatch:
            raise
        except (ValueError, TypeError, ArithmeticError) as error:
            raise Mismatch(f"{rule} ({error})") from error

    return checked


def _same(accepts: Accept, rule: str, convert: Convert | None = None) -> Shape:
    return Shape(_one(accepts, rule, convert), _one(accepts, rule, convert))


def _text(accepts: Accept, rule: str, write: Convert, read: Convert) -> Shape:
    return Shape(_one(accepts, rule, write), _one(_is(str), rule, read))


def _anything(_: Any) -> bool:
    return True


def _is(kind: type) -> Accept:
    return lambda value: isinstance(value, kind)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_integer(value) or isinstance(value, Decimal)


def _is_float(value: Any) -> bool:
    return _is_integer(value) or isinstance(value, float)


def _is_day(value: Any) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


def _finite_float(value: Any) -> float:
    if not math.isfinite(number := float(value)):
        raise ValueError("not finite")
    return number


def _finite_decimal(value: Any) -> Decimal:
    if not (number := Decimal(value)).is_finite():
        raise ValueError("not finite")
    return number


SCALARS: Final[Mapping[Any, Shape]] = {
    Any: _same(_anything, ""),
    str: _same(_is(str), "must be a string"),
    bool: _same(_is(bool), "must be true or false"),
    int: _same(_is_integer, "must be an integer"),
    float: Shape(
        _one(_is_float, "must be a number", _finite_float),
        _one(_is_number, "must be a number", _finite_float),
    ),
    Decimal: _same(_is_number, "must be a number", _finite_decimal),
    None: _same(lambda value: value is None, "must be null"),
    NoneType: _same(lambda value: value is None, "must be null"),
    datetime: _text(_is(datetime), "must be an ISO 8601 time", datetime.isoformat, datetime.fromisoformat),
    date: _text(_is_day, "must be an ISO 8601 date", date.isoformat, date.fromisoformat),
    UUID: _text(_is(UUID), "must be a UUID", str, UUID),
}

ARRAYS: Final[Mapping[Any, Callable[[Iterable[Any]], Any]]] = {
    list: list,
    tuple: tuple,
    Sequence: tuple,
    set: set,
    frozenset: frozenset,
}
