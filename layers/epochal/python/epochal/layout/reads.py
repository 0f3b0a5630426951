"""What a query matches: all of it, the first or the last of it, or a bounded part at a time, whatever the layout.

All parts belong to one read: the heads were read once, and each part goes from where the last one ended towards them.
All parts together are that read, in its order, and the position to append after is that of its heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from epochal.layout.fences import Fence, check_covered
from epochal.layout.matching import at_the_end, begun
from epochal.model.dcb import Position, RecordedTaggedEvent
from epochal.model.tagged_results import (
    REST,
    BackwardPage,
    Down,
    Reach,
    Rest,
    Seen,
    TaggedConflict,
    TaggedPage,
    Takes,
)
from epochal.plan.ops import Steps

GROWTH: Final = 4
"""A read of a few events looks at so many of each tag, and in each further part at so many times as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some events, in order of their sortable ids.

    Attributes:
        reached: how far the tags have been read, with these events.
        done: whether that is as far as was asked for.
    """

    events: tuple[RecordedTaggedEvent, ...]
    reached: Reach
    done: bool


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

    def last(self, after: Position | None, limit: int | None) -> Steps[Seen]:
        """Likewise, newest first; `limit` at most."""

    def page_back(self, after: Position | None, rest: Down | None, takes: Takes) -> Steps[BackwardPage]:
        """A page of them, newest first. Without `rest`, of the page before, the first."""

    def begin(self, before: Reach, limit: int | None = None) -> Steps[tuple[Position, TaggedReads]]:
        """The position of a read that begins now, of so many events at most, and what its first part is read from."""

    def part(self, wanted: Wanted) -> Steps[Part]:
        """What is wanted, or the beginning of it."""


def read(reads: TaggedReads, after: Position | None, limit: int | None, *, forward: bool) -> Steps[Seen]:
    """The events that match, or those that are new since `after`; `limit` at most."""
    if not forward:
        return reads.last(after, limit)
    return reads.everything(after) if limit is None else _first(reads, after, limit)


def read_page(
    reads: TaggedReads, after: Position | None, rest: Rest | None, takes: Takes
) -> Steps[TaggedPage]:
    """A page of the events that match, or of those that are new since `after`.

    Args:
        rest: of the page before, whose query and `after` must have been the same; None begins a read.
    """
    before: Reach = {} if after is None else after.seen
    if after is not None:
        check_covered(after, reads.fenced)
    source = reads
    if rest is None:
        position, source = yield from reads.begin(before)
        at = begun(reads.fenced, before)
    else:
        for each in (Position(seen=rest.at), rest.position):
            check_covered(each, reads.fenced, REST)
        position, at = rest.position, rest.at
    wanted = Wanted(
        before=before,
        at=at,
        until=position.seen,
        takes=takes,
        end=position,
        field="after" if rest is None else REST,
    )
    part = yield from source.part(wanted)
    if part.done:
        return TaggedPage(events=at_the_end(part.events, position), position=position, rest=None)
    return TaggedPage(events=part.events, position=None, rest=Rest(at=part.reached, position=position))


def first_in_the_way(
    reads: TaggedReads, position: Position, until: Reach, takes: Takes
) -> Steps[TaggedConflict]:
    """What matches between a position and `until`: of the first part that has any event."""
    before = position.seen
    wanted = Wanted(before=before, at=begun(reads.fenced, before), until=until, takes=takes)
    while True:
        part = yield from reads.part(wanted)
        if part.events or part.done:
            reached = replace(position, seen=part.reached)
            return TaggedConflict(events=part.events, position=reached, more=not part.done)
        wanted = replace(wanted, at=part.reached)


def _first(reads: TaggedReads, after: Position | None, limit: int) -> Steps[Seen]:
    before: Reach = {} if after is None else after.seen
    position, source = yield from reads.begin(before, limit)
    found: list[RecordedTaggedEvent] = []
    places = iter(range(limit))
    at, most = begun(reads.fenced, before), limit
    while True:
        wanted = Wanted(
            before=before,
            at=at,
            until=position.seen,
            takes=lambda _: next(places, None) is not None,
            end=position,
            most=most,
        )
        part = yield from source.part(wanted)
        found += part.events
        if part.done:
            return Seen(events=at_the_end(tuple(found), position), position=position)
        if len(found) == limit:
            return Seen(events=tuple(found), position=found[-1].position or position, more=True)
        at, source, most = part.reached, reads, GROWTH * most
