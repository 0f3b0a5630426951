"""Reads of the events that a query matches: all, the first or last ones, or a page at a time, whatever the layout.

All parts belong to one read: the heads were read once, and each part continues from the end of the last one towards
the heads. The position to append after is that of these heads.
"""

from __future__ import annotations

from typing import Final, Protocol

from epochal.errors import InvalidInput
from epochal.layout.queries import Fence, at_the_end, begun, check_covered
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Recorded
from epochal.model.outcomes import Conflict
from epochal.model.positions import Position
from epochal.model.tag_answers import REST, BackwardPage, Down, Reach, Rest, Seen, TaggedPage, Takes
from epochal.plan.ops import Steps

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
        field: name of the argument for errors; `REST` means that `until` came from outside, too.
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

    def part(self, bounds: Wanted) -> Steps[Part]:
        """Read the wanted events, or the first of them."""


def read(reads: TaggedReads, after: Position | None, limit: int | None, *, forward: bool) -> Steps[Seen]:
    """Read matching events, all or those new since `after`, at most `limit`, oldest or newest first.

    Args:
        forward: False reads the newest events first.
    """
    if forward and limit is None:
        return (yield from reads.everything(after))
    places = None if limit is None else iter(range(limit))
    limits = _Asked(takes=lambda _: places is None or next(places, None) is not None, limit=limit, looks=None)
    if not forward:
        back = yield from _back(reads, after, None, limits)
        return Seen(events=back.events, position=back.position, more=back.rest is not None)
    position, part = yield from _onward(reads, after, None, limits)
    if part.done:
        return Seen(events=at_the_end(part.events, position), position=position)
    return Seen(events=part.events, position=part.events[-1].position or position, more=True)


def read_page(
    reads: TaggedReads, after: Position | None, rest: Rest | None, takes: Takes, limit: int
) -> Steps[TaggedPage]:
    """Read one page of matching events, or those new since `after`, as `takes` and `limit` allow.

    Args:
        rest: `rest` of the page before, whose query and `after` must have been the same; None begins a read.
        takes: function that says whether there is room for one more event.
        limit: number of events wanted; little more than what holds them is read.
    """
    if after is not None:
        check_covered(after, reads.fenced)
    limits = _Asked(takes=_one_at_least(takes), limit=limit, looks=ENTRIES)
    position, part = yield from _onward(reads, after, rest, limits)
    if part.done:
        return TaggedPage(events=at_the_end(part.events, position), position=position, rest=None)
    return TaggedPage(events=part.events, position=None, rest=Rest(at=part.reached, position=position))


def read_page_back(
    reads: TaggedReads, after: Position | None, rest: Down | None, takes: Takes, limit: int
) -> Steps[BackwardPage]:
    """Read one page as `read_page` does, newest events first."""
    limits = _Asked(takes=_one_at_least(takes), limit=limit, looks=ENTRIES)
    part = yield from _back(reads, after, rest, limits)
    return BackwardPage(events=part.events, position=part.position, rest=part.rest)


def first_in_the_way(
    reads: TaggedReads, position: Position, until: Reach, takes: Takes, most: int | None = None
) -> Steps[Conflict]:
    """Return matching events between a position and `until` as a conflict, which may have no events.

    Only the first part of the read that has any such event is returned. A conflict without events means that none
    matches.

    Raises:
        InvalidInput: nothing matches among the first `most` events of a tag, and the tag has more.
    """
    before = position.seen
    bounds = Wanted(before=before, at=begun(reads.fenced, before), until=until, takes=_one_at_least(takes))
    while True:
        part = yield from reads.part(bounds)
        if part.events or part.done:
            reached = replace(position, seen=part.reached)
            return Conflict(events=part.events, position=reached, more=not part.done)
        if most is not None and any(reached.count >= most for reached in part.reached.values()):
            rule = f"must be given if a tag has over {most:,} events: use the position of an earlier read"
            raise InvalidInput("after", rule)
        bounds = replace(bounds, at=part.reached)


def _one_at_least(takes: Takes) -> Takes:
    """Wrap a `takes` function so that it accepts the first event in any case.

    Otherwise a page without room for that event would make no progress, and a conflict would have no event.
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
        """Return whether a read is complete with the events so far, which are joined in one part.

        Args:
            looked: number of events read so far, matching or not.
        """
        return len(part.events) == self.limit or (
            self.looks is not None and (part.full or looked >= self.looks)
        )


def _onward(
    reads: TaggedReads, after: Position | None, rest: Rest | None, limits: _Asked
) -> Steps[tuple[Position, Part]]:
    """Read forward part by part; return the position of the read, and the parts joined to one."""
    before: Reach = {} if after is None else after.seen
    source, most = reads, limits.limit or ENTRIES
    if rest is None:
        position, source = yield from reads.begin(before, most)
        first = begun(reads.fenced, before)
    else:
        for start in (Position(seen=rest.at), rest.position):
            check_covered(start, reads.fenced, REST)
        position, first = rest.position, rest.at
    bounds = Wanted(
        before=before,
        at=first,
        until=position.seen,
        takes=limits.takes,
        end=position,
        field="after" if rest is None else REST,
    )
    events: tuple[Recorded, ...] = ()
    while True:
        part = yield from source.part(replace(bounds, most=most))
        part = replace(part, events=events + part.events)
        looked = sum(part.reached[tag].count - first[tag].count for tag in first)
        if part.done or limits.ends(part, looked):
            return position, part
        bounds, source, most = replace(bounds, at=part.reached), reads, GROWTH * most
        events = part.events


def _back(reads: TaggedReads, after: Position | None, rest: Down | None, limits: _Asked) -> Steps[PartBack]:
    """Read backward part by part; return the parts joined to one."""
    looked, most = 0, limits.limit or ENTRIES
    events: tuple[Recorded, ...] = ()
    while True:
        part = yield from reads.part_back(after, rest, limits.takes, min(ENTRIES, most))
        part = replace(part, events=events + part.events)
        looked += most
        if part.rest is None or limits.ends(part, looked):
            return part
        events, rest, most = part.events, part.rest, GROWTH * most
