"""What a query matches, a bounded part at a time, forward and newest first.

All parts belong to one read: the heads were read once, and each part goes from where the last one ended towards them.
A part reads so many of each tag. Where a tag has more, the part ends at the earliest such cut, or newest first at
the highest: beyond it, tags could not be put in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from epochal.errors import CorruptData
from epochal.layout.fences import Fence, check_covered
from epochal.layout.matching import begun
from epochal.layout.pages.items import Page
from epochal.layout.pages.reading import Cursor, advance, stand
from epochal.layout.pages.tags.entries import EventOfTag, entries_of
from epochal.layout.pages.tags.reading import Cursors, after, altered, begin, candidates, places_of
from epochal.layout.pages.tags.site import TagStreams, stream_of
from epochal.layout.pages.tags.taking import take
from epochal.layout.reads import ENTRIES, Part, PartBack, Wanted
from epochal.model.dcb import Position, Reached, Trail
from epochal.model.tagged_results import REST, Down, Reach, Takes
from epochal.plan.ops import Steps

SLICE_BYTES: Final = 1024 * 1024
"""Bytes of a tag's events after which a part reads no more."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """Events of one tag, in ascending order; `whole` if none is left in the order of reading."""

    entries: Sequence[EventOfTag]
    whole: bool


def read_back(
    site: TagStreams,
    fenced: Fence,
    after_: Position | None,
    rest: Down | None,
    takes: Takes,
    *,
    most: int,
) -> Steps[PartBack]:
    """A page of the events that match a query, or of those that are new since a position, newest first.

    Args:
        rest: of the page before, whose query and position must have been the same; None begins a read.
        most: events of each tag that are read.
    """
    before: Reach = {} if after_ is None else after_.seen
    base = begun(fenced, before)
    cursors: Cursors = {}
    if rest is None:
        # Any place but the beginning: that the last pages are read.
        position, cursors = yield from begin(site, fenced, {tag: Reached(1) for tag in fenced.all_tags})
    else:
        for each in (rest.position, Position(seen=rest.at)):
            check_covered(each, fenced, REST)
        position = rest.position
    tops = position.seen if rest is None else rest.at
    field = "after" if rest is None else REST
    slices = dict[str, _Slice]()
    for tag in fenced.all_tags:
        slices[tag] = yield from _downward(
            site, tag, base[tag], tops[tag], cursors.get(tag), most=most, field=field
        )
    chains = {tag: part.entries for tag, part in slices.items()}
    floor = max((part.entries[0].key for part in slices.values() if not part.whole), default=None)
    wanted = [
        entry
        for entry in reversed(candidates(fenced, chains, before, position.seen))
        if floor is None or entry.key > floor
    ]
    trail = Trail(base=base, passed=places_of(chains), end=position)
    first = Trail.of(position) if rest is None else None
    taken, cut = yield from take(site, wanted, takes, trail=trail, first=first)
    lowest = floor if cut is None else cut
    further = None
    if lowest is not None:
        left = {tag: _left(part.entries, base[tag], lowest) for tag, part in slices.items()}
        further = Down(upto=lowest, position=position, at=left)
    return PartBack(events=tuple(taken), position=position, rest=further, full=cut is not None)


def read_part(site: TagStreams, fenced: Fence, wanted: Wanted, cursors: Cursors) -> Steps[Part]:
    """What is wanted, or the beginning of it. A few more events are read of each tag, since pages are read whole."""
    at, until = wanted.at, wanted.until
    most = ENTRIES if wanted.most is None else min(ENTRIES, wanted.most)
    slices = dict[str, _Slice]()
    for tag in fenced.all_tags:
        between = (at[tag], until[tag])
        slices[tag] = yield from _upward(site, tag, between, cursors.get(tag), most=most, field=wanted.field)
    chains = {tag: part.entries for tag, part in slices.items()}
    bound = min((f"{part.entries[-1].key}~" for part in slices.values() if not part.whole), default=None)
    entries = [
        entry
        for entry in candidates(fenced, chains, wanted.before, until)
        if bound is None or entry.key < bound
    ]
    trail = None if wanted.end is None else Trail(base=at, passed=places_of(chains), end=wanted.end)
    taken, cut = yield from take(site, entries, wanted.takes, trail=trail)
    bound = bound if cut is None else cut
    if bound is None:
        return Part(events=tuple(taken), reached=until, done=True)
    reached = {tag: _passed(part.entries, at[tag], bound) for tag, part in slices.items()}
    return Part(events=tuple(taken), reached=reached, done=False, full=cut is not None)


def _upward(
    site: TagStreams,
    tag: str,
    between: tuple[Reached, Reached],
    cursor: Cursor | None,
    *,
    most: int,
    field: str,
) -> Steps[_Slice]:
    """A tag's next events, all of those that are between where these are few."""
    at, until = between
    if at.count >= until.count:
        if at != until and at.count:
            raise altered(tag, field)
        return _Slice((), whole=True)
    # The last event that was reached comes along: it shows that it was.
    cursor = cursor or stand(_ending(site, tag, until), max(0, at.count - 1))
    entries: list[EventOfTag] = []
    size = 0
    while not cursor.at_end and len(entries) <= most and size < SLICE_BYTES:
        cursor, more = yield from _step(site, tag, cursor, most + 1 - len(entries), field)
        entries += more
        size += sum(len(entry.event.data.data) for entry in more)
    if cursor.at_end and entries and entries[-1].reached != until:
        raise altered(tag, field)
    return _Slice(after(tag, entries, at, field), whole=cursor.at_end)


def _downward(
    site: TagStreams,
    tag: str,
    before: Reached,
    top: Reached,
    cursor: Cursor | None,
    *,
    most: int,
    field: str,
) -> Steps[_Slice]:
    """A tag's events from index `top.count - 1` down to `before.count`, `most` of them; but two where there are."""
    if before.count >= top.count:
        if before != top and before.count:
            raise altered(tag, "after")
        return _Slice((), whole=True)
    head = _ending(site, tag, top) if cursor is None else cursor.head
    back = stand(head, None, forward=False)
    least = max(0, before.count - 1)
    found: list[EventOfTag] = []
    size = 0
    while not back.at_end and (not found or found[0].index > least):
        # The lowest is left for the next part: it shows where that begins.
        if len(found) > 1 and (len(found) > most or size >= SLICE_BYTES):
            break
        back, more = yield from _step(site, tag, back, max(1, most + 1 - len(found)), field)
        found = [*more, *found]
        size += sum(len(entry.event.data.data) for entry in more)
    if found and found[-1].reached != top:
        raise altered(tag, field)
    found = [entry for entry in found if entry.index >= least]
    whole = not found or found[0].index == least
    if whole:
        return _Slice(after(tag, found, before), whole=True)
    return _Slice(found, whole=False)


def _step(
    site: TagStreams, tag: str, cursor: Cursor, limit: int, field: str
) -> Steps[tuple[Cursor, list[EventOfTag]]]:
    """One part more of a tag, in ascending order. An end that came from outside may be one that it never had."""
    try:
        part = yield from advance(site.table, cursor, limit)
    except CorruptData as error:
        if cursor.head.frames:
            raise
        raise altered(tag, field) from error
    spans = part.spans if cursor.forward else reversed(part.spans)
    return part.cursor, [entry for span in spans for entry in entries_of(span)]


def _ending(site: TagStreams, tag: str, until: Reached) -> Page:
    """A last page without events, where the read ends: what is there now may be further."""
    return Page(table=site.table, stream=stream_of(tag), index=until.count, version=until.count)


def _passed(entries: Sequence[EventOfTag], at: Reached, bound: str) -> Reached:
    return next((entry.reached for entry in reversed(entries) if entry.key < bound), at)


def _left(entries: Sequence[EventOfTag], base: Reached, bound: str) -> Reached:
    return next((entry.reached for entry in reversed(entries) if entry.key <= bound), base)
