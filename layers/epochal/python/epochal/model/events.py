"""Events and unfolds as users hand them in and get them back, and their time.

Bodies are bytes, usually UTF-8 JSON; what they mean is the user's codec's business. A body that is already in
the bucket is a `Claim`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from math import isinf
from typing import TYPE_CHECKING, Any, Final, NewType, TypeVar

from epochal.errors import CorruptData, InvalidInput
from epochal.lazy_dataclasses import dataclass, field, fields
from epochal.model.kinds import must_be, must_be_list, must_be_text
from epochal.model.negative_zero import has_negative_zero

if TYPE_CHECKING:
    from epochal.model.tags import Trail
    from epochal.model.versions import Position

# Time to the 100 ns, as the original libraries keep it.
#
# `Ticks` count 100 ns since 0001-01-01 UTC (the unit of .NET, hence of FORMATS §1 and §3). Python's datetime
# stops at microseconds, so a tick's last digit is carried beside it.

Ticks = NewType("Ticks", int)

MAX_EXPIRES: Final = 10**11
"""Epoch seconds at which an item may expire: in the year 5138."""

PER_SECOND: Final = 10_000_000
_PER_MINUTE: Final = 60 * PER_SECOND
_BEGIN: Final = datetime(1, 1, 1)  # noqa: DTZ001  naive, so that its text has no offset
_EPOCH: Final = _BEGIN.replace(tzinfo=UTC)
END: Final = 315_537_897_600 * PER_SECOND
"""Ticks of the year 10000: the first that is no time."""

_UNIX_EPOCH_TICKS: Final = 62_135_596_800 * PER_SECOND
_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9})\d*)?\s*(Z|z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)


def from_unix_nanoseconds(nanoseconds: int) -> Ticks:
    """Convert `time.time_ns()` into ticks."""
    return Ticks(_UNIX_EPOCH_TICKS + nanoseconds // 100)


def read_moment(moment: datetime | str, field: str) -> Ticks:
    """Convert a datetime with a time zone, or ISO 8601 text (UTC without an offset), into ticks.

    Raises:
        InvalidInput: `field` is neither.
    """
    if not isinstance(moment, datetime):
        return parse_time(moment, field)
    if moment.tzinfo is None:
        raise InvalidInput(field, "must be a datetime with a time zone, such as datetime.now(UTC)")
    return Ticks((moment - _EPOCH) // timedelta(microseconds=1) * (PER_SECOND // 1_000_000))


def unix_seconds(ticks: Ticks) -> int:
    """Convert ticks into whole seconds since 1970, the unit of TTL attributes."""
    return (ticks - _UNIX_EPOCH_TICKS) // PER_SECOND


def format_ticks(ticks: Ticks) -> str:
    """Format ticks as they are stored: `yyyy-MM-ddTHH:mm:ss.fffffff+00:00`."""
    minute, rest = divmod(ticks, _PER_MINUTE)
    second = str(1_000_000_000 + rest)  # a format of nine digits takes twice as long
    return f"{_day(minute // 1_440)}{_clock(minute % 1_440)}{second[1:3]}.{second[3:]}+00:00"


# A replay formats a time for each event, and those of a stream are seldom of one second.
_day = lru_cache(maxsize=1_024)(lambda day: f"{_BEGIN.date() + timedelta(days=day)}T")
_clock = lru_cache(maxsize=1_440)(lambda minute: f"{minute // 60:02d}:{minute % 60:02d}:")


def parse_time(text: str, field: str = "timestamp") -> Ticks:
    """Parse ISO 8601 text into ticks; it is UTC without an offset, and digits below 100 ns are cut.

    Raises:
        InvalidInput: `field` is not an ISO 8601 date and time, or is outside the years 1 to 9999.
    """
    must_be(str, text, field, "ISO 8601 text")
    match = _ISO.fullmatch(text)
    if match is None:
        raise InvalidInput(field, "must be an ISO 8601 date and time, such as 2026-01-31T12:00:00Z")
    day, clock, fraction, zone = match.groups()
    try:
        seconds = _whole_seconds(f"{day}T{clock}", zone)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            field, "must be an ISO 8601 date and time, such as 2026-01-31T12:00:00Z"
        ) from error
    ticks = seconds * PER_SECOND + int((fraction or "").ljust(7, "0")[:7])
    if not 0 <= ticks < END:
        raise InvalidInput(field, "must lie in the years 1 to 9999 UTC")
    return Ticks(ticks)


def time_or_now(text: str | None, now: str, field: str) -> str:
    """Return a caller's time in its stored form, or `now` if the text is None; raises as `parse_time`."""
    return now if text is None else format_ticks(parse_time(text, field))


@lru_cache(maxsize=256)
def _whole_seconds(text: str, zone: str | None) -> int:
    """Parse a time without a fraction into seconds since year 1.

    Cached, because neighbouring events of a stream often happened within a second.
    """
    return (datetime.fromisoformat(text).replace(tzinfo=_zone(zone)) - _EPOCH) // timedelta(seconds=1)


def _zone(text: str | None) -> timezone:
    """Parse an offset such as `+02:00` or `Z` into a timezone; None is UTC."""
    if text is None or text in "Zz":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(":") or 0))
    return timezone(-offset if text[0] == "-" else offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim check of a body that is stored in the bucket instead of the item.

    Attributes:
        key: object key.
        sha256: 64 hex digits over the object's content.
        size: bytes of the object.
        encoding: how the object's content encodes the body (0 direct, 1 deflate, 2 brotli).
        timer: name of the timer that the body sets, which outlives the object.
    """

    key: str
    sha256: str
    size: int
    encoding: int = 0
    timer: str = ""


Body = bytes | Claim
"""Bytes, or where they are in the bucket."""


def content_of(body: Body) -> bytes:
    """Return a body's bytes; raise `InvalidInput` if it was left in the bucket."""
    if isinstance(body, Claim):
        raise InvalidInput("fetch", f"must be true to read a body in the bucket, such as {body.key}")
    return body


def body_size(body: Body) -> int:
    """Return the size of a body in bytes, wherever it is stored."""
    return body.size if isinstance(body, Claim) else len(body)


def json_of(body: Body, where: str) -> Any:
    """Parse a body that is plain JSON; raises as `read_json`, and `InvalidInput` if it is in the bucket."""
    if isinstance(body, Claim):
        raise InvalidInput("fetch", f"must be true to read {where}: its body is in the bucket, at {body.key}")
    return read_json(body, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event to append.

    Attributes:
        type: what happened; 1 to 512 bytes of UTF-8.
        data: the body: bytes, or a claim on an object that is in the bucket already.
        meta: metadata, likewise; empty for none.
        timestamp: ISO 8601; when it happened. None: the moment of the append.
        correlation_id: the conversation it belongs to.
        causation_id: what caused it.
        tags: what it concerns, each at most 512 bytes of printable text; order and repetition do not matter.
        id: a UUID. Of an event that has tags alone None lets the store choose, and with an id a repeat of the append
            writes nothing, however late it is. In a named stream it is kept, and a batch whose events all have one is
            known again as `Streams.append` says; with tags it must not be given there.
        untagged: the domain's event that `EventCodec.tagged` made it of; not stored.
    """

    type: str
    data: Body = b""
    meta: Body = b""
    timestamp: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None
    untagged: object = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the types of all fields: bodies must be bytes, and tags a list, not one text."""
        _check_fields(self.type, self.data, self.meta, self.timestamp)
        _check_text(self.correlation_id, "correlation_id")
        _check_text(self.causation_id, "causation_id")
        if self.tags != ():
            must_be_list(str, self.tags, "tags")
        _check_text(self.id, "id")

    @classmethod
    def json(
        cls,
        type: str,  # noqa: A002  as the field is named
        value: object,
        /,
        *,
        meta: Body = b"",
        timestamp: str | None = None,
        correlation_id: str | None = None,
        causation_id: str | None = None,
        tags: tuple[str, ...] = (),
        id: str | None = None,  # noqa: A002  likewise
    ) -> Event:
        """Build an event whose data are a value as plain JSON, written as `json.dumps` writes it.

        Raises:
            InvalidInput: the value, or what is at the path that is named, is not JSON. NaN is not, nor are members
                that only codecs and subjects write.
        """
        return cls(
            type=type,
            data=write_json(value),
            meta=meta,
            timestamp=timestamp,
            correlation_id=correlation_id,
            causation_id=causation_id,
            tags=tags,
            id=id,
        )

    def plain(self, field: str) -> Event:  # noqa: ARG002  what it has besides, it may have to refuse by name
        """Return the event without fields that only another library's tables keep."""
        return self

    @property
    def content(self) -> bytes:
        """Return `data` as bytes; raise `InvalidInput` if it is a claim."""
        return content_of(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event as the store holds it.

    Attributes:
        stream, index: it is event `index` of `stream`, counted from 0; "" and 0 where it has tags alone.
        timestamp: ISO 8601; when it happened.
        append_id: of the first event of each append (16 bytes); None elsewhere, and on events that other libraries
            wrote.
        tags: what it concerns, in order.
        id: a UUID: of an event with tags, or where the caller chose one; else empty.
        place: of an event with tags, which are ordered by this text; else empty.
    """

    stream: str = ""
    index: int = 0
    type: str
    data: Body
    meta: Body = b""
    timestamp: str
    correlation_id: str | None = None
    causation_id: str | None = None
    append_id: bytes | None = None
    tags: tuple[str, ...] = ()
    id: str = ""
    place: str = ""
    trail: Trail | None = field(default=None, compare=False, repr=False)

    @property
    def besides(self) -> Mapping[str, str | None]:
        """Fields that only another library's tables keep of the event, by their names in answers."""
        return {}

    def again(self) -> Event:
        """Return a new `Event` with the same content, to append it elsewhere."""
        return Event(
            type=self.type,
            data=self.data,
            meta=self.meta,
            timestamp=self.timestamp,
            correlation_id=self.correlation_id,
            causation_id=self.causation_id,
            tags=self.tags,
            id=self.id or None,
        )

    @property
    def position(self) -> Position | None:
        """The position to append `after` that includes the events up to this one.

        After a query it is a position of that query. For an event in the answer to an append it covers all tags of the
        event; for one that was found by its id or in a listing, it covers the tag in which it was found. None for
        events that calls on named streams return.
        """
        return None if self.trail is None else self.trail.at(self.key)

    @property
    def size(self) -> int:
        """Size of the event's bodies in bytes, wherever they are stored."""
        return body_size(self.data) + body_size(self.meta)

    @property
    def key(self) -> str:
        """The event's unique sort key among all events with tags: its place and its id."""
        return f"{self.place}#{self.id}"

    @property
    def content(self) -> bytes:
        """Return `data` as bytes; raise `InvalidInput` if it is a claim."""
        return content_of(self.data)

    def json(self) -> Any:
        """Parse the event's data as plain JSON, as `json.loads` does.

        Raises:
            InvalidInput: data are in the bucket, sealed, or of a version above 1: its codec reads that.
            CorruptData: they are not JSON.
        """
        if self.stream:
            return json_of(self.data, f"{self.stream} (index {self.index}), {self.type}")
        return json_of(self.data, f"{self.type} {self.id} under {', '.join(self.tags) or 'no tags'}")


T = TypeVar("T")


def fast_constructor(kind: type[T]) -> Callable[..., T]:
    """Build a constructor for a frozen, slotted dataclass that takes one sixth of the time.

    It takes all fields by position, in their order. A class with the same slots, in which nothing is frozen, sets the
    fields, and then the new object's class is changed to the frozen one.
    """
    names = [member.name for member in fields(kind)]  # type: ignore[arg-type]  # it is one
    body = "".join(f"\n self.{name} = {name}" for name in names)
    attrs: dict[str, Any] = {"__slots__": names}
    exec(f"def __init__(self, {', '.join(names)}):{body}\n self.__class__ = _kind", {"_kind": kind}, attrs)  # noqa: S102  names of fields
    return type(kind.__name__, (), attrs)


recorded: Final = fast_constructor(Recorded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfold:
    """State derived from events, stored beside the newest of them in the stream's head.

    The next write of unfolds replaces all that are there.

    Attributes:
        type: what it is; 1 to 512 bytes of UTF-8.
        data, meta, timestamp: as of an `Event`.
    """

    type: str
    data: Body = b""
    meta: Body = b""
    timestamp: str | None = None

    def __post_init__(self) -> None:
        """Check the types of the fields."""
        _check_fields(self.type, self.data, self.meta, self.timestamp)

    @classmethod
    def json(
        cls,
        type: str,  # noqa: A002  as the field is named
        value: object,
        /,
        *,
        meta: Body = b"",
        timestamp: str | None = None,
    ) -> Unfold:
        """Build an unfold with `value` as plain JSON; raise `InvalidInput` if JSON cannot hold the value."""
        return cls(type=type, data=write_json(value), meta=meta, timestamp=timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedUnfold:
    """An unfold as stored; `version` is the stream's version that it was made from."""

    version: int
    type: str
    data: Body
    meta: Body
    timestamp: str

    @property
    def content(self) -> bytes:
        """Return `data` as bytes; raise `InvalidInput` if it is a claim."""
        return content_of(self.data)

    def json(self) -> Any:
        """Parse `data` as plain JSON; raise `InvalidInput` if a codec with upcasts wrote it."""
        return json_of(self.data, f"the unfold {self.type} of version {self.version}")


def _check_fields(kind: str, data: Body, meta: Body, timestamp: str | None) -> None:
    """Check the types of the fields that events and unfolds share."""
    must_be(str, kind, "type", "text")
    must_be((bytes, Claim), data, "data", "bytes")
    must_be((bytes, Claim), meta, "meta", "bytes")
    must_be((str, type(None)), timestamp, "timestamp", "ISO 8601 text")


def _check_text(text: str | None, field: str) -> None:
    """Check that an optional field is text."""
    must_be((str, type(None)), text, field, "text")


# Bodies that are plain JSON, written and read without a codec.
#
# Whatever else the library puts into a JSON object has a member of its own there: the version of what upcasts know, and
# what is sealed. Plain JSON has neither: these members are not written here, and nothing is read past them.

VERSION: Final = "$v"
"""Member of an object that a codec with upcasts has stored."""

SEALED: Final = "$sealed"
"""Member of a sealed body."""

# Made once. What holds itself ends like what is nested too deep: nothing looks for it on the way.
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)


def sealed_in(value: Any) -> Iterator[dict[str, Any]]:
    """Iterate over the objects in a JSON value that are sealed for a subject, at any depth (FORMATS §7)."""
    level = [value]
    while level:
        yield from (node for node in level if isinstance(node, dict) and SEALED in node)
        nested = (
            node.values() if isinstance(node, dict) else node
            for node in level
            if isinstance(node, dict | list)
        )
        level = [inner for node in nested for inner in node]


def holds_seal(body: Body) -> bool:
    """Return whether a body contains anything sealed for a subject, at any depth, even encoded.

    What only looks sealed counts, too. A body that is still in the bucket may be sealed, so it counts as sealed.
    """
    if isinstance(body, Claim) or SEALED.encode() in body:
        return True
    from epochal.model.seal_search import finds_seal  # noqa: PLC0415  few events are looked into

    return finds_seal(body)


def write_json(value: Any) -> bytes:
    """Encode a value as a JSON body; raise `InvalidInput` with the path to whatever is not JSON."""
    for mark in (VERSION, SEALED) if isinstance(value, dict) else ():
        if mark in value:
            raise InvalidInput(
                f"value.{mark}", "must not be in plain JSON: only codecs and subjects write this name"
            )
    try:
        try:
            body = _ENCODER.encode(value).encode()
        except (TypeError, ValueError):
            path, culprit = _find_non_json("value", value)
        else:
            unnamed = find_names_not_text("value", value)
            if unnamed is None:
                return body
            path, culprit = unnamed
    except RecursionError:
        raise InvalidInput("value", "must not be nested this deeply, nor contain itself") from None
    raise InvalidInput(path, f"must be JSON, and {_describe(culprit)} is not")


def find_names_not_text(path: str, value: Any) -> tuple[str, dict[Any, Any]] | None:
    """Find an object whose names are not text, which JSON's writers change into text; return its path and it."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return path, value
    elif not isinstance(value, list | tuple):
        return None
    for name, member in _inside(value):
        if isinstance(member, dict | list | tuple):
            unnamed = find_names_not_text(f"{path}.{name}", member)
            if unnamed is not None:
                return unnamed
    return None


def read_json(body: bytes | str, where: str) -> Any:
    """Parse a body as JSON, but refuse one that is sealed or that only its codec can read.

    Args:
        where: which event it is, for errors.

    Raises:
        InvalidInput: it is sealed, or of a version above 1, which only its codec can read as today's.
        CorruptData: it is not JSON, or a number in it is beyond a float; a codec can read that as a `Decimal`.
    """
    try:
        text = body if isinstance(body, str) else body.decode("utf-8-sig")
        value = (_SIGNED_DECODER if has_negative_zero(text) else _DECODER).decode(text)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{where}: its body is not JSON: {error}") from error
    if isinstance(value, dict):
        if value.get(VERSION, 1) != 1:
            raise InvalidInput(
                "codec", f"must be used to read {where}: it is stored as version {value[VERSION]!r}"
            )
        if SEALED in value:
            raise InvalidInput("unseal", f"must be called before {where} is read as JSON: it is sealed")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    """Read a number as a float; raise `ValueError` if it is beyond the largest one."""
    value = float(digits)
    if isinf(value):
        raise ValueError(f"the number {digits[:32]} is beyond a float; a codec can read it as a Decimal")
    return value


# Made once: to make one takes longer than to read most bodies.
_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
_SIGNED_DECODER: Final = json.JSONDecoder(
    parse_float=_finite,
    parse_int=lambda digits: -0.0 if digits == "-0" else int(digits),
    parse_constant=_no_constant,
)


def _find_non_json(path: str, value: Any) -> tuple[str, object]:
    """Find the innermost value that is not JSON; return the path to it and the value."""
    for name, member in _inside(value):
        try:
            _ENCODER.encode(member).encode()
        except (TypeError, ValueError):
            return _find_non_json(f"{path}.{name}", member)
    return path, value


def _inside(value: Any) -> Iterable[tuple[object, Any]]:
    """Return the members of an object or list with their names or indices."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list | tuple) else ()


def _describe(value: object) -> str:
    """Describe, for an error message, a value that JSON cannot hold."""
    if isinstance(value, float):
        return str(value)
    if isinstance(value, str):
        return "a lone surrogate"
    if isinstance(value, dict):
        return "an object whose names are not text"
    return f"a {type(value).__name__}"


# Stream names: `Category-id`. Names that begin with `$` are the system's.
#
# A name is a partition key and a path segment, so it is kept to characters that need no escaping in either.

StreamName = NewType("StreamName", str)

TAG_STREAMS: Final = "$tag-"
"""The stream of a tag has this prefix and the tag as its name."""

MAX_TAG_BYTES: Final = 512
MAX_TYPE_BYTES: Final = 512
MAX_ID_BYTES: Final = 1024

EVENT_IDS: Final = "$event-"
"""The record that says where the event of an id is has this prefix and the id as its key."""

SEALS: Final = "$seal"
"""The key of the item that holds the key of tokens' seals."""

TIMER_SET: Final = "$timer-set"
TIMER_CANCELLED: Final = "$timer-cancelled"
TIMER_FIRED: Final = "$timer-fired"
TIMERS: Final = frozenset((TIMER_SET, TIMER_CANCELLED, TIMER_FIRED))
"""Types of what is stored of timers (`scheduling`). No codec knows them: what reads by codec passes them over."""

MAX_NAME_BYTES: Final = 512
USER_NAME: Final = r"[A-Za-z0-9\-_.:~@+=]{1,512}"
"""The pattern of a user's stream name."""

_USER: Final = re.compile(USER_NAME, re.ASCII)


def stream_name(text: str, field: str = "stream") -> StreamName:
    """Check the name of a user's stream and return it as a `StreamName`.

    Raises:
        InvalidInput: `field` is empty, over 512 bytes, reserved (`$...`), or has other characters than
            ASCII letters, digits and ``- _ . : ~ @ + =``.
    """
    must_be(str, text, field, "text")
    if _USER.fullmatch(text):
        return StreamName(text)
    if not text:
        raise InvalidInput(field, "must not be empty")
    if text.startswith("$"):
        raise InvalidInput(field, "names that begin with $ are reserved for the system")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        size = len(text.encode("utf-8", "surrogatepass"))
        raise InvalidInput(field, f"must be at most {MAX_NAME_BYTES} bytes, got {size}")
    raise InvalidInput(field, "may hold only ASCII letters, digits and - _ . : ~ @ + =")


def check_event(event: Event, field: str, *, tags: bool) -> None:
    """Raise `InvalidInput` if no stream takes the event's type or ids; tags and times are not checked."""
    must_be_text(event.type, MAX_TYPE_BYTES, f"{field}.type")
    for name, value in (("correlation_id", event.correlation_id), ("causation_id", event.causation_id)):
        if value is not None:
            must_be_text(value, MAX_ID_BYTES, f"{field}.{name}")
    if event.tags and not tags:
        raise InvalidInput(f"{field}.tags", "must not be given: this store keeps no tags")
    if event.id is not None and event.tags:
        rule = "must not be given with tags in a stream: give the append an idempotency key"
        raise InvalidInput(f"{field}.id", rule)


def no_step(text: str, field: str) -> str:
    """Return the text, but refuse `.` and `..` as new names.

    HTTP clients take these for steps in a path: they send `/streams/../events` as `/events`. What has such a name
    already can be read.
    """
    if text in (".", ".."):
        raise InvalidInput(field, "must not be . or .., which HTTP clients take for steps in a path")
    return text


def is_fed(name: str) -> bool:
    """Return whether the events of a stream are in the feed.

    Of the system's streams, those of tags are; an event under a reserved tag is also under a tag of its own.
    """
    return not name.startswith("$") or (name.startswith(TAG_STREAMS) and name[len(TAG_STREAMS) :][:1] != "$")


def category_of(name: str) -> str:
    """Return the category of a stream: what precedes the first `-`, or the whole name."""
    return name.partition("-")[0]
