"""What a query matches: all of it, the first or the last of it, or a bounded part at a time, whatever the layout.

All parts belong to one read: the heads were read once, and each part goes from where the last one ended towards them.
All parts together are that read, in its order, and the position to append after is that of its heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from epochal.errors import InvalidInput
from epochal.layout.fences import Fence, check_covered
from epochal.layout.matching import at_the_end, begun
from epochal.model.events import Recorded
from epochal.model.tags import REST, BackwardPage, Down, Reach, Rest, Seen, TaggedPage, Takes
from epochal.model.versions import Conflict, Position
from epochal.plan.ops import Steps

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
