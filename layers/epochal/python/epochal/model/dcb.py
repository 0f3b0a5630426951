"""Events with tags, queries over them, and positions: the vocabulary of Dynamic Consistency Boundaries (dcb.events).

A tag is `group:value` or any other text. A query is a disjunction of items; an item asks for any of its types
and all of its tags.
"""

from __future__ import annotations

import re
import uuid
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.events import Body, Event, Recorded
from epochal.model.kinds import must_be, must_be_list, must_be_text
from epochal.model.names import MAX_TAG_BYTES
from epochal.model.times import Ticks
from epochal.model.versions import Position, Reached

MAX_TYPE_BYTES: Final = 512

MAX_ASKED_BYTES: Final = 2_000
"""Bytes of a tag or a type that a query names: with `SERVICE#` and `TAG#` a key holds no more."""
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
    if not 0 < len(kind.encode("utf-8", "surrogatepass")) <= MAX_TYPE_BYTES or not kind.isprintable():
        raise InvalidInput(field, f"a type is 1 to {MAX_TYPE_BYTES} bytes of printable text")
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryItem:
    """Asks for events of any of `types` (empty: any type) that have all of `tags` (empty: whatever tags)."""

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
