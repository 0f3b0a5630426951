"""Queries: which heads fence one, which events it matches, and reading these a part at a time, whatever the layout.

An item that names tags is fenced by one of them, the first in order: a match carries all of its tags, and so
moves that head. An item by type alone needs the head of each type, and one that names nothing the head of
everything; both exist only where type heads are on, at the price of heads that every append moves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import Final, Protocol

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Recorded
from epochal.model.tags import (
    EVERYTHING,
    REST,
    BackwardPage,
    Down,
    Query,
    QueryItem,
    Reach,
    Rest,
    Seen,
    TaggedPage,
    Takes,
    Trail,
    type_tag,
)
from epochal.model.versions import Conflict, Position, Reached
from epochal.plan.ops import Steps

MARK: Final = 12
"""Hex digits of an item's mark."""


class IdTaken(InvalidInput):
    """An id of an append is stored already: with other contents, or without the append's other events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A query with the tags whose heads fence each of its items.

    Attributes:
        query: the query.
        tags: fencing tags of each item of the query.
        together: numbers of the items of which an event counts as seen only if all of their fencing tags have reached
            it.
    """

    query: Query
    tags: tuple[tuple[str, ...], ...]
    together: frozenset[int] = frozenset()

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Every fencing tag once, in order."""
        return tuple(dict.fromkeys(tag for tags in self.tags for tag in tags))

    @property
    def marks(self) -> frozenset[str]:
        """Marks of the items that several fencing tags could fence; a position keeps them (`fence_after`)."""
        reached = frozenset(self.all_tags)
        return frozenset(
            _mark(item)
            for item, tags in zip(self.query.items, self.tags, strict=True)
            if tags == _default(item) and len(_candidates(item, reached)) > 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The condition that no event matches a query beyond a position; without a position, that none does.

    Attributes:
        fence: the query with its fencing tags.
        after: position up to which matching events do not count; None: all events count.
        takes: function that says whether a conflict brings one more of the matching events; None: it brings all.
    """

    fence: Fence
    after: Position | None = None
    takes: Takes | None = None


TypeHeads = bool | frozenset[str]
"""Whether there are heads of every type and of everything; or the reserved tags that there are heads of."""


def fence(query: Query, *, type_heads: TypeHeads) -> Fence:
    """Choose the fencing tags of each item of a query.

    Args:
        type_heads: which types have heads.

    Raises:
        InvalidInput: an item names no tags, and there are no heads of its types.
    """
    return Fence(query=query, tags=tuple(_fencing(item, type_heads=type_heads) for item in query.items))


def fence_after(query: Query, position: Position, *, type_heads: TypeHeads, field: str = "after") -> Fence:
    """Choose the fencing tags of each item of a query after a position, perhaps of a broader read.

    Any tag of an item fences it, and so do the heads of its types and of everything. So an item is fenced by what the
    position has seen of these. Where that is more than one, the heads were not read at one moment, and what one of them
    reaches the read may not have shown through another:

        an item of the read itself          is fenced as in the read
        another, and everything was read    by everything: what that reaches was shown
        another, and its types were read    by these, likewise
        another                             by all of its tags that were read, and only what all of them reach is seen

    Raises:
        InvalidInput: nothing that the position has seen fences one of the items.
    """
    tags, together = list[tuple[str, ...]](), set[int]()
    for number, item in enumerate(query.items):
        candidates = _candidates(item, position.seen.keys())
        if not candidates:
            wanted = _fencing(item, type_heads=type_heads)[0]
            raise InvalidInput(field, f"is of a read that did not ask for {wanted!r}")
        if len(candidates) == 1:
            tags.append(candidates[0])
        elif _mark(item) in position.items:
            tags.append(_default(item))
        elif item.tags.issuperset(candidates[-1]):
            tags.append(tuple(tag for each in candidates for tag in each))
            together.add(number)
        else:
            tags.append(candidates[-1])
    fenced = Fence(query=query, tags=tuple(tags), together=frozenset(together))
    check_covered(position, fenced, field)
    return fenced


def _candidates(item: QueryItem, seen: Collection[str]) -> list[tuple[str, ...]]:
    """List the sets of heads among those seen that fence an item: by each tag, types, or everything.

    Args:
        seen: tags that a position has seen.
    """
    found: list[tuple[str, ...]] = [(tag,) for tag in sorted(item.tags) if tag in seen]
    types = tuple(sorted(map(type_tag, item.types)))
    if types and all(tag in seen for tag in types):
        found.append(types)
    if EVERYTHING in seen:
        found.append((EVERYTHING,))
    return found


def _mark(item: QueryItem) -> str:
    """Compute the mark of a query's item: 12 hex digits of a hash over types and tags."""
    asked = json.dumps([sorted(item.types), sorted(item.tags)])
    return hashlib.sha256(asked.encode()).hexdigest()[:MARK]


def check_covered(position: Position, fenced: Fence, field: str = "after") -> None:
    """Raise `InvalidInput` if a position has not seen all fencing tags of a query."""
    missing = [tag for tag in fenced.all_tags if tag not in position.seen]
    if missing:
        raise InvalidInput(field, f"is of a read that did not ask for {missing[0]!r}")


def _fencing(item: QueryItem, *, type_heads: TypeHeads) -> tuple[str, ...]:
    """Choose the fencing tags of one item of a query, given the types that have heads.

    Raises:
        InvalidInput: the item names no tags, and its types have no heads.
    """
    wanted = _default(item)
    if item.tags or type_heads is True or (type_heads and type_heads.issuperset(wanted)):
        return wanted
    if type_heads and EVERYTHING in type_heads:
        return (EVERYTHING,)
    raise InvalidInput("query", "an item must name a tag, unless the store was opened for its types")


def _default(item: QueryItem) -> tuple[str, ...]:
    """Return the tags that fence an item by default: its first tag, its types, or everything."""
    return (min(item.tags),) if item.tags else tuple(sorted(map(type_tag, item.types))) or (EVERYTHING,)


# A read of a query returns the events that match and lie beyond a position through every item that they match.


class Matchable(Protocol):
    """An event, or an entry of one, as a query is matched against it."""

    @property
    def type(self) -> str:
        """Type of the event."""

    @property
    def tags(self) -> Collection[str]:
        """Tags of the event."""

    @property
    def place(self) -> str:
        """Place of the event among all events."""


def begun(fenced: Fence, before: Reach) -> Reach:
    """Return the point of each fencing tag at which a read of events new since `before` begins."""
    return {tag: before.get(tag, Reached()) for tag in fenced.all_tags}


def types_fenced_by(fenced: Fence, tag: str) -> frozenset[str]:
    """Return the types that items fenced by a tag ask for; none if one of them asks for any type."""
    types = [item.types for item, tags in zip(fenced.query.items, fenced.tags, strict=True) if tag in tags]
    return frozenset().union(*types) if all(types) else frozenset()


def at_the_end(events: tuple[Recorded, ...], position: Position) -> tuple[Recorded, ...]:
    """Return the events of a read, the last of them with the position of the whole read."""
    if not events:
        return events
    return (*events[:-1], replace(events[-1], trail=Trail.of(position)))


def is_new(event: Matchable, fenced: Fence, before: Reach, until: Reach) -> bool:
    """Whether an event matches a query and lies beyond `before`, but not beyond `until`.

    It must lie beyond `before` through every item that it matches.

    Beyond the fence of one item an event may be new, and yet have been seen through the fence of another, since heads
    are not read at one moment. Within a tag ids only increase, so the id tells on which side of a fence an event lies.
    """
    carried = {*event.tags, type_tag(event.type), EVERYTHING}
    seen, reached = _reached(event, before), _reached(event, until)
    fences = {
        number: carried.intersection(tags)
        for number, (item, tags) in enumerate(zip(fenced.query.items, fenced.tags, strict=True))
        if item.matches(event.type, event.tags)
    }
    was_seen = any(
        tags <= seen if number in fenced.together else not tags.isdisjoint(seen)
        for number, tags in fences.items()
    )
    return not was_seen and any(not tags.isdisjoint(reached) for tags in fences.values())


def _reached(event: Matchable, position: Reach) -> set[str]:
    """Return the tags of a position that have reached an event's place."""
    return {tag for tag, reached in position.items() if event.place <= reached.last}


# Reads of the events that a query matches: all, the first or last ones, or a page at a time, whatever the layout.
#
# All parts belong to one read: the heads were read once, and each part continues from the end of the last one towards
# the heads. The position to append after is that of these heads.

ENTRIES: Final = 1000
"""Largest number of events of a tag that a part reads, and after which a page ends, however few of them match."""

GROWTH: Final = 4
"""Growth of parts: each further part of a short read looks at so many times as many events of each tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a read: events in order of their places, and how far each tag has been read.

    Attributes:
        events: the events of the part.
        reached: point that each tag has been read up to, these events included.
        done: whether the read has reached its end.
        full: whether the part ends because there was no room for more events.
    """

    events: tuple[Recorded, ...]
    reached: Reach
    done: bool
    full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBack:
    """A part of a read that begins with the newest events.

    Attributes:
        events: the events of the part.
        position: position of the whole read.
        rest: where the next part begins; None at the end.
        full: whether the part ends because there was no room for more events.
    """

    events: tuple[Recorded, ...]
    position: Position
    rest: Down | None
    full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request for the next part: matching events new since `before`, from `at` up to `until`.

    Attributes:
        before: points up to which events of tags were seen before the read.
        at: points at which the part begins.
        until: points at which the read ends.
        takes: function that says whether there is room for one more event.
        end: position of the read, if events are to carry theirs; else None.
        field: argument that errors name; with `REST`, `until` came from outside, too.
        most: number of events of each tag that are wanted; None for all. A layout may read more.
    """

    before: Reach
    at: Reach
    until: Reach
    takes: Takes
    end: Position | None = None
    field: str = "after"
    most: int | None = None


class TaggedReads(Protocol):
    """The reads of a layout of tagged events behind one fence."""

    @property
    def fenced(self) -> Fence:
        """The query with its fencing tags."""

    def everything(self, after: Position | None) -> Steps[Seen]:
        """Read all events that match, or those that are new since `after`."""

    def part_back(
        self, after: Position | None, rest: Down | None, takes: Takes, most: int
    ) -> Steps[PartBack]:
        """Read some of the matching events, newest first, from up to `most` events of each tag.

        Args:
            rest: `rest` of the part before; None for the first part.
        """

    def begin(self, before: Reach, limit: int) -> Steps[tuple[Position, TaggedReads]]:
        """Begin a read of up to `limit` events; return its position and the source of its first part."""

    def part(self, wanted: Wanted) -> Steps[Part]:
        """Read the wanted events, or the first of them."""


def read(reads: TaggedReads, after: Position | None, limit: int | None, *, forward: bool) -> Steps[Seen]:
    """Read the events that match, or those that are new since `after`; at most `limit`.

    Args:
        forward: False reads the newest events first.
    """
    if forward and limit is None:
        return (yield from reads.everything(after))
    places = None if limit is None else iter(range(limit))
    asked = _Asked(takes=lambda _: places is None or next(places, None) is not None, limit=limit, looks=None)
    if not forward:
        back = yield from _back(reads, after, None, asked)
        return Seen(events=back.events, position=back.position, more=back.rest is not None)
    position, part = yield from _onward(reads, after, None, asked)
    if part.done:
        return Seen(events=at_the_end(part.events, position), position=position)
    return Seen(events=part.events, position=part.events[-1].position or position, more=True)


def read_page(
    reads: TaggedReads, after: Position | None, rest: Rest | None, takes: Takes, limit: int
) -> Steps[TaggedPage]:
    """Read one page of the events that match, or of those that are new since `after`.

    Args:
        rest: `rest` of the page before, whose query and `after` must have been the same; None begins a read.
        takes: function that says whether there is room for one more event.
        limit: number of events wanted; little more than what holds them is read.
    """
    if after is not None:
        check_covered(after, reads.fenced)
    asked = _Asked(takes=_one_at_least(takes), limit=limit, looks=ENTRIES)
    position, part = yield from _onward(reads, after, rest, asked)
    if part.done:
        return TaggedPage(events=at_the_end(part.events, position), position=position, rest=None)
    return TaggedPage(events=part.events, position=None, rest=Rest(at=part.reached, position=position))


def read_page_back(
    reads: TaggedReads, after: Position | None, rest: Down | None, takes: Takes, limit: int
) -> Steps[BackwardPage]:
    """Read one page as `read_page` does, newest events first."""
    asked = _Asked(takes=_one_at_least(takes), limit=limit, looks=ENTRIES)
    part = yield from _back(reads, after, rest, asked)
    return BackwardPage(events=part.events, position=part.position, rest=part.rest)


def first_in_the_way(
    reads: TaggedReads, position: Position, until: Reach, takes: Takes, most: int | None = None
) -> Steps[Conflict]:
    """Find events that match between a position and `until`; return them as a conflict.

    Only the first part of the read that has any such event is returned. A conflict without events means that none
    matches.

    Raises:
        InvalidInput: nothing matches among the first `most` events of a tag, and the tag has more.
    """
    before = position.seen
    wanted = Wanted(before=before, at=begun(reads.fenced, before), until=until, takes=_one_at_least(takes))
    while True:
        part = yield from reads.part(wanted)
        if part.events or part.done:
            reached = replace(position, seen=part.reached)
            return Conflict(events=part.events, position=reached, more=not part.done)
        if most is not None and any(reached.count >= most for reached in part.reached.values()):
            rule = f"must be given where a tag has more than {most:,} events: keep the position of a read"
            raise InvalidInput("after", rule)
        wanted = replace(wanted, at=part.reached)


def _one_at_least(takes: Takes) -> Takes:
    """Make a `takes` function that always accepts the first event.

    Else a page without room for that event would never end, and a conflict would have no event.
    """
    first = True

    def taken(event: Recorded) -> bool:
        """Whether there is room for one more event; always for the first."""
        nonlocal first
        room, first = takes(event) or first, False
        return room

    return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The limits at which a read ends before its end.

    Attributes:
        takes: function that says whether there is room for one more event.
        limit: number of events wanted; None for all.
        looks: number of events read after which a page ends, however few of them match; None where the read is no page.
    """

    takes: Takes
    limit: int | None
    looks: int | None

    def ends(self, part: Part | PartBack, looked: int) -> bool:
        """Whether a read is complete with the parts so far, joined to one.

        Args:
            looked: number of events read so far, matching or not.
        """
        return len(part.events) == self.limit or (
            self.looks is not None and (part.full or looked >= self.looks)
        )


def _onward(
    reads: TaggedReads, after: Position | None, rest: Rest | None, asked: _Asked
) -> Steps[tuple[Position, Part]]:
    """Read forward part by part; return the position of the read, and the parts joined to one."""
    before: Reach = {} if after is None else after.seen
    source, most = reads, asked.limit or ENTRIES
    if rest is None:
        position, source = yield from reads.begin(before, most)
        first = begun(reads.fenced, before)
    else:
        for each in (Position(seen=rest.at), rest.position):
            check_covered(each, reads.fenced, REST)
        position, first = rest.position, rest.at
    wanted = Wanted(
        before=before,
        at=first,
        until=position.seen,
        takes=asked.takes,
        end=position,
        field="after" if rest is None else REST,
    )
    events: tuple[Recorded, ...] = ()
    while True:
        part = yield from source.part(replace(wanted, most=most))
        part = replace(part, events=events + part.events)
        looked = sum(part.reached[tag].count - first[tag].count for tag in first)
        if part.done or asked.ends(part, looked):
            return position, part
        wanted, source, most = replace(wanted, at=part.reached), reads, GROWTH * most
        events = part.events


def _back(reads: TaggedReads, after: Position | None, rest: Down | None, asked: _Asked) -> Steps[PartBack]:
    """Read backward part by part; return the parts joined to one."""
    looked, most = 0, asked.limit or ENTRIES
    events: tuple[Recorded, ...] = ()
    while True:
        part = yield from reads.part_back(after, rest, asked.takes, min(ENTRIES, most))
        part = replace(part, events=events + part.events)
        looked += most
        if part.rest is None or asked.ends(part, looked):
            return part
        events, rest, most = part.events, part.rest, GROWTH * most
