"""Events with tags, queries over them, and positions: the words of Dynamic Consistency Boundaries (dcb.events).

A tag is `group:value` or any other text. A query is a disjunction of items; an item asks for any of its types
and all of its tags.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Body
from epochal.model.events import MAX_TAG_BYTES, MAX_TYPE_BYTES, Event, Recorded
from epochal.model.kinds import must_be, must_be_list, must_be_names
from epochal.model.moments import Ticks
from epochal.model.versions import NOTHING, Capacity, Position, Reached, parse_token

MAX_ASKED_BYTES: Final = 2_000
"""Bytes of a tag that is counted: with `SERVICE#` and `TAG#` a key holds no more."""

RANDOM_DIGITS: Final = 11
"""A place has 19 digits of 100 ns ticks since year 1, then so many that tell events of a moment apart: it is ordered as
text, and as a number."""

_PLACE: Final = re.compile(r"\d{30}", re.ASCII)

UNTAGGED: Final = ""
"""The reserved tag of events without tags, so that they too have a head."""

EVERYTHING: Final = "$all"
"""The reserved tag of every event, where type heads are on."""


def type_tag(kind: str) -> str:
    """Return the reserved tag under which a type's events are counted, if type heads are on."""
    return f"$type:{kind}"


def is_reserved(tag: str) -> bool:
    """Return whether a tag belongs to the store, not to users."""
    return not tag or tag.startswith("$")


def group_of(tag: str) -> str:
    """Return the group of a tag: what precedes its first `:`, or the whole tag."""
    return tag.partition(":")[0]


def place_of(ticks: Ticks, random: int) -> str:
    """Return the sort key of an event with tags: its ticks, then digits that make it unique."""
    return f"{ticks:019d}{random % 10**RANDOM_DIGITS:0{RANDOM_DIGITS}d}"


def parse_place(text: str, field: str = "since") -> str:
    """Check a place and return it; raise `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    if not _PLACE.fullmatch(text):
        raise InvalidInput(field, "must be the `place` of an event, which has 30 digits")
    return text


def own_tags(events: Iterable[Event | Recorded]) -> tuple[str, ...]:
    """Return the sorted tags of events; "" stands for those of events without tags."""
    return tuple(sorted({tag for event in events for tag in event.tags or (UNTAGGED,)}))


def repeats(event: Event, data: Body, stored: Recorded) -> bool:
    """Return whether an event equals the one that is stored under its id, apart from metadata.

    Metadata say how an event came to be appended, and a repeat comes from elsewhere: they are not compared.
    """
    same = replace(
        stored,
        type=event.type,
        data=data,
        tags=tuple(sorted(set(event.tags))),
        timestamp=event.timestamp or stored.timestamp,
    )
    return same == stored


def parse_event_id(text: str, field: str = "id") -> str:
    """Parse an event id, which is a UUID; raise `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise InvalidInput(field, "must be a UUID") from None


def check_tag(tag: str, field: str = "tags") -> str:
    """Check a tag that a user chose and return it; raise `InvalidInput` naming `field`."""
    must_be(str, tag, field, "text")
    if not tag:
        raise InvalidInput(field, "a tag must not be empty")
    if tag.startswith("$"):
        raise InvalidInput(field, "a tag must not begin with $, which is reserved for the system")
    if tag.startswith(":"):
        raise InvalidInput(field, "a tag must not begin with :, which separates its group from its value")
    if not tag.isprintable() or len(tag.encode("utf-8", "surrogatepass")) > MAX_TAG_BYTES:
        raise InvalidInput(field, f"must have only tags of at most {MAX_TAG_BYTES} bytes of printable text")
    return tag


def check_type(kind: str, field: str = "type") -> str:
    """Check an event type and return it; raise `InvalidInput` naming `field`."""
    must_be(str, kind, field, "text")
    if not 0 < len(kind.encode("utf-8", "surrogatepass")) <= MAX_TYPE_BYTES or not kind.isprintable():
        raise InvalidInput(field, f"must be 1 to {MAX_TYPE_BYTES} bytes of printable text")
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryItem:
    """One alternative of a query: events of any of `types` that have all of `tags`.

    Empty `types` match any type, and empty `tags` any tags.
    """

    types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    if TYPE_CHECKING:  # any collection becomes a set

        def __init__(self, *, types: Collection[str] = ..., tags: Collection[str] = ...) -> None: ...

    def __post_init__(self) -> None:
        """Check types and tags: a condition on what no event can have would never prevent an append."""
        for name in ("types", "tags"):
            must_be_names(getattr(self, name), name)
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        for kind in self.types:
            check_type(kind, "types")
        for tag in self.tags:
            check_tag(tag)

    def matches(self, kind: str, tags: Collection[str]) -> bool:
        """Return whether an event of this type with these tags matches."""
        return (not self.types or kind in self.types) and self.tags.issubset(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query for the events that match at least one of its `items`."""

    items: tuple[QueryItem, ...]

    def __post_init__(self) -> None:
        must_be_list(QueryItem, self.items, "items")
        if not self.items:
            raise InvalidInput("query", "must have at least one item")

    @staticmethod
    def all() -> Query:
        """Return the query for every event.

        Only a store that was opened with `everything` takes it, or Sekiban's with `type_heads`.
        """
        return Query(items=(QueryItem(),))

    def matches(self, kind: str, tags: Collection[str]) -> bool:
        """Return whether an event of this type with these tags matches at least one item."""
        return any(item.matches(kind, tags) for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The entries of each tag that a read has passed, from which each event's position follows.

    Attributes:
        base: how far each tag had been read when the read began. It applies before the first entry in `passed`.
        passed: for each tag, the keys of its entries with their indices, in order.
        end: position of the whole read.
    """

    base: Mapping[str, Reached]
    passed: Mapping[str, Sequence[tuple[str, int]]]
    end: Position

    @staticmethod
    def of(position: Position) -> Trail:
        """Return the trail of an event at which the read had seen everything that it looked at."""
        return Trail(base=position.seen, passed={}, end=position)

    @staticmethod
    def in_tags(counts: Mapping[str, int], last: str) -> Trail:
        """Return the trail of an event that is the last of so many in these tags, found without a query."""
        return Trail.of(Position(seen={tag: Reached(count, last) for tag, count in counts.items()}))

    def at(self, key: str) -> Position:
        """Return the position that includes each tag's events up to the one with this key."""
        return replace(self.end, seen={tag: self._reached(tag, key) for tag in self.base})

    def _reached(self, tag: str, key: str) -> Reached:
        """Return how far the read had come in a tag at the event with this key."""
        passed = self.passed.get(tag, ())
        place = bisect_right(passed, key, key=lambda entry: entry[0])
        if not place:
            return self.base[tag]
        last, index = passed[place - 1]
        return Reached(index + 1, last.partition("#")[0])


# The text form of positions in tagged events: opaque to callers, safe in URLs.

MAX_COUNT: Final = 2**53 - 1
"""Events of a tag that a position can have seen: as far as every reader of JSON counts, and a number of DynamoDB."""


def write_position(position: Position) -> str:
    """Encode a position as opaque text that is safe in URLs."""
    body: dict[str, object] = {"s": _plain(position.seen), "h": _plain(position.heads)}
    if position.items:
        body["q"] = sorted(position.items)
    raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_position(written: str, field: str = "after") -> Position:
    """Decode the text of `write_position` and nothing else; raise `InvalidInput` naming `field`."""
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        body = json.loads(raw)
        items = frozenset(body.get("q", ()))
        position = Position(seen=_parse_reached(body["s"]), heads=_parse_reached(body["h"]), items=items)
        if all(isinstance(mark, str) for mark in items) and write_position(position) == written:
            return position
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InvalidInput(field, "must be a position that a read or an append returned")


def _plain(tags: Mapping[str, Reached]) -> dict[str, list[object]]:
    """Convert the counts of tags into JSON, sorted by tag."""
    return {tag: _figures(reached) for tag, reached in sorted(tags.items())}


def _figures(reached: Reached) -> list[object]:
    """Convert how far one tag has been read into a JSON list."""
    token = () if reached.token is None else (reached.token.text(),)
    return [reached.count, reached.last, *token]


def _parse_reached(body: Mapping[str, list[Any]]) -> dict[str, Reached]:
    """Parse how far each tag has been read from JSON; raise `ValueError` if it is malformed."""
    reached: dict[str, Reached] = {}
    for tag, (count, last, *token) in body.items():
        if type(count) is not int or not 0 <= count <= MAX_COUNT or not isinstance(last, str):
            raise ValueError("not a position")
        if len(token) > 1 or not all(isinstance(text, str) for text in token):
            raise ValueError("not a position")
        head_token = parse_token(token[0]) if token else None
        reached[tag] = Reached(count, parse_place(last) if count else "", head_token)
    return reached


# What appends of tagged events, reads of them and listings of their tags answer with.

REST: Final = "from"
"""The field in which a page says where the next one goes on."""

Reach = Mapping[str, Reached]
"""How far each tag has been read."""

_KEY: Final = re.compile(r"\d{30}#[0-9a-f-]{36}", re.ASCII)

_PARTS: Final = 3

Takes = Callable[[Recorded], bool]
"""Whether there is room for one more event. Asked of each in order, the first of which is taken in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Events of a read, in order of their places or newest first, and the position that it reached.

    Attributes:
        more: whether there are others beyond the limit. The position of a forward read does not include these; that of
            a backward read does, because it is the position of the newest event.
    """

    events: tuple[Recorded, ...]
    position: Position
    more: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedPage:
    """One page of a forward read of tagged events. It may be empty although the read moved on.

    Attributes:
        position: position to append after, once nothing is left; None before.
        rest: where the next page begins; None at the end.
    """

    events: tuple[Recorded, ...]
    position: Position | None
    rest: Rest | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardPage:
    """One page of a backward read of tagged events, newest first.

    Attributes:
        position: position of the newest event that exists, to append after.
        rest: where the next page begins; None at the end.
    """

    events: tuple[Recorded, ...]
    position: Position
    rest: Down | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Where the next page of a forward read begins.

    The text form is not trusted: a place that does not fit what is stored is refused as input.

    Attributes:
        at: how far each tag has been read.
        position: position of the whole read.
    """

    at: Reach
    position: Position

    def text(self) -> str:
        """Encode this start of a page as opaque text that is safe in URLs."""
        return f"{write_position(Position(seen=self.at))}.{write_position(self.position)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Where the next page of a backward read begins.

    Attributes:
        upto: key below which the page begins.
        position: position of the whole read.
        at: if tags are streams, up to where each of them is still to be read.
    """

    upto: str
    position: Position
    at: Reach = field(default_factory=dict)

    def text(self) -> str:
        """Encode this start of a page as opaque text that is safe in URLs.

        It need not be trusted: it can show only what the query asks for.
        """
        position = f".{write_position(Position(seen=self.at))}" if self.at else ""
        return f"{write_position(self.position)}.{self.upto.replace('#', '.')}{position}"


def parse_rest(written: str) -> Rest:
    """Decode the text of `Rest.text`; raise `InvalidInput` naming `from`."""
    at, dot, end = written.partition(".")
    if dot:
        start, position = read_position(at, REST), read_position(end, REST)
        if start <= position:
            return Rest(at=start.seen, position=position)
    raise InvalidInput(REST, "must be the `next` value of the previous page, unchanged")


def parse_down(written: str) -> Down:
    """Decode the text of `Down.text`; raise `InvalidInput` naming `from`."""
    position, *parts = written.split(".")
    upto = "#".join(parts[:2])
    if not _KEY.fullmatch(upto) or len(parts) > _PARTS:
        raise InvalidInput(REST, "must be the `next` value of the previous page, unchanged")
    reached = read_position(parts[2], REST).seen if len(parts) == _PARTS else {}
    return Down(upto=upto, position=read_position(position, REST), at=reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEntry:
    """One entry in the list of a tag's events.

    `index` counts from 0; it is None on entries that Sekiban wrote.
    """

    event_id: str
    event_type: str
    place: str
    index: int | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """A tag and the number of its events, as its head counts them."""

    tag: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedEvent:
    """A checked event that is ready to be imported.

    Attributes:
        timestamp: time of the event in its stored form.
        happened: the same time in ticks.
        place: place that the event had in its source, or that follows from its other fields.
    """

    event: Event
    timestamp: str
    happened: Ticks
    place: str
