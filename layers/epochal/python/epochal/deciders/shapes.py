"""Shapes of values in JSON: each has a function that writes them and one that reads them back.

Both hold a value to its rule and raise `Mismatch`, so that what could not be read back is never written. Shapes of
types are put together from these further down.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, Flag
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    NewType,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from epochal.codec import json
from epochal.codec.json import TooDeep, dumps
from epochal.deciders.mismatch import Mismatch as Mismatch  # noqa: PLC0414  exported to shapes' users
from epochal.deciders.round_trips import NAIVE, must_come_back

Convert = Callable[[Any], Any]
Accept = Callable[[Any], bool]


MISSING: Final = "is missing"
"""The rule that an object breaks which lacks a field."""


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
    rule = f"must be an array of {len(shapes)}"

    def convert(way: Callable[[Shape], Convert], build: Callable[[Iterable[Any]], Any]) -> Convert:
        """Build a function that converts each element by its own shape."""

        def converted(value: Any) -> Any:
            """Convert each element of an array of the right length."""
            if len(value) != len(shapes):
                raise Mismatch(rule)
            pairs = enumerate(zip(shapes, value, strict=True))
            return build(
                [_within(str(position), way(shape), element) for position, (shape, element) in pairs]
            )

        return converted

    return Shape(
        _one(
            _is_exactly(tuple), f"must be a tuple of {len(shapes)}", convert(lambda shape: shape.write, list)
        ),
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
            f"must be a {kind.__name__} of its members",
            lambda member: member.value,
        ),
        _one(chosen, rule, kind),
    )


def flag_of(kind: type[Flag]) -> Shape:
    """Build the shape of a flag: any combination of its members is stored as its number."""
    rule = f"must be the number of a {kind.__name__}"

    def read(value: int) -> Flag:
        """Read a combination of members from its number."""
        try:
            member: Any = kind(value)
        except ValueError:
            raise Mismatch(rule) from None
        # A flag may drop the bits that it has no member for, or answer a bare number.
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
        raise TypeError(f"{list(values)!r}: a member of an enum comes back as its value; use the enum itself")
    chosen = _chosen_from(values)
    return Shape(_one(lambda value: type(value) in (str, int) and chosen(value), rule), _one(chosen, rule))


def _rule(values: Sequence[Any]) -> str:
    """Return the rule of a choice of values, for error messages."""
    if not all(isinstance(value, str) or _is_integer(value) for value in values):
        raise TypeError(f"{list(values)!r}: only strings and integers can be chosen from")
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
        """Check a value, then convert it."""
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
    """Check that a value is plain JSON in the form in which it will be read.

    Numbers that are not integers are `Decimal`, and arrays are lists.
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
            "must be a Decimal, as which any number with a point is read where the type is Any", got=value
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
            raise Mismatch(f"{rule} of type {kind.__name__}, and of no subclass", got=value)
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
    if not math.isfinite(number := float(value)):
        raise ValueError("not finite")
    return number


def _finite_decimal(value: Any) -> Decimal:
    if not (number := Decimal(value)).is_finite():
        raise ValueError("not finite")
    return number


_MOST_DIGITS: Final = sys.int_info.default_max_str_digits
"""Most digits of an integer that Python reads, unless it is told otherwise."""


def _write_decimal(value: Any) -> Decimal:
    """Check that a decimal can be read back: without a point and an exponent it is read as an integer."""
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
    number = _finite_float(value)
    if number != value:
        raise ValueError("no float is equal to it")
    return number


def _write_time(value: datetime) -> str:
    return _same_text(value.isoformat(), datetime if type(value) is not datetime else None)


def _write_aware_time(value: datetime) -> str:
    if value.utcoffset() is None:
        raise Mismatch(NAIVE, got=value)
    return _write_time(value)


def _write_day(value: date) -> str:
    return _same_text(value.isoformat(), date if type(value) is not date else None)


def _same_text(text: str, kind: type[date] | None) -> str:
    """Return the text of a time; raise ValueError if reading it would lose part of a subclass's precision."""
    if kind is not None and kind.fromisoformat(text).isoformat() != text:
        raise ValueError(f"{text} is finer than a {kind.__name__}")
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


# Dataclasses, and classes of attrs, as JSON values and back, by their type hints.
#
#     str  bool  int  None                    themselves
#     float  Decimal                          numbers, to the digit
#     datetime  date  UUID                    strings, ISO 8601 and hexadecimal
#     Enum  Literal                           their values, which must be strings or integers
#     Flag                                    the number of any combination
#     X | None                                null or X
#     list  tuple  Sequence  set  frozenset   arrays; sets in an order of their own
#     dict[str, X]  Mapping[str, X]           objects
#     a dataclass, a class of attrs           an object of its fields
#     Any                                     whatever JSON it is
#
# Hints are read once, when a shape is made, and what has no form in JSON is refused then. Values are held to their
# hints both ways: what could not be read back is never written. Reading is tolerant in one respect, so that old
# readers survive new writers: members that a dataclass does not have are ignored, and a member that is missing takes
# the field's default.


def shape_of(hint: Any, *, aware: bool = False) -> Shape:
    """Build the shape of a type from its hints; with `aware`, times without an offset are refused.

    Raises:
        TypeError: something in it has no form in JSON.
    """
    shapes = _Shapes(aware)
    shape = shapes.of(hint)
    return Shape(shapes.checked(shape), shape.read)


class _Shapes:
    """Builds shapes, remembering those of dataclasses, since a dataclass may contain itself.

    Attributes:
        constructed: whether a constructor of any of the classes runs code of its own, which may change what it gets.
    """

    def __init__(self, aware: bool) -> None:
        self._records: dict[type, Shape] = {}
        self._aware = aware
        self.constructed = False

    def checked(self, shape: Shape) -> Convert:
        """Return a shape's write function; if constructors run code, it first reads back what it writes."""
        constructed = self.constructed

        def write(value: Any) -> Any:
            """Write a value, and check that it can be read back."""
            try:
                written = shape.write(value)
                if constructed:
                    must_come_back(value, shape.read(json.loads(json.dumps(written))))
            except RecursionError as error:
                raise TooDeep("nested too deep") from error
            return written

        return write

    def of(self, hint: Any) -> Shape:
        """Return the shape of a type hint."""
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
        """Return the shape of a generic type such as a list, an optional or a literal."""
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
        """List the fields of a class with their shapes."""
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

        fields = [each for each in kind.__attrs_attrs__ if each.init]
        return [(each.name, each.alias, each.default is not NOTHING) for each in fields]
    return [(each.name, each.name, _has_default(each)) for each in dataclasses.fields(kind) if each.init]


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
        raise TypeError(f"{kind.__name__}: a hint names what its module does not: {error}") from error


def _formless(hint: Any) -> TypeError:
    """Build the error that a type has no form in JSON, with the types that have one."""
    return TypeError(
        f"{hint!r} has no form in JSON: a field may be str, bool, int, float, Decimal, datetime, date, UUID, an Enum "
        "of strings or integers, a Flag, a Literal, X | None, list[X], tuple[X, ...], set[X], dict[str, X], Any, a "
        "dataclass or a class of attrs; classes of Pydantic and msgspec may have more"
    )


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)


# How events of a class become JSON values: by the library that the class is made with.
#
#     dataclass, attrs      their fields' hints, as they are read above
#     pydantic              `model_dump` and `model_validate_json`: validators, aliases and defaults are the model's; a
#                           field is read by the alias that it is written under, or the class is refused
#     msgspec.Struct        `to_builtins` and `json.decode`
#
# Whoever made the class has loaded its library, so it is imported where it is used. What could not be read back is
# not written.


class ValueForm(NamedTuple):
    """How values of one class are written and read.

    All three functions raise `ValueError`, and `Mismatch` if a field is known.

    Attributes:
        write: converts a value into what JSON can hold.
        read: converts what JSON holds into a value.
        parse: converts JSON text into a value, without a detour for libraries that parse themselves.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    parse: Callable[[bytes], Any]


def form_of(kind: type, *, event: bool = False) -> ValueForm:
    """Return how values of a class are written and read, by the library the class is made with.

    The times of an `event` have an offset, and it has no member named like its version.

    Raises:
        TypeError: something in it has no form in JSON.
    """
    if hasattr(kind, "__pydantic_validator__"):
        return _parsed_by(*_pydantic(kind, event))
    if hasattr(kind, "__struct_config__"):
        return _parsed_by(*_msgspec(kind, event))
    shape = shape_of(kind, aware=event)
    return ValueForm(shape.write, shape.read, lambda data: shape.read(json.loads(data)))


def _parsed_by(write: Callable[[Any], Any], parse: Callable[[bytes], Any]) -> ValueForm:
    """Build a form from a function that writes and one that parses JSON."""
    return ValueForm(write, lambda value: parse(json.dumps(value)), parse)


_LACKS: Final = re.compile(r"Object missing required field `([^`]*)`.*")
"""How msgspec says that an object lacks a field."""


def _compared(
    write: Callable[[Any], Any],
    parse: Callable[[bytes], Any],
    as_json: Callable[[Any], bytes],
    *,
    aware: bool,
) -> Callable[[Any], Any]:
    """Wrap a write function so that it reads back and compares each value before it is stored."""

    def write_readable(value: Any) -> Any:
        """Write a value; raise `Mismatch` if it could not be read back as it was."""
        try:
            written = write(value)
            try:
                back = parse(as_json(written))
            except Mismatch as mismatch:
                raise Mismatch(f"could not be read back: {mismatch.rule}", mismatch.path) from None
            must_come_back(value, back, aware=aware)
        except RecursionError as error:
            raise TooDeep("nested too deep") from error
        return written

    return write_readable


def _pydantic(kind: type, event: bool) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """Return functions that write and parse values of a Pydantic class, after checking the class."""
    import pydantic  # noqa: PLC0415  as above
    from pydantic_core import to_json  # noqa: PLC0415  as above

    from epochal.deciders.pydantic_checks import check_fields  # noqa: PLC0415  needs Pydantic

    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
    check_fields(adapter.core_schema, kind, event=event)

    def write(value: Any) -> Any:
        # What it would warn of does not come back as it was.
        return adapter.dump_python(value, mode="json", by_alias=True, round_trip=True, warnings="none")

    def parse(data: bytes) -> Any:
        """Parse a value, converting Pydantic's first error into a `Mismatch`."""
        try:
            return adapter.validate_json(data)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            rule = MISSING if first["type"] == "missing" else first["msg"]
            raise Mismatch(rule, ".".join(map(str, first["loc"]))) from None

    return _compared(write, parse, to_json, aware=event), parse


def pydantic_fields(
    schema: Any, owner: type, by: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[tuple[type, str, dict[str, Any], Mapping[str, Any]]]:
    """Iterate over the fields in a Pydantic core schema, at any depth.

    Each has its class, name, field and the settings of the class.
    """
    if isinstance(schema, list | tuple):
        for each in schema:
            yield from pydantic_fields(each, owner, by)
    if isinstance(schema, dict):
        owner, by = schema.get("cls", owner), schema.get("config", by)
        for name, field in fields_in(schema):
            yield owner, name, field, by
        for key, part in schema.items():
            if key not in ("config", "metadata", "serialization"):
                yield from pydantic_fields(part, owner, by)


def fields_in(schema: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List the fields of one model, dataclass or typed dictionary in a core schema."""
    fields = schema.get("fields", ())
    if isinstance(fields, dict):
        return [*fields.items()]
    return [(each["name"], each) for each in fields if isinstance(each, dict)]


def written_as(name: str, field: Mapping[str, Any]) -> str:
    """Return the member under which a Pydantic field is written."""
    return str(field.get("serialization_alias", name))


def read_as(name: str, field: Mapping[str, Any], by: Mapping[str, Any]) -> set[str]:
    """Return the members from which a Pydantic field can be read."""
    alias = field.get("validation_alias", name)
    if not by.get("validate_by_alias", True):
        return {name}
    paths = alias if isinstance(alias, list) and isinstance(alias[0], list) else [alias]
    single = {
        path if isinstance(path, str) else path[0]
        for path in paths
        if isinstance(path, str) or len(path) == 1
    }
    by_name = by.get("validate_by_name", by.get("populate_by_name", False))
    return single | ({name} if by_name else set())


def _msgspec(kind: Any, event: bool) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """Return functions that write and parse values of a msgspec class, after checking the class."""
    import msgspec  # noqa: PLC0415  as above

    from epochal.deciders.msgspec_checks import check_struct  # noqa: PLC0415  needs msgspec

    check_struct(kind, event=event)
    decode = msgspec.json.Decoder(kind).decode

    def write(value: Any) -> Any:
        return msgspec.to_builtins(value, str_keys=True)

    def parse(data: bytes) -> Any:
        """Parse a value, converting msgspec's error into a `Mismatch`."""
        try:
            return decode(data)
        except msgspec.MsgspecError as error:
            lacks = _LACKS.fullmatch(str(error))
            raise (Mismatch(MISSING, lacks[1]) if lacks else Mismatch(str(error))) from None

    return _compared(write, parse, msgspec.json.encode, aware=event), parse
