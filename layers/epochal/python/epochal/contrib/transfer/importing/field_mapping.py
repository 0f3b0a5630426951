"""Mapping from the columns of any source to the fields of events. Pure.

A mapping has an entry for each field of an event:

    amount              the column of that name, or in JSON the member; `payload.amount` is one inside another
    Order-{order_id}    template: text with columns in it
    =OrderPlaced        constant: this text
    *                   for data and metadata: an object of all columns that no other field uses

Without a mapping the columns are those of our own exports (`epochal.contrib.transfer.rows`).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from epochal.codec import json
from epochal.contrib.transfer.importing.encoded_names import encode_name
from epochal.contrib.transfer.importing.incoming import Gone, Incoming, Misfit, Row, checked
from epochal.contrib.transfer.importing.tag_mapping import parse_tags, tags_in
from epochal.contrib.transfer.importing.values import body_of, time_of
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Event
from epochal.model.stream_names import MAX_NAME_BYTES, no_step, stream_name
from epochal.model.tags import parse_event_id
from epochal.model.tokens import MAX_VERSION

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
"""Fields of an event, named as in `epochal.contrib.transfer.rows`. Rows with `gone` or `fault` give no event."""

_BODIES: Final = ("metadata", "data")
_REQUIRED: Final = ("stream", "type")
_SOON: Final = (*_REQUIRED, "time", *_BODIES)
REST: Final = "*"
"""Mapping of data or metadata to an object of all columns that no other field uses."""

_COLUMN: Final = re.compile(r"\{([^{}]+)\}")


class _TagsAlone(InvalidInput):
    """Raised for an event with tags that belongs to no stream."""


class _Absent:
    """Type of the value that stands for a column which a row does not have."""


_ABSENT: Final = _Absent()


_Get = Callable[[Mapping[str, Any]], Any]
"""Function from a row to the value of a field; None where the row has none."""

Where = str | Sequence[str]
"""Entry of a mapping: column, template or constant; for tags also a list of these."""


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Mapping from the columns of a source to the fields of an event.

    Attributes:
        fields: column, template or constant of each field, in the notation of this module
        first: index that the source gives the first event of a stream
        closed: whether to number events anew and ignore the source's indices, so that gaps close
        whole: whether every row has all columns, so that a missing one is misspelt
        encoded: whether names of streams are encoded, once their templates are filled in
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
        """Raise `InvalidInput` if the mapping is not valid, and make the functions that read a row's fields.

        Raises:
            InvalidInput: a field does not exist, stream or type is not mapped, or `*` is given for another field
                than data and metadata.
        """
        if unknown := sorted(self.fields.keys() - set(FIELDS)):
            raise InvalidInput(
                "map", f"has the unknown field {unknown[0]}; the fields are {', '.join(FIELDS)}"
            )
        for name in _REQUIRED:
            if not self.fields.get(name):
                raise InvalidInput("map", f"must include the field {name}")
        for name, where in self.fields.items():
            if where == REST and name not in _BODIES:
                raise InvalidInput("map", f"{REST} is allowed for data and metadata, not for {name}")
        parts = {
            name: parse_tags(where) if name == "tags" else (str(where),)
            for name, where in self.fields.items()
        }
        wheres = [where for part in parts.values() for where in part]
        columns = {where: tuple(_COLUMN.findall(where)) or (where,) for where in wheres}
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_taken", columns)
        get = {
            name: _getter(name, *parts.get(name, ("",)), needed=self.whole)
            for name in FIELDS
            if name != "tags"
        }
        object.__setattr__(self, "_get", {**get, "tags": self._tags_getter()})

    def _tags_getter(self) -> _Get:
        """Make a function that reads a row's tags, from one column or with a tag for each part of the mapping."""
        parts = self._parts.get("tags", ())
        getters = [(part, _getter("tags", part, needed=True)) for part in parts]
        if isinstance(self.fields.get("tags", ""), str) and not any("{" in part for part in parts):
            return _getter("tags", *(parts or ("",)), needed=self.whole)
        return lambda row: [_tag(part, get(row)) for part, get in getters]

    def incoming(self, row: Mapping[str, Any], place: str) -> Row:
        """Convert a row to a checked event (`Incoming`), a `Gone`, or a `Misfit` with the reason.

        Args:
            row: values by column
            place: place of the row in the source, for people
        """
        stream = ""
        try:
            stream = self._stream(row)
            index = None if self.closed else self._index(row)
            if (marker := self._get["gone"](row)) not in _NOT and _is_gone(marker):
                return Gone(at=place, stream=stream, index=index, raw=row)
            event, renamed = self._event(row)
            return Incoming(at=place, stream=stream, index=index, event=event, raw=row, renamed=renamed)
        except InvalidInput as error:
            alone = isinstance(error, _TagsAlone)
            return Misfit(at=place, stream=stream, rule=str(error), raw=row, of_none=alone)

    def columns(self, fields: Collection[str]) -> list[tuple[str, str, str]]:
        """Return field, entry and name of each column of the given fields that at least one row must have.

        Args:
            fields: names of fields of the mapping

        Returns:
            For each column the field, its entry in the mapping, and the column's name.
        """
        return [
            (name, where, column)
            for name, parts in self._parts.items()
            for where in parts
            if name in fields and where[:1] not in "=*" and (self.whole or name in _SOON or "{" in where)
            for column in self._taken[where]
            if not self.whole or "." not in column  # a row may lack members of an object
        ]

    def _stream(self, row: Mapping[str, Any]) -> str:
        """Return a row's stream name, encoded if the mapping says so; raise if it is missing or not valid.

        Raises:
            InvalidInput: the row has no name, or none that a stream may have.
            _TagsAlone: the row has tags, but no name.
        """
        name = _text(self._get["stream"](row), "stream")
        if not name:
            if self._get["tags"](row):
                raise _TagsAlone(
                    "stream", "is missing: import events that have only tags with `epochal tagged import`"
                )
            raise InvalidInput("stream", "must be given")
        return no_step(_encoded(name) if self.encoded else _unencoded(name), "stream")

    def _event(self, row: Mapping[str, Any]) -> tuple[Event, bool]:
        """Build a row's checked event; return it and whether its id is replaced, or raise `InvalidInput`.

        Raises:
            InvalidInput: a field is missing or not valid, or the row says that the event cannot be read.
        """
        get = self._get
        if fault := _text(get["fault"](row), "fault"):
            raise InvalidInput("fault", fault)
        tags, event_id = tags_in(get["tags"](row)), _text(get["id"](row), "id")
        if (time := _text(get["time"](row), "time")) is None:
            raise InvalidInput("time", "must be given: the import keeps the time of every event")
        if event_id and not _UUID.fullmatch(event_id):
            event_id = parse_event_id(event_id)
        event = Event(
            type=_text(get["type"](row), "type") or "",
            data=self._body(row, "data"),
            meta=self._body(row, "metadata"),
            timestamp=time_of(time),
            correlation_id=_text(get["correlation"](row), "correlation"),
            causation_id=_text(get["causation"](row), "causation"),
            tags=tags,
            id=None if tags else event_id,
        )
        return checked(event), bool(tags and event_id)

    def _index(self, row: Mapping[str, Any]) -> int | None:
        """Return a row's index counted from 0, None without one; raise if it is not whole or out of range.

        Raises:
            InvalidInput: the index is no whole number, or out of range.
        """
        value = self._get["index"](row)
        if value is None or value == "":
            return None
        if isinstance(value, str) and _DIGITS_ONLY.fullmatch(value):
            value = int(value)
        elif isinstance(value, str | bool):
            value = None
        try:
            if not self.first <= value <= MAX_VERSION + self.first:
                raise InvalidInput("index", f"must be from {self.first} to {MAX_VERSION:,}")
            if (index := int(value)) == value:
                return index - self.first
        except (TypeError, ArithmeticError):
            pass
        raise InvalidInput("index", "must be a whole number")

    def _body(self, row: Mapping[str, Any], name: str) -> bytes:
        """Read a row's data or metadata, whichever `name` says, as the bytes of a body.

        Raises:
            InvalidInput: the value cannot be converted to a body.
        """
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
    """Encode a text as the name of a stream; raise `InvalidInput` if that is too long.

    Raises:
        InvalidInput: the encoded name is too long.
    """
    name = encode_name(text)
    if len(name) > MAX_NAME_BYTES:
        raise InvalidInput("stream", f"must be at most {MAX_NAME_BYTES} bytes once encoded, got {len(name)}")
    return stream_name(name)


def _unencoded(text: str) -> str:
    """Return a text unchanged; raise `InvalidInput` if it is no name of a stream.

    Raises:
        InvalidInput: the text is no such name; the error names `--encode-names` where encoding would help.
    """
    try:
        return stream_name(text)
    except InvalidInput as error:
        if text.startswith("$") or len(encode_name(text)) > MAX_NAME_BYTES:
            raise
        raise InvalidInput("stream", f"{error.rule}; --encode-names encodes other characters") from None


_NOT: Final = (None, False, "", "false", "False")
_IS: Final = (True, "true", "True")
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_DIGITS_ONLY: Final = re.compile(r"-?[0-9]{1,20}")


def _is_gone(value: Any) -> bool:
    """Return True if the value of a row's field `gone` is true; raise `InvalidInput` for other values.

    Raises:
        InvalidInput: the value is neither true nor false.
    """
    if value in _IS:
        return True
    raise InvalidInput("gone", "must be true or false")


def _text(value: Any, name: str) -> str | None:
    """Convert a value to text: bytes as UTF-8, numbers as digits; None for an empty value.

    Raises:
        InvalidInput: the value is an object or a list, or its bytes are not UTF-8.
    """
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
    """Make a function that reads a field from a row, by the field's entry in the mapping.

    A column whose name is the mapping's entry itself takes precedence over the entry's meaning.

    Args:
        name: name of the field
        where: entry of the mapping; empty for none
        needed: whether a missing column is an error
    """
    if not where or where == REST:
        return lambda _: None
    if where.startswith("="):
        constant = where[1:]
        return lambda row: row.get(where, constant)
    if "{" in where:

        def filled(row: Mapping[str, Any]) -> Any:
            """Fill the columns of a row into the template."""
            if where in row:
                return row[where]
            return _COLUMN.sub(lambda match_: _inside(row, match_[1], name), where)

        return filled
    needed = name in _REQUIRED or (needed and "." not in where)
    if "." not in where and not needed:
        return lambda row: row.get(where)

    def found(row: Mapping[str, Any]) -> Any:
        """Return the value of the column in a row; None if it is missing and not needed."""
        value = row[where] if where in row else _column(row, where)
        if value is _ABSENT:
            if needed:
                raise InvalidInput(name, f"column {where} does not exist")
            return None
        return value

    return found


def _without(row: Mapping[str, Any], taken: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return a row without the columns that the mapping uses for other fields.

    If members of an object are used, the rest of the object stays, unless nothing is left of it.

    Args:
        row: values by column
        taken: columns that each entry of the mapping uses; its own text, where the row has a column of that name
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
    """Remove the value at a path from nested objects, and each object that becomes empty by that."""
    name, *more = path
    inner = rest.get(name)
    if not more:
        rest.pop(name, None)
    elif isinstance(inner, Mapping):
        rest[name] = remaining = dict(inner)
        _take_out(remaining, more)
        if not remaining and inner:
            del rest[name]


def _tag(part: str, value: Any) -> str:
    """Return a value as the text of a tag; raise `InvalidInput` if it is empty or has blanks around it.

    Raises:
        InvalidInput: the value is empty, no text, or begins or ends with a blank.
    """
    text = _text(value, "tags")
    if text is None:
        raise InvalidInput("tags", f"column {part} is empty")
    return text if part.startswith("=") else _require_trimmed(part, text)


def _require_trimmed(column: str, text: str) -> str:
    """Return a tag's text unchanged; raise `InvalidInput` if it begins or ends with a blank.

    Raises:
        InvalidInput: the text begins or ends with a blank.
    """
    if text != text.strip():
        raise InvalidInput("tags", f"column {column} begins or ends with whitespace: {text!r}")
    return text


def has(row: Mapping[str, Any], path: str) -> bool:
    """Whether a row has a column, or a member at a dotted path."""
    return _column(row, path) is not _ABSENT


def _column(row: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column, or at a dotted path inside one; `_ABSENT` if the row has none."""
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
    """Return a column's text for a template; raise `InvalidInput` if it is missing, empty or no text.

    Raises:
        InvalidInput: the column is missing or empty, or is no text.
    """
    value = _column(row, column)
    text = None if value is _ABSENT else _text(value, name)
    if text is None:
        raise InvalidInput(name, f"column {column} is empty")
    return _require_trimmed(column, text) if name == "tags" else text
