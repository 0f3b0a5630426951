"""What a query matches, newest first, a bounded part at a time.

As in `paging` all parts belong to one read, whose heads were read once. A part reads some entries of each fencing tag,
from its place downward. The highest of the keys at which these end is as far down as tags can be put in
order. Above it every tag has an entry at or below each event, or has none left: so an event can tell its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from epochal.contrib.sekiban.entries import (
    Slice,
    just_after,
    key_of,
    places_of,
    possible_keys,
    read_entries,
    whole,
)
from epochal.contrib.sekiban.items import TagSite
from epochal.contrib.sekiban.paging import take
from epochal.contrib.sekiban.reading import stand
from epochal.layout.fences import Fence, check_covered
from epochal.layout.matching import begun
from epochal.layout.reads import ENTRIES, PartBack
from epochal.model.dcb import Trail
from epochal.model.tagged_results import REST, Down, Reach, Takes
from epochal.model.versions import Position, Reached
from epochal.plan.ops import BATCH_KEYS, Steps
from epochal.plan.values import Item, Key

FIRST: Final = 20
"""Entries of each tag that are read besides those that are wanted: they are small."""


def read_back(
    site: TagSite,
    fenced: Fence,
    after: Position | None,
    rest: Down | None,
    takes: Takes,
    *,
    most: int,
) -> Steps[PartBack]:
    """A page of the events that match a query, or of those that are new since `after`, newest first.

    Args:
        rest: of the page before, whose query and `after` must have been the same; None begins a read.
        most: events that are wanted; so many entries of each tag are read, and `FIRST` more.
    """
    before: Reach = {} if after is None else after.seen
    entries, at_once = min(ENTRIES, FIRST + most), min(BATCH_KEYS, most + 1)
    base = begun(fenced, before)
    if rest is None:
        position = yield from stand(site, fenced)
    else:
        check_covered(rest.position, fenced, REST)
        position = rest.position
    upto = None if rest is None else rest.upto
    slices: dict[str, Slice] = {}
    for tag in fenced.all_tags:
        between = (base[tag], position.seen[tag])
        field, given = ("after", between[:1]) if rest is None else (REST, between)
        look = partial(_look, site, tag, between, (upto, entries))
        slices[tag] = yield from whole(look, site, tag, between[1], given, field=field)
    passed = {tag: places_of(part.entries) for tag, part in slices.items()}
    trail = Trail(base=base, passed=passed, end=position)
    keys, floor = _in_order(fenced, slices)
    taken, cut = yield from take(
        site,
        fenced,
        keys,
        takes,
        before=before,
        until=position.seen,
        trail=trail,
        first=Trail.of(position) if rest is None else None,
        at_once=at_once,
    )
    lowest = floor if cut is None else cut
    further = None if lowest is None else Down(upto=lowest, position=position)
    return PartBack(events=tuple(taken), position=position, rest=further, full=cut is not None)


def _in_order(fenced: Fence, slices: Mapping[str, Slice]) -> tuple[list[str], str | None]:
    """Keys of entries that may match, newest first, and the key at and below which they are not all known; None: all
    are.
    """
    floor = max((key_of(part.entries[0]) for part in slices.values() if not part.whole), default=None)
    return sorted(
        (key for key in possible_keys(fenced, slices) if floor is None or key > floor), reverse=True
    ), floor


def _look(
    site: TagSite, tag: str, between: tuple[Reached, Reached], cut: tuple[str | None, int]
) -> Steps[Slice | None]:
    """A tag's entries from the key `upto` down, `most` and one at most, but two where there are as many.

    None if any is missing.
    """
    (before, until), (upto, most) = between, cut
    found: list[Item] = []
    last: Key | None = None
    highest = just_after(until) if upto is None else min(just_after(until), upto)
    if before.count >= until.count or highest < just_after(before):
        return Slice((), whole=True)
    while True:
        entries, last = yield from read_entries(
            site, tag, (just_after(before), highest), last, forward=False, limit=most + 1
        )
        found += entries
        if len(found) > 1 or last is None:
            break
    found.reverse()
    indices = [index for _, index in places_of(found)]
    top = until.count if upto is None else indices[-1] + 1 if indices else before.count
    bottom = before.count if last is None else indices[0]
    if indices != list(range(bottom, top)):
        return None
    return Slice(tuple(found), whole=last is None)
