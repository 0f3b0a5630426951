"""Events with tags, queries over them, and positions: the vocabulary of Dynamic Consistency Boundaries (dcb.events).

A tag is `group:value` or any other text. A query is a disjunction of items; an item asks for any of its types
and all of its tags.
"""

from __future__ import annotations

import re
import uuid
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NewType

from epochal.errors import CorruptData, InvalidInput
from epochal.model.events import Body, Claim
from epochal.model.json_bodies import read_json, write_json
from epochal.model.kinds import must_be, must_be_list, must_be_text, must_be_whole
from epochal.model.names import MAX_TAG_BYTES
from epochal.model.times import MAX_EXPIRES, Ticks
from epochal.model.versions import Position, Reached

SortableId = NewType("SortableId", str)
"""19 digits of 100 ns ticks since year 1, then 11 digits of randomness: ordered as text, and as a number."""

MAX_TYPE_BYTES: Final = 512

MAX_ASKED_BYTES: Final = 2_000
"""Bytes of a tag or a type that a query names: with `SERVICE#` and `TAG#` a key holds no more."""
RANDOM_DIGITS: Final = 11
_SORTABLE: Final = re.compile(r"\d{30}", re.ASCII)

UNTAGGED: Final = ""
"""The reserved tag of events without tags, so that they too have a head."""

EVERYTHING: Final = "$all"
"""The reserved tag of every event, where type heads are on."""


def type_tag(kind: str) -> str:
    """The reserved tag of a type's events, where type heads are on."""
    return f"$type:{kind}"


def is_reserved(tag: str) -> bool:
    """Whether a tag is the store's own."""
    return not tag or tag.startswith("$")


def group_of(tag: str) -> str:
    """What precedes a tag's first `:`; the whole tag where there is none."""
    return tag.partition(":")[0]


def sortable_id(ticks: Ticks, random: int) -> SortableId:
    """The id of a moment; `random` tells ids of one moment apart."""
    return SortableId(f"{ticks:019d}{random % 10**RANDOM_DIGITS:0{RANDOM_DIGITS}d}")


def later_than(proposed: SortableId, last: str, random: int) -> SortableId:
    """`proposed`, or where that does not exceed `last`, an id of the moment of `last` or of the tick after it.

    `random` tells it from other ids made after the same `last`, by writers to other tags.
    """
    if proposed > last:
        return proposed
    moment = int(last[:-RANDOM_DIGITS])
    chosen = sortable_id(Ticks(moment), random)
    return chosen if chosen > last else sortable_id(Ticks(moment + 1), random)


def parse_sortable_id(text: str, field: str = "since") -> SortableId:
    """Read a sortable id; raises `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    if not _SORTABLE.fullmatch(text):
        raise InvalidInput(field, "must be a sortable id of 30 digits")
    return SortableId(text)


def own_tags(events: Iterable[TaggedEvent | RecordedTaggedEvent]) -> tuple[str, ...]:
    """The tags of events, in order; those that have none are together under "" (a tag of no user's)."""
    return tuple(sorted({tag for event in events for tag in event.tags or (UNTAGGED,)}))


def parse_event_id(text: str, field: str = "id") -> str:
    """Read an event id, a UUID; raises `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise InvalidInput(field, "must be a UUID") from None


def check_tag(tag: str, field: str = "tags") -> str:
    """A tag of a user's; raises `InvalidInput` naming `field`."""
    must_be(str, tag, field, "text")
    if not tag:
        raise InvalidInput(field, "a tag must not be empty")
    if tag.startswith("$"):
        raise InvalidInput(field, "tags that begin with $ are reserved for the system")
    if tag.startswith(":"):
        raise InvalidInput(field, "a tag must not begin with :, which ends its group")
    if not tag.isprintable() or len(tag.encode("utf-8", "surrogatepass")) > MAX_TAG_BYTES:
        raise InvalidInput(field, f"a tag is at most {MAX_TAG_BYTES} bytes of printable text")
    return tag


def check_type(kind: str, field: str = "type") -> str:
    """An event type of a user's; raises `InvalidInput` naming `field`."""
    if not 0 < len(kind.encode("utf-8", "surrogatepass")) <= MAX_TYPE_BYTES or not kind.isprintable():
        raise InvalidInput(field, f"a type is 1 to {MAX_TYPE_BYTES} bytes of printable text")
    return kind


class Unfetched(bytes):
    """A body that is in the bucket, in its place. A store fetches it before a caller gets the event.

    An event to append may have one for its data: then the object must be there, or among the uploads.
    """

    claim: Claim
    text: bool

    @classmethod
    def of(cls, claim: Claim, *, text: bool) -> Unfetched:
        """Where the body is, and whether it is text."""
        found = cls(claim.sha256.encode())
        found.claim, found.text = claim, text
        return found


TaggedBody = str | bytes
"""JSON text, or any bytes."""


def bytes_of(body: TaggedBody) -> bytes:
    """A body as bytes: those of text are its UTF-8."""
    return body.encode() if isinstance(body, str) else body


def stored_form(body: TaggedBody) -> Body:
    """A body as bytes, or the claim of one that is in the bucket."""
    return body.claim if isinstance(body, Unfetched) else bytes_of(body)


def is_text(body: TaggedBody) -> bool:
    """Whether a body is given, and comes back, as text; one in the bucket says so itself."""
    return body.text if isinstance(body, Unfetched) else isinstance(body, str)


def as_given(body: bytes, *, text: bool) -> TaggedBody:
    """The inverse. Raises `CorruptData` where text is none."""
    if not text:
        return body
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise CorruptData("a body that is text is not UTF-8") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEvent:
    """An event to append.

    Attributes:
        type: what happened.
        data: JSON text, or any bytes. It comes back as what it was; the original library's readers see the text.
        meta: what else is to be kept with it, likewise.
        tags: what it concerns; order and repetition do not matter.
        id: a UUID; None lets the store choose. An id makes the append idempotent beyond any window.
        expires: epoch seconds at which DynamoDB may delete it; its place in the feed stays.
    """

    type: str
    data: TaggedBody = b""
    meta: TaggedBody = b""
    tags: tuple[str, ...] = ()
    id: str | None = None
    causation_id: str | None = None
    correlation_id: str | None = None
    executed_user: str | None = None
    expires: int | None = None

    def __post_init__(self) -> None:
        """Refuse values of another kind: one tag by itself would be a tag for each of its letters."""
        must_be(str, self.type, "type", "text")
        must_be((str, bytes), self.data, "data", "JSON text or bytes")
        must_be((str, bytes), self.meta, "meta", "JSON text or bytes")
        must_be_list(str, self.tags, "tags")
        must_be((str, type(None)), self.id, "id", "text")
        if self.expires is not None:
            must_be_whole(self.expires, "expires", 1, MAX_EXPIRES)

    @classmethod
    def json(
        cls,
        type: str,  # noqa: A002  as the field is named
        value: object,
        /,
        *,
        meta: TaggedBody = b"",
        tags: tuple[str, ...] = (),
        id: str | None = None,  # noqa: A002
        causation_id: str | None = None,
        correlation_id: str | None = None,
        executed_user: str | None = None,
        expires: int | None = None,
    ) -> TaggedEvent:
        """An event whose data are a value in plain JSON: what `json.dumps` takes, and as it writes it.

        Raises:
            InvalidInput: the value, or what is at the path that is named, is not JSON. NaN is not, nor are members
                that only codecs and subjects write.
        """
        return cls(
            type=type,
            data=write_json(value).decode(),
            meta=meta,
            tags=tags,
            id=id,
            causation_id=causation_id,
            correlation_id=correlation_id,
            executed_user=executed_user,
            expires=expires,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTaggedEvent:
    """An event as stored."""

    id: str
    sortable_id: SortableId
    type: str
    data: TaggedBody
    meta: TaggedBody = b""
    tags: tuple[str, ...]
    timestamp: str
    causation_id: str | None = None
    correlation_id: str | None = None
    executed_user: str | None = None
    stream: str = ""
    index: int = 0
    trail: Trail | None = field(default=None, compare=False, repr=False)

    def json(self) -> Any:
        """The value of data in plain JSON, as `json.loads` reads it.

        Raises:
            InvalidInput: data are sealed, or of a version above 1: its codec reads that.
            CorruptData: they are not JSON.
        """
        return read_json(self.data, f"{self.type} {self.id} under {', '.join(self.tags) or 'no tags'}")

    def repeats(self, stored: RecordedTaggedEvent) -> bool:
        """Whether it says again what is stored under its id. Metadata say how an event came to be appended, and a
        repeat comes from elsewhere: they are not compared.
        """
        meta, correlation = stored.meta, stored.correlation_id
        same = replace(self, meta=meta, correlation_id=correlation, causation_id=stored.causation_id)
        return same == stored

    @property
    def size(self) -> int:
        """Bytes of its bodies; of what is in the bucket, those there."""
        return sum(
            body.claim.size if isinstance(body, Unfetched) else len(bytes_of(body))
            for body in (self.data, self.meta)
        )

    @property
    def key(self) -> str:
        """Its place among events: they are ordered by this text."""
        return f"{self.sortable_id}#{self.id}"

    @property
    def position(self) -> Position | None:
        """To append after: what the read of a query that brought this event had seen with it. Of an event that was just
        appended its tags up to it; of one that was found by its id or in a listing the tag that it was found in; None
        where nothing tells, by ids in Sekiban's tables and in their listings of everything.
        """
        return None if self.trail is None else self.trail.at(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryItem:
    """Any of `types` (none named: any type) with all of `tags` (none named: any tags)."""

    types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check the kinds of the fields."""
        must_be(frozenset, self.types, "types", "a frozenset of texts")
        must_be(frozenset, self.tags, "tags", "a frozenset of texts")
        for name, texts in (("types", self.types), ("tags", self.tags)):
            for each in texts:
                must_be_text(each, MAX_ASKED_BYTES, name)

    def matches(self, kind: str, tags: Collection[str]) -> bool:
        """Whether an event of this type with these tags is asked for."""
        return (not self.types or kind in self.types) and self.tags.issubset(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Events that match at least one item."""

    items: tuple[QueryItem, ...]

    def __post_init__(self) -> None:
        must_be_list(QueryItem, self.items, "items")
        if not self.items:
            raise InvalidInput("query", "must have at least one item")

    @staticmethod
    def all() -> Query:
        """Every event. It needs type heads."""
        return Query(items=(QueryItem(),))

    def matches(self, kind: str, tags: Collection[str]) -> bool:
        """Whether an event of this type with these tags is asked for."""
        return any(item.matches(kind, tags) for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """Which entries of its fencing tags a read has passed: it tells where the read stood at each of its events.

    Attributes:
        base: where the read of each tag began, which counts where `passed` tells no more.
        passed: keys of entries with their indices in the tag, in order.
        end: the position of the whole read.
    """

    base: Mapping[str, Reached]
    passed: Mapping[str, Sequence[tuple[str, int]]]
    end: Position

    @staticmethod
    def of(position: Position) -> Trail:
        """The trail of an event with which a read had seen all that it looked at."""
        return Trail(base=position.seen, passed={}, end=position)

    @staticmethod
    def in_tags(counts: Mapping[str, int], last: str) -> Trail:
        """The trail of an event that is the last of so many in these tags, found without a query."""
        return Trail.of(Position(seen={tag: Reached(count, last) for tag, count in counts.items()}))

    def at(self, key: str) -> Position:
        """The position that includes each tag's events up to the one with this key."""
        return replace(self.end, seen={tag: self._reached(tag, key) for tag in self.base})

    def _reached(self, tag: str, key: str) -> Reached:
        passed = self.passed.get(tag, ())
        place = bisect_right(passed, key, key=lambda entry: entry[0])
        if not place:
            return self.base[tag]
        last, index = passed[place - 1]
        return Reached(index + 1, last.partition("#")[0])
