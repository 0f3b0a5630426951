"""Events and unfolds: those that users append, and those that the store returns.

Bodies are bytes or claims (`model.bodies`), and timestamps are ISO 8601 text (`model.moments`). There are three ways to
read a body: `data` is the body as it is, bytes or a claim; `content` is the same as bytes, and raises where it is a
claim; `json()` of a recorded event parses it. `Event.json(type, value)` makes an event of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field, fields
from epochal.model.bodies import Body, Claim, body_size, content_of
from epochal.model.kinds import must_be, must_be_list, must_be_text
from epochal.model.moments import format_ticks, read_moment
from epochal.model.plain_json import json_of, write_json

if TYPE_CHECKING:
    from epochal.model.positions import Position
    from epochal.model.tags import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event to append.

    Attributes:
        type: type of the event, which says what happened; 1 to 512 bytes of UTF-8.
        data: body: bytes, or a `Claim` that names an object already in the bucket; `content` is the body as bytes.
        meta: metadata: bytes, or a `Claim` that names an object in the bucket; empty for none.
        timestamp: when the event happened: ISO 8601 text or a datetime, with a time zone; None for the moment of the
            append.
        correlation_id: id of the conversation that the event belongs to; None for none.
        causation_id: id of the event or command that caused the event; None for none.
        tags: tags: what the event concerns, each at most 512 bytes of printable text; order and repetition do not
            matter.
        id: UUID of the event. For an event that has tags alone, None lets the store choose one, and with an id a repeat
            of the append writes nothing, however late. In a named stream the id is kept, and a batch whose events all
            have ids is recognized when repeated, as `Streams.append` says; an event with tags must have none there.
        untagged: the domain's event that `EventCodec.tagged` encoded as this event; not stored.
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

    if TYPE_CHECKING:  # a datetime is taken, and becomes text

        def __init__(
            self,
            *,
            type: str,  # noqa: A002  as the field is named
            data: Body = ...,
            meta: Body = ...,
            timestamp: datetime | str | None = ...,
            correlation_id: str | None = ...,
            causation_id: str | None = ...,
            tags: Sequence[str] = ...,
            id: str | None = ...,  # noqa: A002  likewise
            untagged: object = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check the types of all fields, and store a timestamp that is a `datetime` as text."""
        timestamp: object = self.timestamp
        if isinstance(timestamp, datetime):
            object.__setattr__(self, "timestamp", format_ticks(read_moment(timestamp, "timestamp")))
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
        timestamp: datetime | str | None = None,
        correlation_id: str | None = None,
        causation_id: str | None = None,
        tags: tuple[str, ...] = (),
        id: str | None = None,  # noqa: A002  likewise
    ) -> Event:
        """Build an event with `value` as plain, compact JSON; raise `InvalidInput` if JSON cannot hold it.

        Args:
            type: what happened, as of an `Event`.
            value: the value.
            meta, timestamp, correlation_id, causation_id, tags, id: as of an `Event`.

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

    def without_foreign_fields(self, field: str) -> Event:  # noqa: ARG002  what it has, it may have to refuse by name
        """Return the event without fields that only another library's tables keep; by default unchanged.

        Args:
            field: name of the event in an error.
        """
        return self

    @property
    def content(self) -> bytes:
        """Return the body as bytes; raise `InvalidInput` if it is in the bucket (`data` is a `Claim`)."""
        return content_of(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event as the store holds it.

    Attributes:
        index: index of the event in its stream, from 0; 0 for an event that has tags alone.
        stream: name of the event's stream; empty for an event that has tags alone.
        type: type of the event.
        data: body: bytes, or a `Claim` that names its object in the bucket.
        meta: metadata: bytes, or a `Claim` that names their object in the bucket; empty for none.
        timestamp: when the event happened: ISO 8601.
        correlation_id: id of the conversation that the event belongs to; None for none.
        causation_id: id of the event or command that caused the event; None for none.
        append_id: id of the append, 16 bytes, on the first event of each append; None on other events, and on events
            that other libraries wrote.
        tags: tags of the event, in order.
        id: id, a UUID, of an event with tags or of one for which the caller chose an id; else empty.
        place: text by which events with tags sort in their order; empty for an event without tags.
        trail: progress of the read at this event, from which the event's position is computed; None if it was not read
            by a query.
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
        """Fields of the event that exist only in another library's tables, by their names in answers."""
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
        """Position of a read up to this event, to append `after`; None for events read from named streams.

        After a query it is a position of that query. For an event in the answer to an append it covers all tags of the
        event; for one that was found by its id or in a listing, it covers the tag in which it was found. None for
        events that calls on named streams return.
        """
        return None if self.trail is None else self.trail.at(self.key)

    @property
    def size(self) -> int:
        """Number of bytes of the event's data and metadata together, in the item or the bucket."""
        return body_size(self.data) + body_size(self.meta)

    @property
    def key(self) -> str:
        """The event's unique sort key among all events with tags: its place and its id."""
        return f"{self.place}#{self.id}"

    @property
    def content(self) -> bytes:
        """Return the body as bytes; raise `InvalidInput` if it was left in the bucket (`data` is a `Claim`)."""
        return content_of(self.data)

    def json(self) -> Any:
        """Parse the data as plain JSON; raise `CorruptData` if invalid, `InvalidInput` if it needs a codec.

        Values are those of `json.loads`, but NaN and numbers beyond a float are invalid.

        Raises:
            InvalidInput: data are in the bucket, sealed, or of a version above 1: its codec reads that.
            CorruptData: they are not JSON.
        """
        if self.stream:
            return json_of(self.data, f"{self.stream} (index {self.index}), {self.type}")
        return json_of(self.data, f"{self.type} {self.id} under {', '.join(self.tags) or 'no tags'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlinedEvent(Recorded):
    """A recorded event without its bodies, since they may be larger than its reader has room for.

    Attributes:
        stored_bytes: bytes of its bodies as they are stored.
        decode: returns the event with its bodies if none has more than so many bytes, else an outline again. Raises
            `CorruptData` for a body that cannot be decoded.
    """

    stored_bytes: int
    decode: Callable[[int], Recorded] = field(compare=False, repr=False)


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
    """State derived from events (a snapshot), stored with the newest events in the stream's head (its last item).

    The next write of unfolds replaces all that are there.

    Attributes:
        type: type of the unfold; 1 to 512 bytes of UTF-8.
        data: body: bytes, or a `Claim` that names an object in the bucket.
        meta: metadata: bytes, or a `Claim` that names an object in the bucket; empty for none.
        timestamp: time at which the unfold was made: ISO 8601 text or a datetime, with a time zone; None for the moment
            of the append.
    """

    type: str
    data: Body = b""
    meta: Body = b""
    timestamp: str | None = None

    if TYPE_CHECKING:  # a datetime is taken, and becomes text

        def __init__(
            self,
            *,
            type: str,  # noqa: A002  as the field is named
            data: Body = ...,
            meta: Body = ...,
            timestamp: datetime | str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check the types of the fields."""
        timestamp: object = self.timestamp
        if isinstance(timestamp, datetime):
            object.__setattr__(self, "timestamp", format_ticks(read_moment(timestamp, "timestamp")))
        _check_fields(self.type, self.data, self.meta, self.timestamp)

    @classmethod
    def json(
        cls,
        type: str,  # noqa: A002  as the field is named
        value: object,
        /,
        *,
        meta: Body = b"",
        timestamp: datetime | str | None = None,
    ) -> Unfold:
        """Build an unfold with `value` as plain JSON; raise `InvalidInput` if JSON cannot hold the value.

        Args:
            type: what it is, as of an `Unfold`.
            value: the value.
            meta, timestamp: as of an `Event`.
        """
        return cls(type=type, data=write_json(value), meta=meta, timestamp=timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedUnfold:
    """A stored unfold (snapshot of a stream's state); `version` is the stream's version that it was made from.

    Attributes:
        version: version of the stream that the unfold was made from.
        type: type of the unfold.
        data: body: bytes, or a `Claim` that names its object in the bucket.
        meta: metadata: bytes, or a `Claim` that names their object in the bucket.
        timestamp: time at which the unfold was made: ISO 8601.
    """

    version: int
    type: str
    data: Body
    meta: Body
    timestamp: str

    @property
    def content(self) -> bytes:
        """Return the body as bytes; raise `InvalidInput` if it was left in the bucket (`data` is a `Claim`)."""
        return content_of(self.data)

    def json(self) -> Any:
        """Parse `data` as plain JSON; raise `InvalidInput` if a codec with upcasts wrote it."""
        return json_of(self.data, f"the unfold {self.type} of version {self.version}")


def _check_fields(kind: str, data: Body, meta: Body, timestamp: str | None) -> None:
    """Check the types of the fields that events and unfolds share."""
    must_be(str, kind, "type", "text")
    must_be((bytes, Claim), data, "data", "bytes")
    must_be((bytes, Claim), meta, "meta", "bytes")
    must_be((str, type(None)), timestamp, "timestamp", "ISO 8601 text or a datetime")


def _check_text(text: str | None, field: str) -> None:
    """Check that an optional field is text."""
    must_be((str, type(None)), text, field, "text")


MAX_TAG_BYTES: Final = 512
MAX_TYPE_BYTES: Final = 512
MAX_ID_BYTES: Final = 1024


def check_event(event: Event, field: str, *, tags: bool) -> None:
    """Raise `InvalidInput` for a bad type, correlation or causation id, or tags with an id or not allowed.

    The form of tags, and times, are not checked.
    """
    must_be_text(event.type, MAX_TYPE_BYTES, f"{field}.type")
    for name, value in (("correlation_id", event.correlation_id), ("causation_id", event.causation_id)):
        if value is not None:
            must_be_text(value, MAX_ID_BYTES, f"{field}.{name}")
    if event.tags and not tags:
        raise InvalidInput(f"{field}.tags", "must not be given: this store keeps no tags")
    if event.id is not None and event.tags:
        rule = "must not be given with tags in a stream: give the append an idempotency key"
        raise InvalidInput(f"{field}.id", rule)
