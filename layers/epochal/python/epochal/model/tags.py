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
from epochal.model.events import MAX_TAG_BYTES, MAX_TYPE_BYTES, Body, Event, Recorded, Ticks
from epochal.model.kinds import must_be, must_be_list, must_be_names
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
    """The reserved tag of a type's events, where type heads are on."""
    return f"$type:{kind}"


def is_reserved(tag: str) -> bool:
    """Whether a tag is the store's own."""
    return not tag or tag.startswith("$")


def group_of(tag: str) -> str:
    """What precedes a tag's first `:`; the whole tag where there is none."""
    return tag.partition(":")[0]


def place_of(ticks: Ticks, random: int) -> str:
    """The place of a moment among events; `random` tells places of one moment apart."""
    return f"{ticks:019d}{random % 10**RANDOM_DIGITS:0{RANDOM_DIGITS}d}"


def parse_place(text: str, field: str = "since") -> str:
    """Read a place; raises `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    if not _PLACE.fullmatch(text):
        raise InvalidInput(field, "must be a place of 30 digits")
    return text


def own_tags(events: Iterable[Event | Recorded]) -> tuple[str, ...]:
    """The tags of events, in order; those that have none are together under "" (a tag of no user's)."""
    return tuple(sorted({tag for event in events for tag in event.tags or (UNTAGGED,)}))


def repeats(event: Event, data: Body, stored: Recorded) -> bool:
    """Whether an event, with these data, says again what is stored under its id. Metadata say how an event came to be
    appended, and a repeat comes from elsewhere: they are not compared.
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
    must_be(str, kind, field, "text")
    if not 0 < len(kind.encode("utf-8", "surrogatepass")) <= MAX_TYPE_BYTES or not kind.isprintable():
        raise InvalidInput(field, f"a type is 1 to {MAX_TYPE_BYTES} bytes of printable text")
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryItem:
    """Asks for events of any of `types` (empty: any type) that have all of `tags` (empty: whatever tags)."""

    types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    if TYPE_CHECKING:  # any collection becomes a set

        def __init__(self, *, types: Collection[str] = ..., tags: Collection[str] = ...) -> None: ...

    def __post_init__(self) -> None:
        """Refuse what no event can have, so that a condition on it would never hold anything off."""
        for name in ("types", "tags"):
            must_be_names(getattr(self, name), name)
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        for kind in self.types:
            check_type(kind, "types")
        for tag in self.tags:
            check_tag(tag)

    def matches(self, kind: str, tags: Collection[str]) -> bool:
        """Whether an event of this type with these tags is asked for."""
        return (not self.types or kind in self.types) and self.tags.issubset(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Asks for events that match at least one of `items`, of which there is at least one."""

    items: tuple[QueryItem, ...]

    def __post_init__(self) -> None:
        must_be_list(QueryItem, self.items, "items")
        if not self.items:
            raise InvalidInput("query", "must have at least one item")

    @staticmethod
    def all() -> Query:
        """Every event. Only a store that was opened with `everything` takes it, or Sekiban's with `type_heads`."""
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


# The text form of positions in tagged events: opaque to callers, safe in URLs.

MAX_COUNT: Final = 2**53 - 1
"""Events of a tag that a position can have seen: as far as every reader of JSON counts, and a number of DynamoDB."""


def write_position(position: Position) -> str:
    """A position as text: opaque, safe in URLs."""
    body: dict[str, object] = {"s": _plain(position.seen), "h": _plain(position.heads)}
    if position.items:
        body["q"] = sorted(position.items)
    raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_position(written: str, field: str = "after") -> Position:
    """Read `write_position` back, and nothing else; raises `InvalidInput` naming `field`."""
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
    return {tag: _figures(reached) for tag, reached in sorted(tags.items())}


def _figures(reached: Reached) -> list[object]:
    token = () if reached.token is None else (reached.token.text(),)
    return [reached.count, reached.last, *token]


def _parse_reached(body: Mapping[str, list[Any]]) -> dict[str, Reached]:
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
    """Events in order of their places, or newest first, and the position that a read of them has reached.

    Attributes:
        more: there are others, beyond the limit. A read forward has then not seen these; one backward
            has: its position is that of the newest event.
    """

    events: tuple[Recorded, ...]
    position: Position
    more: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedPage:
    """Some events of a read. It may have none, and still have moved on.

    Attributes:
        position: to append after, once nothing is left; None before.
        rest: where the next page goes on; None at the end.
    """

    events: tuple[Recorded, ...]
    position: Position | None
    rest: Rest | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardPage:
    """Some events of a read, newest first. `position` is that of the newest event there is: to append after.

    `rest` is where the next page goes on; None at the end.
    """

    events: tuple[Recorded, ...]
    position: Position
    rest: Down | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Where the next page begins: how far the tags have been read, and the position of the read.

    The text form is not trusted: a place that does not fit what is stored is refused as input.
    """

    at: Reach
    position: Position

    def text(self) -> str:
        """An opaque text, safe in URLs."""
        return f"{write_position(Position(seen=self.at))}.{write_position(self.position)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Where the next page begins, backward: at the key `upto`, in the read of this position.

    Where tags are streams, `at` is how far up each of them is still to be read.
    """

    upto: str
    position: Position
    at: Reach = field(default_factory=dict)

    def text(self) -> str:
        """An opaque text, safe in URLs. It need not be trusted: it can show only what the query asks for."""
        at = f".{write_position(Position(seen=self.at))}" if self.at else ""
        return f"{write_position(self.position)}.{self.upto.replace('#', '.')}{at}"


def parse_rest(written: str) -> Rest:
    """Read `Rest.text` back; raises `InvalidInput` naming `REST`."""
    at, dot, end = written.partition(".")
    if dot:
        start, position = read_position(at, REST), read_position(end, REST)
        if start <= position:
            return Rest(at=start.seen, position=position)
    raise InvalidInput(REST, "must be what `next` of the page before says")


def parse_down(written: str) -> Down:
    """Read `Down.text` back; raises `InvalidInput` naming `REST`."""
    position, *parts = written.split(".")
    upto = "#".join(parts[:2])
    if not _KEY.fullmatch(upto) or len(parts) > _PARTS:
        raise InvalidInput(REST, "must be what `next` of the page before says")
    at = read_position(parts[2], REST).seen if len(parts) == _PARTS else {}
    return Down(upto=upto, position=read_position(position, REST), at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEntry:
    """A tag's entry for one of its events. `index` counts from 0; None on entries of the original library."""

    event_id: str
    event_type: str
    place: str
    index: int | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """A tag and how many events it has, as its head counts them."""

    tag: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedEvent:
    """An event to import, checked.

    Attributes:
        happened: its timestamp.
        place: the one that it had, or that follows from the rest.
    """

    event: Event
    timestamp: str
    happened: Ticks
    place: str
