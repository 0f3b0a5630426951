"""Shapes of values in JSON: each has a function that writes them and one that reads them back.

Both hold a value to its rule and raise `Mismatch`, so that what could not be read back is never written. `type_hints`
builds the shapes of classes from these.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, Flag
from types import NoneType
from typing import Any, Final, NamedTuple
from uuid import UUID

from epochal.codec.json import dumps
from epochal.deciders.mismatch import MISSING, Mismatch
from epochal.deciders.round_trips import NAIVE

Convert = Callable[[Any], Any]
Accept = Callable[[Any], bool]


class Shape(NamedTuple):
    """The shape of values of one type: how they are written and read. Both functions raise `Mismatch`."""

    write: Convert
    read: Convert


class Field(NamedTuple):
    """A field of a record, which its constructor calls `argument`; one that is `optional` may be missing when read."""

    name: str
    shape: Shape
    optional: bool
    argument: str


def record_of(kind: type, fields: Sequence[Field]) -> Shape:
    """Build the shape of a JSON object with these fields, for exactly this class.

    A value of a subclass would lose its own fields.
    """

    def write(value: Any) -> Any:
        """Write a record as an object."""
        if type(value) is not kind:
            raise Mismatch(f"must be a {kind.__name__}", got=value)
        return {
            field.name: _within(field.name, field.shape.write, getattr(value, field.name)) for field in fields
        }

    def read(value: Any) -> Any:
        """Read a record from an object; missing optional fields take their defaults."""
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
    """Build the shape of null or a value of another shape."""
    return Shape(
        lambda value: None if value is None else shape.write(value),
        lambda value: None if value is None else shape.read(value),
    )


def array_of(origin: Any, shape: Shape) -> Shape:
    """Build the shape of an array of any length.

    A `Sequence` may be a list or a tuple when it is written, and is read as a tuple.
    """
    build = ARRAYS[origin]
    unordered = build in (set, frozenset)
    kinds = (list, tuple) if origin is Sequence else (build,)
    rule = f"must be a {' or a '.join(kind.__name__ for kind in kinds)}"

    def write(value: Any) -> list[Any]:
        """Write the elements as a list; those of a set are sorted."""
        written = [_within(str(position), shape.write, element) for position, element in enumerate(value)]
        return sorted(written, key=dumps) if unordered else written

    def read(value: Any) -> Any:
        """Read the elements of a list."""
        return build([_within(str(position), shape.read, element) for position, element in enumerate(value)])

    return Shape(
        _one(lambda value: type(value) in kinds, rule, write), _one(_is(list), "must be an array", read)
    )


def fixed_of(shapes: Sequence[Shape]) -> Shape:
    """Build the shape of an array with a fixed number of values, which is read into a tuple."""
    rule = f"must be an array of length {len(shapes)}"

    def convert(way: Callable[[Shape], Convert], build: Callable[[Iterable[Any]], Any]) -> Convert:
        """Build a function that checks an array's length and converts each element by its own shape."""

        def converted(value: Any) -> Any:
            """Convert each element of an array; raise `Mismatch` if it has another length."""
            if len(value) != len(shapes):
                raise Mismatch(rule)
            pairs = enumerate(zip(shapes, value, strict=True))
            return build(
                [_within(str(position), way(shape), element) for position, (shape, element) in pairs]
            )

        return converted

    return Shape(
        _one(_is_exactly(tuple), f"must be a {len(shapes)}-tuple", convert(lambda shape: shape.write, list)),
        _one(_is(list), rule, convert(lambda shape: shape.read, tuple)),
    )


def object_of(shape: Shape) -> Shape:
    """Build the shape of an object whose values have one shape."""

    def write(value: Any) -> Any:
        """Write a dict with string keys as an object."""
        if type(value) is not dict or not all(type(name) is str for name in value):
            raise Mismatch("must be a dict of strings", got=value)
        return {name: _within(name, shape.write, member) for name, member in value.items()}

    return Shape(
        write,
        lambda value: {name: _within(name, shape.read, member) for name, member in _mapping(value).items()},
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a value that is an object; raise `Mismatch` otherwise."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Mismatch("must be an object")
    return value


def enum_of(kind: type[Enum]) -> Shape:
    """Build the shape of an enumeration: each member is stored as its value."""
    values = [member.value for member in kind]
    rule = _rule(values)
    chosen = _chosen_from(values)
    return Shape(
        _one(
            lambda member: isinstance(member, kind) and chosen(member.value),
            f"must be a member of {kind.__name__}",
            lambda member: member.value,
        ),
        _one(chosen, rule, kind),
    )


def flag_of(kind: type[Flag]) -> Shape:
    """Build the shape of a flag: any combination of its members is stored as its number."""
    rule = f"must be the number of a {kind.__name__}"

    def read(value: int) -> Flag:
        """Read a combination of members from its number; raise `Mismatch` if the flag has no such one."""
        try:
            member: Any = kind(value)
        except ValueError:
            raise Mismatch(rule) from None
        # A flag may drop bits without a member, or return a plain integer.
        if not isinstance(member, kind) or member.value != value:
            raise Mismatch(rule)
        return member

    return Shape(
        _one(_is(kind), f"must be a {kind.__name__}", lambda member: member.value),
        _one(_is_integer, rule, read),
    )


def literal_of(values: Sequence[Any]) -> Shape:
    """Build the shape of a choice of strings or integers."""
    rule = _rule(values)
    if not all(type(value) in (str, int) for value in values):
        raise TypeError(f"{list(values)!r}: an enum member would be read back as its value; use the enum")
    chosen = _chosen_from(values)
    return Shape(_one(lambda value: type(value) in (str, int) and chosen(value), rule), _one(chosen, rule))


def _rule(values: Sequence[Any]) -> str:
    """Return the rule of a choice of values, for error messages."""
    if not all(isinstance(value, str) or _is_integer(value) for value in values):
        raise TypeError(f"{list(values)!r}: the choices must be strings or integers")
    return "must be one of " + ", ".join(map(repr, values))


def _chosen_from(values: Sequence[Any]) -> Accept:
    """Return a function that tells whether a value is one of these; 1 is not True."""
    # 1 is True to Python, and not to JSON.
    return lambda value: isinstance(value, str | int) and not isinstance(value, bool) and value in values


def _within(name: str, convert: Convert, value: Any) -> Any:
    """Convert a member, and put its name into the path of a mismatch."""
    try:
        return convert(value)
    except Mismatch as mismatch:
        raise mismatch.inside(name) from None


def _one(accepts: Accept, rule: str, convert: Convert | None = None) -> Convert:
    """Build a function that checks a value by a rule, then converts it; it raises `Mismatch`."""

    def checked(value: Any) -> Any:
        """Check a value, then convert it; raise `Mismatch` if either fails."""
        if not accepts(value):
            raise Mismatch(rule, got=value)
        try:
            return value if convert is None else convert(value)
        except Mismatch:
            raise
        except (ValueError, TypeError, ArithmeticError) as error:
            raise Mismatch(f"{rule} ({error})", got=value) from error

    return checked


def _same(accepts: Accept, rule: str, convert: Convert | None = None) -> Shape:
    """Build a shape that is checked and converted in the same way both ways."""
    return Shape(_one(accepts, rule, convert), _one(accepts, rule, convert))


def _write_plain(value: Any) -> Any:
    """Return a value of plain JSON as it is stored; raise `Mismatch` for others, floats included.

    Numbers that are not integers must be `Decimal`, and arrays lists.
    """
    kind = type(value)
    if kind in (str, int, bool, NoneType):
        return value
    if kind is Decimal and value.is_finite():
        return _write_decimal(value)
    if kind is list:
        return [_within(str(position), _write_plain, element) for position, element in enumerate(value)]
    if kind is dict and all(type(name) is str for name in value):
        return {name: _within(name, _write_plain, member) for name, member in value.items()}
    if kind is float:
        raise Mismatch(
            "must be a Decimal, because fields of type Any are read back with Decimals for floats", got=value
        )
    raise Mismatch(
        "must be JSON where the type is Any: a string, an int, a Decimal, a bool, None, a list, or a dict of strings",
        got=value,
    )


def _exact(kind: type, rule: str) -> Shape:
    """Build the shape of values of exactly this type; one of a subclass would come back as another."""

    def write(value: Any) -> Any:
        """Check that a value is of exactly this type."""
        if type(value) is kind:
            return value
        if _is(kind)(value) and not isinstance(value, bool):
            raise Mismatch(f"{rule} of type {kind.__name__}, not of a subclass", got=value)
        raise Mismatch(rule, got=value)

    return Shape(write, _one(_is(kind), rule))


def _anything(_: Any) -> bool:
    return True


def _is(kind: type) -> Accept:
    return lambda value: isinstance(value, kind)


def _is_exactly(kind: type) -> Accept:
    return lambda value: type(value) is kind


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_integer(value) or isinstance(value, Decimal)


def _is_day(value: Any) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


def _finite_float(value: Any) -> float:
    """Convert a value to a float; raise `ValueError` if it is not finite."""
    if not math.isfinite(number := float(value)):
        raise ValueError("not finite")
    return number


def _finite_decimal(value: Any) -> Decimal:
    """Convert a value to a decimal; raise `ValueError` if it is not finite."""
    if not (number := Decimal(value)).is_finite():
        raise ValueError("not finite")
    return number


_MOST_DIGITS: Final = sys.int_info.default_max_str_digits
"""Largest number of digits of an integer that Python reads by default."""


def _write_decimal(value: Any) -> Decimal:
    """Return a finite decimal; raise `Mismatch` if it would be read as an integer with too many digits.

    Without a point and an exponent it is read as an integer.
    """
    number = _finite_decimal(value)
    if number.adjusted() >= _MOST_DIGITS and number.as_tuple().exponent == 0:
        raise Mismatch(
            f"must be a number of at most {_MOST_DIGITS} digits, or have a point or an exponent",
            got=f"{number.adjusted() + 1} digits",
        )
    return number


def _read_integer(value: Any) -> int:
    """Read an integer; -0, which is read as a `Decimal`, is 0."""
    if _is_integer(value):
        return int(value)
    if isinstance(value, Decimal) and str(value) == "-0":
        return 0
    raise Mismatch("must be an integer", got=value)


def _write_float(value: Any) -> float:
    """Return the float that equals a number; raise `ValueError` if there is none."""
    number = _finite_float(value)
    if number != value:
        raise ValueError("it has no exact float value")
    return number


def _write_time(value: datetime) -> str:
    return _same_text(value.isoformat(), datetime if type(value) is not datetime else None)


def _write_aware_time(value: datetime) -> str:
    """Write a time; raise `Mismatch` if it has no offset from UTC."""
    if value.utcoffset() is None:
        raise Mismatch(NAIVE, got=value)
    return _write_time(value)


def _write_day(value: date) -> str:
    return _same_text(value.isoformat(), date if type(value) is not date else None)


def _same_text(text: str, kind: type[date] | None) -> str:
    """Return the text of a time; raise ValueError if reading it would lose part of a subclass's precision."""
    if kind is not None and kind.fromisoformat(text).isoformat() != text:
        raise ValueError(f"{text} is more precise than a {kind.__name__} can be")
    return text


_TIME_RULE: Final = "must be an ISO 8601 time"
_READ_TIME: Final = _one(_is(str), _TIME_RULE, datetime.fromisoformat)

SCALARS: Final[Mapping[Any, Shape]] = {
    str: _exact(str, "must be a string"),
    bool: _same(_is(bool), "must be true or false"),
    int: Shape(_exact(int, "must be an integer").write, _read_integer),
    float: Shape(
        _one(lambda value: type(value) in (float, int), "must be a number", _write_float),
        _one(_is_number, "must be a number", _finite_float),
    ),
    Decimal: Shape(
        _one(lambda value: type(value) in (Decimal, int), "must be a number", _write_decimal),
        _one(_is_number, "must be a number", _finite_decimal),
    ),
    None: _same(lambda value: value is None, "must be null"),
    NoneType: _same(lambda value: value is None, "must be null"),
    datetime: Shape(_one(_is(datetime), _TIME_RULE, _write_time), _READ_TIME),
    date: Shape(
        _one(_is_day, "must be an ISO 8601 date", _write_day),
        _one(_is(str), "must be an ISO 8601 date", date.fromisoformat),
    ),
    UUID: Shape(_one(_is_exactly(UUID), "must be a UUID", str), _one(_is(str), "must be a UUID", UUID)),
    Any: Shape(_write_plain, lambda value: value),
}

AWARE_TIME: Final = Shape(_one(_is(datetime), _TIME_RULE, _write_aware_time), _READ_TIME)

ARRAYS: Final[Mapping[Any, type]] = {
    list: list,
    tuple: tuple,
    Sequence: tuple,
    set: set,
    frozenset: frozenset,
}
