"""Conversion and check of bodies for a codec before they are written, since stored events cannot be corrected.

    cells of a table    texts, which are converted to the types of the event's class, and written exactly as the codec
                        writes a new event, with its schema version
    anything else       values with types, which are kept to the byte, and decoded for a check

A cell becomes the value of the class's field of the same name, even if another entry of the mapping, such as a tag,
uses the cell, too. A column for which the class has no field is kept behind the fields, as text, unless the cell
is blank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.codec import json
from epochal.contrib.schemas.class_schemas import Schema
from epochal.contrib.schemas.of_events import event_schemas
from epochal.contrib.transfer.importing.cells import LEFT_OUT, value_of
from epochal.contrib.transfer.importing.incoming import Incoming, Misfit, Row
from epochal.deciders.codecs import EventCodec, Stored, StoredClass
from epochal.deciders.mismatch import MISSING, Mismatch
from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.lazy_dataclasses import replace
from epochal.model.bodies import content_of
from epochal.model.body_marks import VERSION
from epochal.model.events import Recorded
from epochal.model.stream_names import TIMERS

_SHOWN: Final = 64
"""Most characters of a value in an error."""


class TypedBodies:
    """Converts the bodies of imported events for a codec, and checks that the codec can read them."""

    def __init__(self, codec: EventCodec[Any], *, cells: bool) -> None:
        """Prepare the JSON Schemas of a codec's event types, if bodies are table cells to convert.

        Args:
            codec: codec of the events
            cells: whether bodies are the cells of a table, which are texts. They are converted if the codec is one of
                `json_codec`; other codecs only decode.
        """
        self._codec = codec
        self._schemas: Mapping[str, Schema] = (
            event_schemas(codec, marked=False) if cells and codec.classes else {}
        )

    def typed(self, row: Row) -> Row:
        """Convert a row's body for the codec and check it; return the row, or a misfit with what is wrong."""
        if not isinstance(row, Incoming) or row.event.type in TIMERS:
            return row
        try:
            if row.event.type in self._schemas:
                row = replace(row, event=replace(row.event, data=self._body(row)))
            self._decode(row)
        except InvalidInput as error:
            return Misfit(at=row.at, stream=row.stream, rule=str(error), raw=row.raw)
        return row

    def _body(self, row: Incoming) -> bytes:
        """Convert a row's cells to the body that the codec writes for them, or raise `InvalidInput`.

        Raises:
            InvalidInput: a cell is not of its field's type, or the class of the event does not accept the values.
        """
        kind = self._codec.classes[row.event.type]
        fields, others = self._fields(row)
        values = {**fields, **others}
        try:
            written = kind.form.write(kind.form.read(dict(values)))
            if written.keys() - values.keys():
                _must_be_constant(kind, written, kind.form.write(kind.form.read(dict(values))))
            more = {name: text for name, text in others.items() if name not in written}
            return json.dumps(kind.versions.mark({**written, **more}))
        except InvalidInput:
            raise
        except Exception as error:  # a class of the user's own, whose constructor may raise anything
            raise _refused(kind.name, error, values) from error

    def _fields(self, row: Incoming) -> tuple[dict[str, Any], dict[str, str]]:
        """Convert a row's cells to the values of the class's fields, and return the other cells as text.

        Raises:
            InvalidInput: a cell is not of its field's type, or a column gives the version of the body.
        """
        name, schema = row.event.type, self._schemas[row.event.type]
        types, needed = schema.get("properties", {}), schema.get("required", ())
        cells: Mapping[str, str] = row.raw
        rest: dict[str, str] = json.loads(content_of(row.event.data))
        if VERSION in cells:
            raise InvalidInput(VERSION, "must not be a column: cells are converted to the current classes")
        fields = dict[str, Any]()
        for column, type_ in types.items():
            if column in cells:
                try:
                    value = value_of(
                        cells[column], type_, schema.get("$defs", {}), optional=column not in needed
                    )
                except Mismatch as error:
                    raise _refused(name, error.inside(column), cells) from error
                if value is not LEFT_OUT:
                    fields[column] = value
            elif (
                column in needed and "const" in type_
            ):  # such as the tag of a union, which has one possible value
                fields[column] = type_["const"]
        others = {column: text for column, text in rest.items() if column not in types and text}
        return fields, others

    def _decode(self, row: Incoming) -> None:
        """Raise `InvalidInput` if the codec cannot read the event of a row."""
        event = row.event
        stored = Stored(
            type=event.type,
            data=content_of(event.data),
            meta=content_of(event.meta),
            timestamp=event.timestamp or "",
            index=row.index or 0,
            stream=row.stream,
        )
        try:
            decoded = self._codec.decode(stored)
        except CorruptData as error:
            raise _corrupt(stored, error) from error
        except EpochalError as error:
            raise InvalidInput(event.type, str(error)) from error
        except Exception as error:  # a codec of the user's own, which may raise anything
            raise InvalidInput(event.type, f"its codec fails: {error!r}") from error
        if decoded is None and not self._codec.skips_unknown:
            raise InvalidInput("type", f"{event.type} is not known to the codec")


def must_be_readable(codec: EventCodec[Any], event: Recorded) -> None:
    """Read a stored event with a codec, and raise an error if the codec cannot read the event.

    Raises:
        InvalidInput: the codec fails.
        CorruptData: the body is not what the codec expects.
        UnknownType: the codec does not know the type.
    """
    try:
        codec.read(event)
    except EpochalError:
        raise
    except Exception as error:  # a codec of the user's own, which may raise anything
        raise InvalidInput(
            event.stream, f"{event.type} (index {event.index}): its codec fails: {error!r}"
        ) from error


def _must_be_constant(kind: StoredClass, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` if a default differs between two bodies written from the same cells.

    A second run would find its events to be others than the stored ones.
    """
    for name, value in first.items():
        if second.get(name) != value:
            raise InvalidInput(f"{kind.name}.{name}", "needs a column: its default is different each time")


def _corrupt(stored: Stored, error: CorruptData) -> InvalidInput:
    """Convert a decoding error to an `InvalidInput` about the body, without its place in the stream.

    The place of the row in the source is clearer.
    """
    cause = error.__cause__
    if isinstance(cause, Mismatch):
        try:
            body = json.loads(stored.data)
        except ValueError:
            body = None
        return _refused(stored.type, cause, body)
    return InvalidInput(stored.type, str(error).removeprefix(f"{stored.where}: "))


def _refused(name: str, error: Exception, body: object) -> InvalidInput:
    """Make an `InvalidInput` that names the event's type and field, the violated rule, and the value."""
    if not isinstance(error, Mismatch):
        return InvalidInput(name, str(error) if isinstance(error, ValueError) else repr(error))
    field = f"{name}.{error.path}".rstrip(".")
    if error.rule == MISSING:
        return InvalidInput(field, "is missing and has no default")
    value = body
    for step in error.path.split(".") if error.path else ():
        value = _member(value, step)
    shown = "" if value is LEFT_OUT or not error.path else f", got {value!r}"
    return InvalidInput(field, error.rule + (shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"))


def _member(value: object, step: str) -> object:
    """Return the member of an object or array that a step of a path names; `LEFT_OUT` if there is none."""
    if isinstance(value, list):
        return value[int(step)] if step.isdecimal() and int(step) < len(value) else LEFT_OUT
    return value.get(step, LEFT_OUT) if isinstance(value, Mapping) else LEFT_OUT
