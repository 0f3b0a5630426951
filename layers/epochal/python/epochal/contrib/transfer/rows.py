"""Events as rows of one flat table, for programs that are no event stores: files, SQL, data lakes, other tools. Pure.

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
from epochal.feed.events import FeedEvent
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Body, content_of
from epochal.model.body_marks import SEALED
from epochal.model.body_marks import VERSION as SCHEMA_VERSION
from epochal.model.events import Recorded
from epochal.model.moments import END, Ticks, format_ticks, from_unix_nanoseconds, parse_time
from epochal.model.stream_names import TAG_STREAMS, category_of
from epochal.model.tags import group_of

VERSION: Final = 1
"""Version of the columns. A Parquet file has it in its metadata."""

Kind = Literal["text", "int", "time", "texts", "json", "base64", "bool"]
"""What a column holds: `int` has 64 bits, `time` is of UTC to the microsecond, `json` and `base64` are text."""


@dataclass(frozen=True, slots=True)
class RowColumn:
    """Column of every row.

    Attributes:
        name: name of the column
        kind: kind of its values
        null: whether a row may have no value in it
        meaning: what the values are, for readers
    """

    name: str
    kind: Kind
    null: bool
    meaning: str


COLUMNS: Final = (
    RowColumn("category", "text", False, "the category of the stream; without a stream, that of the first tag"),
    RowColumn("stream", "text", True, "the name or id of the stream; null for an event that has only tags"),
    RowColumn("index", "int", True, "the index in the stream, from 0; without a stream, the index in the first tag"),
    RowColumn("partition", "int", True, "the partition of the feed, which also tells the layout; null if not known"),
    RowColumn("position", "int", True, "the checkpoint after the event in its partition; null if not known"),
    RowColumn("type", "text", False, "the type of the event; empty if it is no longer known"),
    RowColumn("version", "int", True, "the version of the type's schema, if the body contains one"),
    RowColumn("time", "time", True, "the time of the event; null if it is no longer known, or is not a valid time"),
    RowColumn("tags", "texts", False, "all tags of the event, in their order"),
    RowColumn("correlation", "text", True, "the id of the conversation that the event belongs to"),
    RowColumn("causation", "text", True, "the id of the message that caused the event"),
    RowColumn("metadata", "json", True, "the metadata, if they are JSON"),
    RowColumn("data", "json", True, "the body, if it is JSON"),
    RowColumn("data64", "base64", True, "the body, if it is not JSON"),
    RowColumn("metadata64", "base64", True, "the metadata, if they are not JSON"),
    RowColumn("id", "text", True, "the id of the event, if it has one"),
    RowColumn("gone", "bool", False, "true if the event was pruned, deleted or has expired: only its place is left"),
    RowColumn("sealed", "bool", False, "true if the body or the metadata are sealed under the key of a subject"),
    RowColumn("fault", "text", True, "the reason why the event cannot be read, if it is there and cannot be read"),
)  # fmt: skip


class Row(NamedTuple):
    """Event as a row of the table; `COLUMNS` documents each field.

    `time` is in microseconds since 1970.
    """

    category: str
    stream: str | None
    index: int | None  # type: ignore[assignment]  # hides the method of tuple
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
    """Make the export row of an event that was read from a feed or a stream.

    Args:
        event: event of the feed or of a stream
        partition: feed partition of the event; None where it is not known
        position: checkpoint behind the event's feed entry; None where it is not known
        type: event type in the feed's entry, used where the event itself is gone or cannot be read
        category: function from a stream name to its category; by default the name tells it

    Raises:
        InvalidInput: a body was left in the bucket.
    """
    fault: Exception | None = getattr(event, "fault", None)
    is_gone = getattr(event, "gone", None) is not None
    data = meta = _NOTHING
    if not is_gone and fault is None:
        data, meta = _read(event.data), _read(event.meta)
    stream, index = _place(event)
    return Row(  # by position, which is faster: an export makes a row of every event
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
        is_gone,
        data.sealed or meta.sealed,
        None if fault is None else str(fault),
    )


def as_json(row: Row) -> dict[str, Any]:
    """Convert a row to a JSON object with all columns: times as ISO 8601 text, bodies as text.

    Args:
        row: row of an export.
    """
    return row._asdict() | {"tags": list(row.tags), "time": None if row.time is None else time_text(row.time)}


def time_text(micros: int) -> str:
    """Format a time in microseconds since 1970 as ISO 8601 text: `2026-01-02T03:04:05.123456Z`."""
    return f"{format_ticks(Ticks(_EPOCH + micros * _PER_MICRO))[:26]}Z"


def time_of(timestamp: str) -> Ticks:
    """Parse an event's timestamp, ISO 8601 text or Unix time in digits, and return ticks of 100 ns.

    Other libraries store Unix time: of 17 digits or more it counts nanoseconds, of fewer milliseconds.

    Raises:
        InvalidInput: the text is no time.
    """
    if not (timestamp.isascii() and timestamp.isdigit()):
        return parse_time(timestamp)
    return from_unix_nanoseconds(int(timestamp) * (1 if len(timestamp) >= _NANOSECONDS else 1_000_000))


def micros_of(ticks: Ticks) -> int:
    """Convert a time in ticks of 100 ns to microseconds since 1970, rounded down."""
    return (ticks - _EPOCH) // _PER_MICRO


_EPOCH: Final = from_unix_nanoseconds(0)
_PER_MICRO: Final = 10

_NANOSECONDS: Final = 17
"""Digits from which on a number that another library stores for a time counts nanoseconds; below, milliseconds."""


def _micros(timestamp: str) -> int | None:
    """Convert the timestamp of a stored event to microseconds since 1970; None if it is no valid time.

    Timestamps in the store's own format take a short path that parses each second once.
    """
    try:
        if timestamp[26:] in _STORED and timestamp[19] == "." and timestamp.isascii():
            digits = timestamp[20:26]
            return _second(timestamp[:19]) + int(digits) if digits.isdigit() else None
        ticks = time_of(timestamp)
    except InvalidInput:
        return None
    return micros_of(ticks) if ticks < END else None


_STORED: Final = frozenset(f"{digit}+00:00" for digit in range(10))
"""Endings of the timestamps that Epochal's stores write; their other digits have fixed places."""


@lru_cache(maxsize=1_024)
def _second(text: str) -> int:
    """Convert ISO 8601 text to microseconds since 1970, with a cache: neighbouring events share a second."""
    return micros_of(parse_time(text))


def _place(event: Recorded | FeedEvent) -> tuple[str | None, int | None]:
    """Return an event's home stream, None if it has tags alone, and its index, None if it is not known.

    The feed has an event with tags in each of its streams. Its row has the name of its home stream, and the index
    if the event was read there. A row of an event with tags alone has no stream name.
    """
    home: str = getattr(event, "home", "")
    if home:
        return home, event.index if event.stream == home else None
    if not event.stream:
        return None, None
    tag = event.stream.removeprefix(TAG_STREAMS)
    in_tag = tag != event.stream or (isinstance(event, FeedEvent) and tag in event.tags)
    return None if in_tag else event.stream, event.index


def _category_of(stream: str) -> str:
    """Return the category of a stream name; for the stream of a tag, that of the tag's group."""
    tag = stream.removeprefix(TAG_STREAMS)
    return category_of(stream) if tag == stream else f"{TAG_STREAMS}{group_of(tag)}"


def _stream_of_tag(tags: tuple[str, ...]) -> str:
    """Return the stream name of the first tag; empty where there are no tags."""
    return f"{TAG_STREAMS}{tags[0]}" if tags else ""


class _Read(NamedTuple):
    """Body as a row holds it.

    Attributes:
        text: body as JSON text; None where it is empty or not JSON
        base64: body in base64; None where it is empty or JSON
        version: schema version that the body says; None where it says none
        sealed: whether the body is sealed under its subject's key
    """

    text: str | None = None
    base64: str | None = None
    version: int | None = None
    sealed: bool = False


_NOTHING: Final = _Read()


def _read(body: Body) -> _Read:
    """Decode a body to JSON text, else base64, with its schema version and whether it is sealed.

    JSON is taken by the letter: UTF-8 without a byte order mark, and numbers of any length.
    """
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
    number = int(version) if isinstance(version, _Whole) and len(version) < _DIGITS else None
    return _Read(text, version=number, sealed=SEALED in value)


def _value(text: str) -> Any:
    """Parse JSON text, integers as `_Whole` and other numbers as text; raise `ValueError` for other text.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        value, end = _scanned(text, 0)
    except StopIteration:
        value, end = None, -1
    # Text with blanks or anything else around the value goes to the full decoder, which takes twice as long.
    return value if end == len(text) else _DECODER.decode(text)


class _Whole(str):
    """Integer of JSON text, kept as its digits, since nothing is computed with it."""

    __slots__ = ()


_DIGITS: Final = 18
"""Digits from which on an integer may exceed 64 bits."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_Whole, parse_float=str, parse_constant=_no_constant)
_scanned: Final[Callable[[str, int], tuple[Any, int]]] = vars(_DECODER)["scan_once"]
