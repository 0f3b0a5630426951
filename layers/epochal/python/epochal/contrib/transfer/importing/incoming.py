"""An event as it comes from elsewhere, and the fields of any source mapped to it. Pure.

A mapping says for each field of an event where it is in what the source has:

    amount              the column of that name, or in JSON the member; `payload.amount` is one inside another
    Order-{order_id}    text with columns in it
    =OrderPlaced        this text
    *                   of data and metadata: an object of all columns that nothing else takes

Without a mapping the columns are those of our own exports (`epochal.contrib.transfer.rows`).
"""

from __future__ import annotations

import json as plain_json
import re
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from epochal.codec import json
from epochal.contrib.transfer.importing.encoded_names import encode_name
from epochal.contrib.transfer.importing.tag_mapping import parse_tags, tags_in
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import (
    MAX_NAME_BYTES,
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
        renamed: it had an id, and gets another: a stream gives events with tags theirs.
    """

    at: str
    stream: str
    index: int | None
    event: Event
    raw: Any = None
    renamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The place of an event that the source has no more."""

    at: str
    stream: str
    index: int | None
    raw: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """What is not brought in: `rule` says why. `stream` is empty where that is not known.

    Attributes:
        waits: it would fit, and waits for another row before it to be mended.
        of_none: it belongs to no stream, so nothing waits for it.
    """

    at: str
    stream: str
    rule: str
    raw: Any = None
    waits: bool = False
    of_none: bool = False


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
"""Of an event, as `epochal.contrib.transfer.rows` names them. `gone` and `fault` have no events behind them."""

_BODIES: Final = ("metadata", "data")
_REQUIRED: Final = ("stream", "type")
_SOON: Final = (*_REQUIRED, "time", *_BODIES)
REST: Final = "*"
"""Of data and metadata: all columns that no other field names."""

_COLUMN: Final = re.compile(r"\{([^{}]+)\}")


class _TagsAlone(InvalidInput):
    """An event of no stream."""


class _Absent:
    """What a column is that a row does not have."""


_ABSENT: Final = _Absent()


_Get = Callable[[Mapping[str, Any]], Any]
"""What a row has of a field; None where nothing."""

Where = str | Sequence[str]
"""What a mapping says of a field; a list is of tags."""


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Where the fields of an event are.

    Attributes:
        fields: by field, as this module says.
        first: the index that the source gives the first event of a stream.
        closed: whether streams close up where the source's indices have gaps: these are not asked for then.
        whole: every row has all columns: one that is not there is misspelt.
        encoded: names of streams are encoded, once their templates are filled in.
    """

    fields: Mapping[str, Where] = field(default_factory=lambda: {name: name for name in FIELDS})
    first: int = 0
    closed: bool = False
    whole: bool = False
    encoded: bool = False
    _get: Mapping[str, _Get] = field(init=False, repr=False, compare=False)
    _taken: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    _parts: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if unknown := sorted(self.fields.keys() - set(FIELDS)):
            raise InvalidInput("map", f"has no field {unknown[0]}; there are {', '.join(FIELDS)}")
        for name in _REQUIRED:
            if not self.fields.get(name):
                raise InvalidInput("map", f"must say where {name} is")
        for name, where in self.fields.items():
            if where == REST and name not in _BODIES:
                raise InvalidInput("map", f"{REST} is of data and metadata, not of {name}")
        parts = {
            name: parse_tags(where) if name == "tags" else (str(where),)
            for name, where in self.fields.items()
        }
        wheres = [where for part in parts.values() for where in part]
        taken = {where: tuple(_COLUMN.findall(where)) or (where,) for where in wheres}
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_taken", taken)
        get = {
            name: _getter(name, *parts.get(name, ("",)), needed=self.whole)
            for name in FIELDS
            if name != "tags"
        }
        object.__setattr__(self, "_get", {**get, "tags": self._tags_getter()})

    def _tags_getter(self) -> _Get:
        """Reads the tags of a row: of the one column that holds them, or a tag for each part of the mapping."""
        parts = self._parts.get("tags", ())
        getters = [(part, _getter("tags", part, needed=True)) for part in parts]
        if isinstance(self.fields.get("tags", ""), str) and not any("{" in part for part in parts):
            return _getter("tags", *(parts or ("",)), needed=self.whole)
        return lambda row: [_tag(part, get(row)) for part, get in getters]

    def incoming(self, row: Mapping[str, Any], at: str) -> Row:
        """The event of a row, checked; or why there can be none."""
        stream = ""
        try:
            stream = self._stream(row)
            index = None if self.closed else self._index(row)
            if (gone := self._get["gone"](row)) not in _NOT and _is_gone(gone):
                return Gone(at=at, stream=stream, index=index, raw=row)
            event, renamed = self._event(row)
            return Incoming(at=at, stream=stream, index=index, event=event, raw=row, renamed=renamed)
        except InvalidInput as error:
            alone = isinstance(error, _TagsAlone)
            return Misfit(at=at, stream=stream, rule=str(error), raw=row, of_none=alone)

    def columns(self, fields: Collection[str]) -> list[tuple[str, str, str]]:
        """Of these fields, with the name and all that the mapping says: columns that are in no row only if misspelt."""
        return [
            (name, where, column)
            for name, parts in self._parts.items()
            for where in parts
            if name in fields and where[:1] not in "=*" and (self.whole or name in _SOON or "{" in where)
            for column in self._taken[where]
            if not self.whole or "." not in column  # of an object in it, which a row may lack
        ]

    def _stream(self, row: Mapping[str, Any]) -> str:
        name = _text(self._get["stream"](row), "stream")
        if not name:
            if self._get["tags"](row):
                raise _TagsAlone("stream", "has tags alone: `epochal tagged import` brings those")
            raise InvalidInput("stream", "must be given")
        return no_step(_encoded(name) if self.encoded else _unencoded(name), "stream")

    def _event(self, row: Mapping[str, Any]) -> tuple[Event, bool]:
        """The event, and whether the store names it anew."""
        get = self._get
        if fault := _text(get["fault"](row), "fault"):
            raise InvalidInput("fault", fault)
        tags, given = tags_in(get["tags"](row)), _text(get["id"](row), "id")
        if (time := _text(get["time"](row), "time")) is None:
            raise InvalidInput("time", "must be given: when it happened is kept")
        if given and not _UUID.fullmatch(given):
            given = parse_event_id(given)
        event = Event(
            type=_text(get["type"](row), "type") or "",
            data=self._body(row, "data"),
            meta=self._body(row, "metadata"),
            timestamp=time_of(time),
            correlation_id=_text(get["correlation"](row), "correlation"),
            causation_id=_text(get["causation"](row), "causation"),
            tags=tags,
            id=None if tags else given,
        )
        return checked(event), bool(tags and given)

    def _index(self, row: Mapping[str, Any]) -> int | None:
        given = self._get["index"](row)
        if given is None or given == "":
            return None
        if isinstance(given, str) and _DIGITS_ONLY.fullmatch(given):
            given = int(given)
        elif isinstance(given, str | bool):
            given = None
        try:
            if not self.first <= given <= MAX_VERSION + self.first:
                raise InvalidInput("index", f"must be from {self.first} to {MAX_VERSION:,}")
            if (index := int(given)) == given:
                return index - self.first
        except (TypeError, ArithmeticError):
            pass
        raise InvalidInput("index", "must be a whole number")

    def _body(self, row: Mapping[str, Any], name: str) -> bytes:
        try:
            if self.fields.get(name) == REST:
                return json.dumps_again(_without(row, self._taken))
            coded = _text(self._get[f"{name}64"](row), name)
            return b64decode(coded, validate=True) if coded else body_of(self._get[name](row))
        except InvalidInput:
            raise
        except (ValueError, TypeError) as error:
            raise InvalidInput(name, f"cannot be read: {error}") from error


def _encoded(text: str) -> str:
    name = encode_name(text)
    if len(name) > MAX_NAME_BYTES:
        raise InvalidInput("stream", f"must be at most {MAX_NAME_BYTES} bytes once encoded, got {len(name)}")
    return stream_name(name)


def _unencoded(text: str) -> str:
    try:
        return stream_name(text)
    except InvalidInput as error:
        if text.startswith("$") or len(encode_name(text)) > MAX_NAME_BYTES:
            raise
        raise InvalidInput("stream", f"{error.rule}; --encode-names encodes others") from None


_NOT: Final = (None, False, "", "false", "False")
_IS: Final = (True, "true", "True")
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_DIGITS_ONLY: Final = re.compile(r"-?[0-9]{1,20}")


def _is_gone(value: Any) -> bool:
    if value in _IS:
        return True
    raise InvalidInput("gone", "must be true or false")


def _text(value: Any, name: str) -> str | None:
    """Text as it is, also where a file of Parquet has it as bytes; of a number its digits."""
    match value:
        case str():
            return value or None
        case None:
            return None
        case bytes():
            try:
                return value.decode() or None
            except UnicodeDecodeError:
                raise InvalidInput(name, "must be UTF-8") from None
        case Mapping() | list() | tuple():
            raise InvalidInput(name, "must be text")
        case _:
            return str(value)


def _getter(name: str, where: str, *, needed: bool) -> _Get:
    """Reads a field. A column of the very name that a mapping has wins over what that says else."""
    if not where or where == REST:
        return lambda _: None
    if where.startswith("="):
        constant = where[1:]
        return lambda row: row.get(where, constant)
    if "{" in where:

        def filled(row: Mapping[str, Any]) -> Any:
            if where in row:
                return row[where]
            return _COLUMN.sub(lambda found: _inside(row, found[1], name), where)

        return filled
    needed = name in _REQUIRED or (needed and "." not in where)
    if "." not in where and not needed:
        return lambda row: row.get(where)

    def found(row: Mapping[str, Any]) -> Any:
        value = row[where] if where in row else _column(row, where)
        if value is _ABSENT:
            if needed:
                raise InvalidInput(name, f"there is no column {where}")
            return None
        return value

    return found


def _without(row: Mapping[str, Any], taken: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """What nothing takes of a row. Of an object that something is taken out of, the rest stays, if there is any.

    Args:
        taken: the columns of what a mapping has: its own name, where a row has a column of that.
    """
    rest = dict(row)
    for path in (
        path for where, columns in taken.items() for path in ((where,) if where in row else columns)
    ):
        if path in rest:
            del rest[path]
        elif "." in path and path not in row:
            _take_out(rest, path.split("."))
    return rest


def _take_out(rest: dict[str, Any], path: Sequence[str]) -> None:
    name, *more = path
    inner = rest.get(name)
    if not more:
        rest.pop(name, None)
    elif isinstance(inner, Mapping):
        rest[name] = left = dict(inner)
        _take_out(left, more)
        if not left and inner:
            del rest[name]


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


_USUAL: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(?:Z|\+00:00)?"
)


@lru_cache(maxsize=1_024)
def _second(text: str) -> str:
    """Neighbours happened within a second."""
    return format_ticks(parse_time(text, "time"))[:19]


def time_of(value: Any, name: str = "time") -> str:
    """A time as it is stored: of ISO 8601 text, UTC where it has no offset, or of Unix time in any usual unit.

    Raises:
        InvalidInput: it is neither.
    """
    text = value if isinstance(value, str) else str(value)
    if usual := _USUAL.fullmatch(text):
        second, fraction = usual.groups()
        return f"{_second(second)}.{(fraction or '').ljust(7, '0')[:7]}+00:00"
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


_DECODER: Final = plain_json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refused)


def body_of(value: Any) -> bytes:
    """A body: text that is JSON, as it is, to the byte; other text and values as JSON; bytes as they are."""
    match value:
        case None | "":
            return b""
        case bytes():
            return value
        case str():
            try:
                _DECODER.decode(value)
            except (ValueError, RecursionError):
                return json.dumps_again(value)
            return value.encode()
        case _:
            return json.dumps_again(value)


def _tag(part: str, value: Any) -> str:
    """The one tag of a part of a mapping."""
    text = _text(value, "tags")
    if text is None:
        raise InvalidInput("tags", f"column {part} is empty")
    return text if part.startswith("=") else _trimmed(part, text)


def _trimmed(column: str, text: str) -> str:
    """The text, if it begins and ends with no blank: the tag would look like another one."""
    if text != text.strip():
        raise InvalidInput("tags", f"column {column} begins or ends with a blank: {text!r}")
    return text


def has(row: Mapping[str, Any], path: str) -> bool:
    """Whether a row has a column, or a member inside of one."""
    return _column(row, path) is not _ABSENT


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
    text = None if value is _ABSENT else _text(value, name)
    if text is None:
        raise InvalidInput(name, f"column {column} is empty")
    return _trimmed(column, text) if name == "tags" else text
