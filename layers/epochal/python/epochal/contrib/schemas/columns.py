"""Columns of tables that events are written to: a field of an event is a column, by its type.

    text  int64  float64  decimal  bool  timestamp  json

A decimal is text, to the digit, which no binary float is. A timestamp is a time with an offset, or without one in UTC.
What is no plain value, an object or an array, is the text of its JSON. A column is null where an event has no such
field, or something else there: the table has the whole body beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from epochal.codec import json
from epochal.contrib.schemas.class_schemas import DEFINITIONS, Schema
from epochal.contrib.schemas.of_events import event_schemas
from epochal.deciders.codecs import EventCodec
from epochal.lazy_dataclasses import dataclass
from epochal.model.body_marks import VERSION

ColumnType = Literal["text", "int64", "float64", "decimal", "bool", "timestamp", "json"]

_INT64: Final = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Column:
    """A table column for a field of events: the field's name and the type of its values.

    Attributes:
        name: name of the event's field, and of the column.
        type: type of the column's values.
    """

    name: str
    type: ColumnType

    def value(self, value: Any) -> str | int | float | bool | datetime | None:
        """Convert a field's JSON value to the column's type, or return None if it cannot be converted.

        Args:
            value: value of the field, as JSON has it.
        """
        match self.type, value:
            case "json", _:
                return None if value is None else json.dumps(value).decode()
            case "bool", bool():
                return value
            case (("int64" | "float64" | "decimal"), bool()):
                return None
            case "int64", int():
                return value if value in _INT64 else None
            case "float64", int() | float() | Decimal():
                return _float(value)
            case "decimal", int() | Decimal() | str():
                return str(value)
            case "timestamp", str():
                return _time(value)
            case "text", str():
                return value
            case _:
                return None


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """The columns for the events of a codec, by event type.

    Attributes:
        of_types: columns of each event type, in the order of the event's fields.
    """

    of_types: Mapping[str, tuple[Column, ...]]
    _codec: EventCodec[Any]

    @property
    def all(self) -> tuple[Column, ...]:
        """Columns of a single table for the events of all types.

        If the types of fields with the same name differ, the column is of JSON.
        """
        columns_by_name = dict[str, ColumnType]()
        for column_ in (column for columns in self.of_types.values() for column in columns):
            columns_by_name[column_.name] = (
                column_.type if columns_by_name.get(column_.name, column_.type) == column_.type else "json"
            )
        return tuple(Column(name, kind) for name, kind in columns_by_name.items())

    def values(self, type: str, data: bytes) -> dict[str, Any]:  # noqa: A002  as events say it
        """Return an event's field values in the current version, by name; none for unknown types or bodies.

        The values are as JSON has them, for `Column.value`.

        The result is empty if the codec does not know the type, or the body does not fit the type.

        Args:
            type: type of the event.
            data: body of the event, JSON.
        """
        stored_class = self._codec.classes.get(type)
        if stored_class is None:
            return {}
        try:
            members = stored_class.versions.unmark(json.loads(data))
        except ValueError:
            return {}
        return members if isinstance(members, dict) else {}


def columns(codec: EventCodec[Any]) -> TypedColumns:
    """Return table columns for the events of a `json_codec` codec, by event type; raise for other codecs.

    Args:
        codec: codec made by `json_codec`.

    Raises:
        InvalidInput: the codec was not made by `json_codec`.
    """
    columns_of_types = {
        name: _columns(schema, _times(codec.classes[name].kind))
        for name, schema in event_schemas(codec).items()
    }
    return TypedColumns(MappingProxyType(columns_of_types), codec)


def _columns(schema: Schema, times: frozenset[str]) -> tuple[Column, ...]:
    """Return the columns for the fields in an event's schema, without its version."""
    definitions, fields = schema.get("$defs", {}), schema.get("properties", {})
    return tuple(
        Column(name, "timestamp" if name in times else _type(field_, definitions))
        for name, field_ in fields.items()
        if name != VERSION
    )


def _times(kind: type) -> frozenset[str]:
    """Return the names of a msgspec class's time fields, whose schema does not say that they are times.

    That is the case where such a time may have no offset.
    """
    if not hasattr(kind, "__struct_config__"):
        return frozenset()
    from msgspec.structs import fields  # noqa: PLC0415  whoever made the class has loaded it

    return frozenset(field.encode_name for field in fields(kind) if _plain(field.type) is datetime)


def _plain(hint: Any) -> Any:
    """Return a type without annotations, and without null if it is a type or null."""
    parts = [part for part in get_args(hint) if part is not NoneType]
    if get_origin(hint) is Annotated:
        return _plain(parts[0])
    return parts[0] if get_origin(hint) in (Union, UnionType) and len(parts) == 1 else hint


def _type(schema: Schema, definitions: Mapping[str, Schema]) -> ColumnType:
    """Return the column type for the values of a schema, leaving null aside."""
    match schema:
        case {"$ref": str(reference)}:
            return _type(definitions[reference.removeprefix(DEFINITIONS)], definitions)
        case {"anyOf": list(choices)} | {"oneOf": list(choices)} | {"allOf": list(choices)}:
            return _of_choices([choice for choice in choices if choice.get("type") != "null"], definitions)
        case {"const": value}:
            return _of_values([value])
        case {"enum": list(values)}:
            return _of_values(values)
        case {"format": "decimal"}:
            return "decimal"
        case {"type": "string", "format": "date-time"}:
            return "timestamp"
        case {"type": str(kind)}:
            return _PLAIN.get(kind, "json")
        case _:
            return "json"


_PLAIN: Final[Mapping[str, ColumnType]] = {
    "string": "text",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
}


def _of_choices(choices: list[Schema], definitions: Mapping[str, Schema]) -> ColumnType:
    """Return the column type for values of any of several schemas: their common type, or JSON."""
    # Pydantic reads a decimal from a number or a string.
    if [choice.get("type") for choice in choices] == ["number", "string"]:
        return "decimal"
    kinds = {_type(choice, definitions) for choice in choices}
    return kinds.pop() if len(kinds) == 1 else "json"


def _of_values(values: list[Any]) -> ColumnType:
    """Return the column type for a fixed list of values."""
    kinds = {type(value) for value in values if value is not None}
    return "text" if kinds == {str} else "int64" if kinds == {int} else "json"


def _float(value: float | Decimal) -> float | None:
    """Convert a number to a float, or return None if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return None


def _time(value: str) -> datetime | None:
    """Parse an ISO 8601 time and convert it to UTC; return None if it is not valid."""
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
