"""A tag's entries by their index in the tag, where keys know only the sortable id.

Both grow together, so an index is found as one finds a page in a book: guess from what is at both ends, look, guess
again; every other guess halves what is left, so that no distribution takes long. A reader that goes on from an entry it
knows seeks nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.contrib.sekiban.entries import LOOKS
from epochal.contrib.sekiban.items import TagSite
from epochal.contrib.sekiban.listing import read_entry
from epochal.errors import CorruptData
from epochal.model.tagged_results import TagEntry
from epochal.plan.ops import Steps
from epochal.plan.values import Key

NEAR: Final = 200
"""Entries it is cheaper to read past than to seek for: some 16 read units, in one request."""

PAGE: Final = 1_000
"""Entries a request at most."""

_END: Final = "~"
"""Above every sort key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """An entry that a seek has met: its index, and the number that its sortable id is."""

    index: int
    place: int


def entries(
    site: TagSite, tag: str, index: int, end: int, *, limit: int = PAGE, after: str | None = None
) -> Steps[list[TagEntry]]:
    """Entries `index` to `end - 1`, at most `limit` of them, and at least one where there are any.

    Args:
        after: the sortable id of entry `index - 1`, where that is known.

    Raises:
        CorruptData: an entry is missing, and stays so: one that is being written may not show yet.
    """
    for _ in range(LOOKS):
        found = yield from _look(site, tag, index, end, limit=limit, after=after)
        if found or index >= end:
            return found
    raise CorruptData(f"tag {tag!r}: it has no entry of its event {index}")


def _look(
    site: TagSite, tag: str, index: int, end: int, *, limit: int, after: str | None
) -> Steps[list[TagEntry]]:
    """Those of the entries that are there, up to one that is missing."""
    found: list[TagEntry] = []
    lowest = f"{after}#{_END}" if after else (yield from _seek(site, tag, index))
    last: Key | None = None
    while index + len(found) < end and len(found) < limit:
        reply = yield site.entries(tag, lowest, _END, limit=min(end - index + NEAR, PAGE), after=last)
        for entry in map(read_entry, reply.items):
            wanted = index + len(found)
            # Entries of the original library have no index, and are no part of the feed.
            if entry.index is None or entry.index < wanted or wanted >= end or len(found) >= limit:
                continue
            if entry.index > wanted:
                return found
            found.append(entry)
        last = reply.last
        if last is None:
            break
    return found


def _seek(site: TagSite, tag: str, index: int) -> Steps[str]:
    """A sort key at or below entry `index`, and at most about `NEAR` entries below it."""
    if index <= NEAR:
        return "0"
    low = yield from _first(site, tag, 0, _END)
    high = yield from _first(site, tag, 0, _END, forward=False)
    halve = False
    while low is not None and high is not None and index - low.index > NEAR and high.place - low.place > 1:
        share = (index - low.index) / max(1, high.index - low.index)
        guess = 0.5 if halve else min(max(share, 0.0), 1.0)
        # Scaled to integers: thirty digits are more than a float has.
        step = (high.place - low.place) * int(guess * 1_000_000) // 1_000_000
        middle = low.place + min(max(step, 1), high.place - low.place - 1)
        met = yield from _first(site, tag, middle, _END)
        if met is not None and met.index <= index:
            low = met
        else:
            high = _Bound(index=high.index if met is None else min(met.index, high.index), place=middle)
        halve = not halve
    return "0" if low is None else f"{low.place:030d}"


def _first(
    site: TagSite, tag: str, place: int, highest: str, *, forward: bool = True
) -> Steps[_Bound | None]:
    """The first entry that has an index, from a place on, or from the end backward."""
    last: Key | None = None
    limit = 1
    while True:
        reply = yield site.entries(tag, f"{place:030d}", highest, forward=forward, limit=limit, after=last)
        for entry in map(read_entry, reply.items):
            if entry.index is not None:
                return _Bound(index=entry.index, place=int(entry.sortable_id))
        last, limit = reply.last, PAGE
        if last is None:
            return None
