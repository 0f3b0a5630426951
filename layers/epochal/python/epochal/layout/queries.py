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
    """An id of an append is there already, with other contents, or without the others of the append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A query with the tags whose heads fence each of its items.

    Attributes:
        together: numbers of items of which an event has been seen only if all of their tags have it.
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
        """What a position keeps of the items that several of the fencing tags could fence: see `fence_after`."""
        reached = frozenset(self.all_tags)
        return frozenset(
            _mark(item)
            for item, tags in zip(self.query.items, self.tags, strict=True)
            if tags == _default(item) and len(_candidates(item, reached)) > 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Fail if an event matches that `after` has not seen; without a position, if any matches at all.

    Attributes:
        takes: how many of the events in the way are wanted; None is all, however many there are.
    """

    fence: Fence
    after: Position | None = None
    takes: Takes | None = None


TypeHeads = bool | frozenset[str]
"""Whether there are heads of every type and of everything; or the reserved tags that there are heads of."""


def fence(query: Query, *, type_heads: TypeHeads) -> Fence:
    """The heads that fence a query.

    Raises:
        InvalidInput: an item names no tags, and there are no heads of its types.
    """
    return Fence(query=query, tags=tuple(_fencing(item, type_heads=type_heads) for item in query.items))


def fence_after(query: Query, position: Position, *, type_heads: TypeHeads, field: str = "after") -> Fence:
    """The heads that fence a query after a position, which may be of another, broader read.

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
    """Heads among those seen that fence an item, each way to do so: by one of its tags, by its types, by everything."""
    found: list[tuple[str, ...]] = [(tag,) for tag in sorted(item.tags) if tag in seen]
    types = tuple(sorted(map(type_tag, item.types)))
    if types and all(tag in seen for tag in types):
        found.append(types)
    if EVERYTHING in seen:
        found.append((EVERYTHING,))
    return found


def _mark(item: QueryItem) -> str:
    asked = json.dumps([sorted(item.types), sorted(item.tags)])
    return hashlib.sha256(asked.encode()).hexdigest()[:MARK]


def check_covered(position: Position, fenced: Fence, field: str = "after") -> None:
    """Refuse a position of a read that has not seen the heads that fence the condition."""
    missing = [tag for tag in fenced.all_tags if tag not in position.seen]
    if missing:
        raise InvalidInput(field, f"is of a read that did not ask for {missing[0]!r}")


def _fencing(item: QueryItem, *, type_heads: TypeHeads) -> tuple[str, ...]:
    wanted = _default(item)
    if item.tags or type_heads is True or (type_heads and type_heads.issuperset(wanted)):
        return wanted
    if type_heads and EVERYTHING in type_heads:
        return (EVERYTHING,)
    raise InvalidInput("query", "an item must name a tag, unless the store was opened for its types")


def _default(item: QueryItem) -> tuple[str, ...]:
    return (min(item.tags),) if item.tags else tuple(sorted(map(type_tag, item.types))) or (EVERYTHING,)


# Which events a read of a query shows: those that match, beyond a position through every item that they match.


class Matchable(Protocol):
    """What tells whether a query asks for an event."""

    @property
    def type(self) -> str:
        """What happened."""

    @property
    def tags(self) -> Collection[str]:
        """What it concerns."""

    @property
    def place(self) -> str:
        """Its place."""


def begun(fenced: Fence, before: Reach) -> Reach:
    """Where a read of what is new since `before` begins, by tag."""
    return {tag: before.get(tag, Reached()) for tag in fenced.all_tags}


def types_fenced_by(fenced: Fence, tag: str) -> frozenset[str]:
    """Types that the items fenced by a tag ask for; none where one of them asks for any."""
    types = [item.types for item, tags in zip(fenced.query.items, fenced.tags, strict=True) if tag in tags]
    return frozenset().union(*types) if all(types) else frozenset()


def at_the_end(events: tuple[Recorded, ...], position: Position) -> tuple[Recorded, ...]:
    """The events of a read, the last of which tells the position of the whole read."""
    if not events:
        return events
    return (*events[:-1], replace(events[-1], trail=Trail.of(position)))


def is_new(event: Matchable, fenced: Fence, before: Reach, until: Reach) -> bool:
    """Whether an event matches, and is beyond `before` through every item that it matches, but not beyond `until`.

    Beyond one item's fence an event may be new, and yet have been seen through another's: heads are not read
    at one moment. Within a tag ids only increase, so the id tells which side of a fence an event is on.
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
    return {tag for tag, reached in position.items() if event.place <= reached.last}


# What a query matches: all of it, the first or the last of it, or a bounded part at a time, whatever the layout.
#
# All parts belong to one read: the heads were read once, and each part goes from where the last one ended towards them.
# All parts together are that read, in its order, and the position to append after is that of its heads.

ENTRIES: Final = 1000
"""Events of a tag that a part reads at most, and after which a page ends, however few of them match."""

GROWTH: Final = 4
"""A read of a few events looks at so many of each tag, and in each further part at so many times as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some events, in order of their places.

    Attributes:
        reached: how far the tags have been read, with these events.
        done: whether that is as far as was asked for.
        full: whether it ends where there was no room for more.
    """

    events: tuple[Recorded, ...]
    reached: Reach
    done: bool
    full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBack:
    """A part of a read that begins with the newest events. `rest` is where the next part begins; None at the end."""

    events: tuple[Recorded, ...]
    position: Position
    rest: Down | None
    full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What matches and is new since `before`, from `at` on and at most up to `until`, as far as there is room.

    Attributes:
        takes: whether there is room for one more event.
        end: the position of the read, where events shall tell theirs.
        field: what a refusal names; under `REST`, `until` came from outside too.
        most: events of each tag that are wanted. A layout may read more.
    """

    before: Reach
    at: Reach
    until: Reach
    takes: Takes
    end: Position | None = None
    field: str = "after"
    most: int | None = None


class TaggedReads(Protocol):
    """How a layout of tagged events reads what is behind one fence."""

    @property
    def fenced(self) -> Fence:
        """Of the query."""

    def everything(self, after: Position | None) -> Steps[Seen]:
        """The events that match, or those that are new since `after`."""

    def part_back(
        self, after: Position | None, rest: Down | None, takes: Takes, most: int
    ) -> Steps[PartBack]:
        """Some of them, newest first, of so many of each tag. Without `rest`, of the part before, the first."""

    def begin(self, before: Reach, limit: int) -> Steps[tuple[Position, TaggedReads]]:
        """The position of a read that begins now, of so many events at most, and what its first part is read from."""

    def part(self, wanted: Wanted) -> Steps[Part]:
        """What is wanted, or the beginning of it."""


def read(reads: TaggedReads, after: Position | None, limit: int | None, *, forward: bool) -> Steps[Seen]:
    """The events that match, or those that are new since `after`; `limit` at most."""
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
    """A page of the events that match, or of those that are new since `after`.

    Args:
        rest: of the page before, whose query and `after` must have been the same; None begins a read.
        limit: events that are wanted; little more than what holds them is read.
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
    """`read_page`, newest first."""
    asked = _Asked(takes=_one_at_least(takes), limit=limit, looks=ENTRIES)
    part = yield from _back(reads, after, rest, asked)
    return BackwardPage(events=part.events, position=part.position, rest=part.rest)


def first_in_the_way(
    reads: TaggedReads, position: Position, until: Reach, takes: Takes, most: int | None = None
) -> Steps[Conflict]:
    """What matches between a position and `until`: of the first part that has any event.

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
    """The same, but for the first event: a page that never has room for it never ends, and a conflict without any event
    is none.
    """
    first = True

    def taken(event: Recorded) -> bool:
        nonlocal first
        room, first = takes(event) or first, False
        return room

    return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What ends a read before its end.

    Attributes:
        limit: events that are wanted; None: as many as there are.
        looks: events of tags after which a page ends, however few of them match; None: it is no page.
    """

    takes: Takes
    limit: int | None
    looks: int | None

    def ends(self, part: Part | PartBack, looked: int) -> bool:
        """Whether that is all, of parts that come to this one."""
        return len(part.events) == self.limit or (
            self.looks is not None and (part.full or looked >= self.looks)
        )


def _onward(
    reads: TaggedReads, after: Position | None, rest: Rest | None, asked: _Asked
) -> Steps[tuple[Position, Part]]:
    """The position of the read, and its parts as one."""
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
    """All of its parts as one."""
    looked, most = 0, asked.limit or ENTRIES
    events: tuple[Recorded, ...] = ()
    while True:
        part = yield from reads.part_back(after, rest, asked.takes, min(ENTRIES, most))
        part = replace(part, events=events + part.events)
        looked += most
        if part.rest is None or asked.ends(part, looked):
            return part
        events, rest, most = part.events, part.rest, GROWTH * most
