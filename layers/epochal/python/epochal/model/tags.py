"""Events with tags, queries over them, and positions: the words of Dynamic Consistency Boundaries (dcb.events).

A tag is `group:value` or any other text. A query is a disjunction of items; an item asks for any of its types
and all of its tags.
"""

from __future__ import annotations

import re
import uuid
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Body
from epochal.model.events import MAX_TAG_BYTES, MAX_TYPE_BYTES, Event, Recorded
from epochal.model.kinds import must_be, must_be_list, must_be_names
from epochal.model.moments import Ticks
from epochal.model.positions import Position, Reached

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


def make_place(ticks: Ticks, random: int) -> str:
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

    Attributes:
        types: types of which an event must have one; empty for any type.
        tags: tags that an event must have, all of them; empty for events with any tags.
    """

    types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    if TYPE_CHECKING:  # any collection becomes a set

        def __init__(self, *, types: Collection[str] = ..., tags: Collection[str] = ...) -> None: ...

    def __post_init__(self) -> None:
        """Check types and tags, and store them as frozensets; raise `InvalidInput` for what no event can have."""
        for name in ("types", "tags"):
            must_be_names(getattr(self, name), name)
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        for kind in self.types:
            check_type(kind, "types")
        for tag in self.tags:
            check_tag(tag)

    def matches(self, kind: str, tags: Collection[str]) -> bool:
        """Return whether an event of this type with these tags matches.

        Args:
            kind: type of the event.
            tags: tags of the event.
        """
        return (not self.types or kind in self.types) and self.tags.issubset(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query for the events that match at least one of its `items`.

    Attributes:
        items: alternatives of the query, of which an event must match at least one.
    """

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
        """Return whether an event of this type with these tags matches at least one item.

        Args:
            kind: type of the event.
            tags: tags of the event.
        """
        return any(item.matches(kind, tags) for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """For the events that one read returned: how far the read had come in each tag at each event, from which the
    event's position follows.

    Attributes:
        base: how far each tag had been read when the read began. It applies before the first entry in `passed`.
        passed: for each tag, the keys of its entries that the read has passed, each with the event's index in the tag,
            in order.
        end: position that the whole read reached.
    """

    base: Mapping[str, Reached]
    passed: Mapping[str, Sequence[tuple[str, int]]]
    end: Position

    @staticmethod
    def of(position: Position) -> Trail:
        """Return a trail that gives every event the position of the whole read.

        Args:
            position: position of the read.
        """
        return Trail(base=position.seen, passed={}, end=position)

    @staticmethod
    def in_tags(counts: Mapping[str, int], last: str) -> Trail:
        """Return the trail of an event found without a query, from the number of its tags' events up to it.

        Args:
            counts: number of events of each tag, up to this event.
            last: key of the event's entry.
        """
        return Trail.of(Position(seen={tag: Reached(count, last) for tag, count in counts.items()}))

    def at(self, key: str) -> Position:
        """Return the position that includes each tag's events up to the event with this key.

        Args:
            key: key of an entry that the read has passed.
        """
        return replace(self.end, seen={tag: self._reached(tag, key) for tag in self.base})

    def _reached(self, tag: str, key: str) -> Reached:
        """Return how far the read had come in a tag at the event with this key."""
        passed = self.passed.get(tag, ())
        place = bisect_right(passed, key, key=lambda entry: entry[0])
        if not place:
            return self.base[tag]
        last, index = passed[place - 1]
        return Reached(index + 1, last.partition("#")[0])
