"""An event as it comes from elsewhere, and the fields of any source mapped to it. Pure.

A mapping says for each field of an event where it is in what the source has:

    amount              the column of that name, or in JSON the member; `payload.amount` is one inside another
    Order-{order_id}    text with columns in it
    =OrderPlaced        this text
    *                   of data and metadata: an object of all columns that nothing else takes

Without a mapping the columns are those of our own exports (`epochal.rows`).
"""

from __future__ import annotations

import json as plain_json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.model.events import (
    Event,
    check_event,
    format_ticks,
    from_unix_nanoseconds,
    no_step,
    parse_time,
    stream_name,
)
from epochal.model.tags import check_tag, check_type, parse_event_id
from epochal.model.versions import MAX_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """An event of a source.

    Attributes:
        at: where the source has it, for people: `line 7`.
        index: in its stream, from 0; None where the source does not count.
        raw: what the source has, for the file of what was rejected.
    """

    at: str
    stream: str
    index: int | None
    event: Event
    raw: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The place of an event that the source has no more."""

    at: str
    stream: str
    index: int | None
    raw: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """What cannot be brought in: `rule` says what it breaks. `stream` is empty where that is not known."""

    at: str
    stream: str
    rule: str
    raw: Any = None


Row = Incoming | Gone | Misfit
"""What a source is an iterator of."""

FIELDS: Final = (
    "stream",
    "index",
    "type",
    "time",
    "id",
    "tags",
    "correlation",
    "causation",
    "metadata",
    "metadata64",
    "data",
    "data64",
    "gone",
    "fault",
)
"""Of an event, as `epochal.rows` names them. `gone` and `fault` have no events behind them."""

_BODIES: Final = ("metadata", "data")
_REST: Final = "*"
_COLUMN: Final = re.compile(r"\{([^{}]+)\}")


class _Absent:
    """What a column is that a row does not have."""


_ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Where the fields of an event are.

    Attributes:
        fields: by field, as this module says.
        first: the index that the source gives the first event of a stream.
        closed: whether streams close up where the source's indices have gaps: these are not asked for then.
    """

    fields: Mapping[str, str] = field(default_factory=lambda: {name: name for name in FIELDS})
    first: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        if unknown := sorted(self.fields.keys() - set(FIELDS)):
            raise InvalidInput("map", f"has no field {unknown[0]}; there are {', '.join(FIELDS)}")
        for name in ("stream", "type"):
            if not self.fields.get(name):
                raise InvalidInput("map", f"must say where {name} is")
        for name, where in self.fields.items():
            if where == _REST and name not in _BODIES:
                raise InvalidInput("map", f"{_REST} is of data and metadata, not of {name}")

    def incoming(self, row: Mapping[str, Any], at: str) -> Row:
        """The event of a row, checked; or why there can be none."""
        stream = ""
        try:
            stream = self._stream(row)
            index = None if self.closed else self._index(row)
            if self._value(row, "gone") in (True, "true"):
                return Gone(at=at, stream=stream, index=index, raw=row)
            return Incoming(at=at, stream=stream, index=index, event=self._event(row), raw=row)
        except InvalidInput as error:
            return Misfit(at=at, stream=stream, rule=str(error), raw=row)

    def _stream(self, row: Mapping[str, Any]) -> str:
        name = self._text(row, "stream")
        if not name:
            alone = "has tags alone: `epochal tagged import` brings those"
            raise InvalidInput("stream", alone if self._value(row, "tags") else "must be given")
        no_step(stream_name(name), "stream")
        return name

    def _event(self, row: Mapping[str, Any]) -> Event:
        if fault := self._text(row, "fault"):
            raise InvalidInput("fault", fault)
        tags = _tags(self._value(row, "tags"))
        given = self._text(row, "id")
        if not (time := self._value(row, "time")) and time != 0:
            raise InvalidInput("time", "must be given: when it happened is kept")
        event = Event(
            type=self._text(row, "type") or "",
            data=self._body(row, "data"),
            meta=self._body(row, "metadata"),
            timestamp=time_of(time),
            correlation_id=self._text(row, "correlation"),
            causation_id=self._text(row, "causation"),
            tags=tags,
            id=None if tags or not given else parse_event_id(given),
        )
        return checked(event)

    def _index(self, row: Mapping[str, Any]) -> int | None:
        given = self._value(row, "index")
        if given is None or given == "":
            return None
        try:
            index = int(given) - self.first
            if not isinstance(given, str) and index + self.first != given:
                raise ValueError  # noqa: TRY301  a part of a number
        except (TypeError, ValueError):
            raise InvalidInput("index", "must be a whole number") from None
        if not 0 <= index <= MAX_VERSION:
            raise InvalidInput("index", f"must be from {self.first} to {MAX_VERSION:,}")
        return index

    def _body(self, row: Mapping[str, Any], name: str) -> bytes:
        if self.fields.get(name) == _REST:
            return json.dumps({key: value for key, value in row.items() if key not in self._taken()})
        coded = self._text(row, f"{name}64")
        try:
            return b64decode(coded, validate=True) if coded else body_of(self._value(row, name))
        except ValueError as error:
            raise InvalidInput(name, f"cannot be read: {error}") from error

    def _taken(self) -> set[str]:
        found = set[str]()
        for where in self.fields.values():
            columns = _COLUMN.findall(where) if "{" in where else [where]
            found.update(each.partition(".")[0] for each in columns)
        return found

    def _text(self, row: Mapping[str, Any], name: str) -> str | None:
        value = self._value(row, name)
        if value is None or value == "":
            return None
        return value if isinstance(value, str) else str(value)

    def _value(self, row: Mapping[str, Any], name: str) -> Any:
        """What a row has of a field; None where nothing."""
        where = self.fields.get(name)
        if where is None:
            return None
        if where in row:
            return row[where]
        if where.startswith("="):
            return where[1:]
        if "{" not in where:
            value = _column(row, where)
            if value is _ABSENT and name in ("stream", "type"):
                raise InvalidInput(name, f"there is no column {where}")
            return None if value is _ABSENT else value
        return _COLUMN.sub(lambda found: _inside(row, found[1], name), where)


def checked(event: Event) -> Event:
    """The event; raises `InvalidInput` for what no stream takes, by the names of fields."""
    try:
        check_event(event, "event", tags=True)
        for tag in event.tags:
            no_step(check_tag(tag), "tags")
        if event.tags:
            check_type(event.type, "type")
    except InvalidInput as error:
        error.call_it(error.field.removeprefix("event.").removesuffix("_id"))
        raise
    return event


_SECONDS, _MILLISECONDS, _MICROSECONDS, _DIGITS = 11, 14, 17, 20
"""Digits up to which a number of Unix time counts these; with more it counts nanoseconds."""


def time_of(value: Any, name: str = "time") -> str:
    """A time as it is stored: of ISO 8601 text, UTC where it has no offset, or of Unix time in any usual unit.

    Raises:
        InvalidInput: it is neither.
    """
    text = value if isinstance(value, str) else str(value)
    whole, _, fraction = text.partition(".")
    if not (whole.isascii() and whole.isdigit()) or len(whole) == 4:  # noqa: PLR2004  a year
        return format_ticks(parse_time(text, name))
    if len(whole) > _DIGITS or (fraction and not (fraction.isascii() and fraction.isdigit())):
        raise InvalidInput(name, "must be a time: of ISO 8601, or of Unix in digits")
    digits = len(whole)
    unit = 9 if digits <= _SECONDS else 6 if digits <= _MILLISECONDS else 3 if digits <= _MICROSECONDS else 0
    nanoseconds = int(whole) * 10**unit + int((fraction[:unit] or "0").ljust(unit, "0"))
    return format_ticks(parse_time(format_ticks(from_unix_nanoseconds(nanoseconds)), name))


def _refused(constant: str) -> None:
    """NaN and infinities, which Python takes for JSON."""
    raise ValueError(constant)


def body_of(value: Any) -> bytes:
    """A body: text that is JSON, as it is, to the byte; other text and values as JSON; bytes as they are."""
    match value:
        case None | "":
            return b""
        case bytes():
            return value
        case str():
            try:
                plain_json.loads(value, parse_int=str, parse_float=str, parse_constant=_refused)
            except (ValueError, RecursionError):
                return json.dumps(value)
            return value.encode()
        case _:
            return json.dumps(value)


def _tags(value: Any) -> tuple[str, ...]:
    """Of a list, of a JSON array as text, or of text with commas."""
    if not value:
        return ()
    if isinstance(value, str):
        try:
            value = plain_json.loads(value) if value.startswith("[") else value.split(",")
        except ValueError:
            raise InvalidInput("tags", "must be a JSON array of texts") from None
    if not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise InvalidInput("tags", "must be a list of texts")
    return tuple(dict.fromkeys(value))


def _column(row: Mapping[str, Any], path: str) -> Any:
    if path in row:
        return row[path]
    if "." not in path:
        return _ABSENT
    value: Any = row
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _inside(row: Mapping[str, Any], column: str, name: str) -> str:
    value = _column(row, column)
    if value is _ABSENT or value is None or value == "":
        raise InvalidInput(name, f"column {column} is empty")
    return str(value)
