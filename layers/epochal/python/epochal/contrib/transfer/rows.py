"""Events as rows of one flat table, for whatever is no event store: files, SQL, lakes, other people's tools. Pure.

    row_of(event, partition=0, position=at)     an event of the feed, or one that a store has read
    COLUMNS                                     the columns of every row, with their kinds and meanings
    as_json(row)                                a row as a JSON object, as NDJSON and Firehose have it

A row has the body as it is stored: `data` is its text where that is JSON, so numbers keep every digit, and `data64` its
bytes where it is not. A body that is sealed stays sealed. Files outlive the code: a column is never renamed or given
another kind within a `VERSION`, and new ones come last.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from epochal.errors import InvalidInput
from epochal.feed.history import FeedEvent
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import (
    END,
    SEALED,
    TAG_STREAMS,
    Body,
    Recorded,
    Ticks,
    category_of,
    content_of,
    format_ticks,
    from_unix_nanoseconds,
    parse_time,
)
from epochal.model.events import VERSION as SCHEMA_VERSION
from epochal.model.tags import group_of

VERSION: Final = 1
"""Of the columns. A file says it, where its format has a place for that."""

Kind = Literal["text", "int", "time", "texts", "json", "base64", "bool"]
"""What a column holds: `int` has 64 bits, `time` is of UTC to the microsecond, `json` and `base64` are text."""


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of every row; `null`: whether it may have no value."""

    name: str
    kind: Kind
    null: bool
    meaning: str


COLUMNS: Final = (
    RowColumn("category", "text", False, "the stream's category; of an event with tags alone, its first tag's"),
    RowColumn("stream", "text", True, "the stream's name or id; null for an event with tags alone"),
    RowColumn("index", "int", True, "the place in the stream, from 0; with tags alone, in its first tag"),
    RowColumn("partition", "int", True, "the feed's partition, which also tells the layout; null where not known"),
    RowColumn("position", "int", True, "the partition's checkpoint behind the event; null where not known"),
    RowColumn("type", "text", False, "what happened; empty where nothing tells it any more"),
    RowColumn("version", "int", True, "of the type's schema, where the body says one"),
    RowColumn("time", "time", True, "when it happened; null where it is gone, or is no time"),
    RowColumn("tags", "texts", False, "all tags, in their order"),
    RowColumn("correlation", "text", True, "the conversation that it belongs to"),
    RowColumn("causation", "text", True, "what caused it"),
    RowColumn("metadata", "json", True, "the metadata, where it is JSON"),
    RowColumn("data", "json", True, "the body, where it is JSON"),
    RowColumn("data64", "base64", True, "the body, where it is not JSON"),
    RowColumn("metadata64", "base64", True, "the metadata, where it is not JSON"),
    RowColumn("id", "text", True, "the event's id, where it has one"),
    RowColumn("gone", "bool", False, "the event was pruned, deleted or has expired: this is its place"),
    RowColumn("sealed", "bool", False, "the body or the metadata is sealed under its subject's key"),
    RowColumn("fault", "text", True, "why the event cannot be read, where it is there and cannot"),
)  # fmt: skip


class Row(NamedTuple):
    """An event as a row: `COLUMNS` has the meanings. `time` counts microseconds since 1970."""

    category: str
    stream: str | None
    index: int | None  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    partition: int | None
    position: int | None
    type: str
    version: int | None
    time: int | None
    tags: tuple[str, ...]
    correlation: str | None
    causation: str | None
    metadata: str | None
    data: str | None
    data64: str | None
    metadata64: str | None
    id: str | None
    gone: bool
    sealed: bool
    fault: str | None


def row_of(
    event: Recorded | FeedEvent,
    *,
    partition: int | None = None,
    position: int | None = None,
    type: str = "",  # noqa: A002  as the column is named
    category: Callable[[str], str] | None = None,
) -> Row:
    """The row of an event.

    Args:
        partition, position: where the feed has it: its partition, and the checkpoint behind its entry.
        type: what the feed knows of an event that is gone or cannot be read.
        category: of a stream, as its layout tells it; else what its name tells.

    Raises:
        InvalidInput: a body was left in the bucket.
    """
    fault: Exception | None = getattr(event, "fault", None)
    gone = getattr(event, "gone", None) is not None
    data = meta = _NOTHING
    if not gone and fault is None:
        data, meta = _read(event.data), _read(event.meta)
    stream, index = _place(event)
    return Row(  # in the order of its columns: an export makes one for every event there ever was
        (category or _category_of)(stream or event.stream or _stream_of_tag(event.tags)),
        stream,
        index,
        partition,
        None if position is None else int(position),
        event.type or type,
        data.version,
        _micros(event.timestamp),
        event.tags,
        event.correlation_id,
        event.causation_id,
        meta.text,
        data.text,
        data.base64,
        meta.base64,
        event.id or None,
        gone,
        data.sealed or meta.sealed,
        None if fault is None else str(fault),
    )


def as_json(row: Row) -> dict[str, Any]:
    """A row as a JSON object of all columns: times as ISO 8601 text, bodies as the text that they are."""
    return row._asdict() | {"tags": list(row.tags), "time": None if row.time is None else time_text(row.time)}


def time_text(micros: int) -> str:
    """A row's time as ISO 8601: `2026-01-02T03:04:05.123456Z`."""
    return f"{format_ticks(Ticks(_EPOCH + micros * _PER_MICRO))[:26]}Z"


def time_of(timestamp: str) -> Ticks:
    """When an event happened. A number is Unix time: other libraries store one.

    Raises:
        InvalidInput: it is no time.
    """
    if not (timestamp.isascii() and timestamp.isdigit()):
        return parse_time(timestamp)
    return from_unix_nanoseconds(int(timestamp) * (1 if len(timestamp) >= _NANOSECONDS else 1_000_000))


def micros_of(ticks: Ticks) -> int:
    """A time as rows count it: digits below a microsecond are cut."""
    return (ticks - _EPOCH) // _PER_MICRO


_EPOCH: Final = from_unix_nanoseconds(0)
_PER_MICRO: Final = 10

_NANOSECONDS: Final = 17
"""Digits from which on a number that another library stores for a time counts nanoseconds; below, milliseconds."""


def _micros(timestamp: str) -> int | None:
    try:
        if timestamp[26:] in _STORED and timestamp[19] == "." and timestamp.isascii():
            digits = timestamp[20:26]
            return _second(timestamp[:19]) + int(digits) if digits.isdigit() else None
        ticks = time_of(timestamp)
    except InvalidInput:
        return None
    return micros_of(ticks) if ticks < END else None


_STORED: Final = frozenset(f"{digit}+00:00" for digit in range(10))
"""How times end that stores of ours have written: all other digits are where they are in each."""


@lru_cache(maxsize=1_024)
def _second(text: str) -> int:
    """Neighbours happened within a second."""
    return micros_of(parse_time(text))


def _place(event: Recorded | FeedEvent) -> tuple[str | None, int | None]:
    """The stream of an event, and its place there. The feed has an event with tags in each of their streams, too."""
    home: str = getattr(event, "home", "")
    if home:
        return home, event.index if event.stream == home else None
    if not event.stream:
        return None, None
    tag = event.stream.removeprefix(TAG_STREAMS)
    in_tag = tag != event.stream or (isinstance(event, FeedEvent) and tag in event.tags)
    return None if in_tag else event.stream, event.index


def _category_of(stream: str) -> str:
    tag = stream.removeprefix(TAG_STREAMS)
    return category_of(stream) if tag == stream else f"{TAG_STREAMS}{group_of(tag)}"


def _stream_of_tag(tags: tuple[str, ...]) -> str:
    return f"{TAG_STREAMS}{tags[0]}" if tags else ""


class _Read(NamedTuple):
    """What a row says of a body."""

    text: str | None = None
    base64: str | None = None
    version: int | None = None
    sealed: bool = False


_NOTHING: Final = _Read()


def _read(body: Body) -> _Read:
    """A body, as text where it is JSON by the letter: UTF-8 without a mark of byte order, and numbers of any length."""
    content = content_of(body)
    if not content:
        return _NOTHING
    try:
        text = content.decode()
        value = _value(text)
    except (ValueError, RecursionError):
        return _Read(base64=b64encode(content).decode())
    if not isinstance(value, dict):
        return _Read(text)
    version = value.get(SCHEMA_VERSION, "")
    said = int(version) if isinstance(version, _Whole) and len(version) < _DIGITS else None
    return _Read(text, version=said, sealed=SEALED in value)


def _value(text: str) -> Any:
    try:
        value, end = _scanned(text, 0)
    except StopIteration:
        value, end = None, -1
    # With blanks around it, or something more, it is for the decoder, which takes twice as long.
    return value if end == len(text) else _DECODER.decode(text)


class _Whole(str):
    """A whole number, as its digits: nothing is computed of them."""

    __slots__ = ()


_DIGITS: Final = 18
"""A number of so many may be beyond 64 bits."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_Whole, parse_float=str, parse_constant=_no_constant)
_scanned: Final[Callable[[str, int], tuple[Any, int]]] = vars(_DECODER)["scan_once"]
