"""Pages that end where their room ends.

Events, where they are asked for, are read in windows: few at first, then as many as would have room if each were as
large as the largest so far. So little more is read than is shown, however large events are.

A checkpoint is between entries of the index, so a page ends before the entry that has no room, and the next page
begins with it: part of an entry, and of a window, is read in vain. A page's first entry is taken even if it has no room
for all of its events: the others come `omitted`, as an event does that no page has room for. An entry
without its events always has room (`index.entries`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import repeat
from typing import Final

from epochal.feed.hydration import PARALLEL, Hydrate, bare_items, events_of, with_event
from epochal.feed.results import FeedEvent, FeedItem, FeedPage, SpanPage

FEWEST: Final = PARALLEL
"""Events of a window at least: a stream for each of those that are read at once."""

MOST: Final = 128
"""Events of a window at most: 50 MB where each is as large as an item can be, though all before were small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBounds:
    """The limits of a page.

    Attributes:
        max_bytes: of all its items. The first may be larger.
        largest: an event beyond this is omitted.
        size_of: the bytes of an item, event and all, in whatever the page becomes.
        until: reading of the clock after which no further window is begun.
    """

    max_bytes: int
    largest: int
    size_of: Callable[[FeedItem], int]
    until: float


def fill(
    room: PageBounds, entries: Sequence[SpanPage], hydrate: Hydrate | None, clock: Callable[[], float]
) -> FeedPage:
    """A page of as many entries as have room, and at least one; without `hydrate`, of items alone."""
    filling = _Filling(room=room, clock=clock, data=hydrate is not None)
    items, reached = list[FeedItem](), entries[0]
    with closing(_events(entries, hydrate, filling.window)) as events:
        for entry in entries:
            found = filling.items(entry, events)
            if not filling.full or entry is entries[0]:
                items += found
                reached = entry
            if filling.full:
                break
    return FeedPage(items=tuple(items), next=reached.next, at_tail=reached.at_tail)


def _events(
    entries: Sequence[SpanPage], hydrate: Hydrate | None, window: Callable[[], int]
) -> Generator[FeedEvent | None, None, None]:
    """The event of each item, in their order; None where none are asked for."""
    if hydrate is None:
        yield from repeat(None)
    else:
        yield from events_of((span for entry in entries for span in entry.spans), hydrate, window)


@dataclass(slots=True, kw_only=True)
class _Filling:
    """A page in the making.

    Attributes:
        used: bytes of items so far.
        largest: of these; None before the first.
        data: events were asked for, so that an item may lack one.
        full: an item was met that had no room, or time was over.
    """

    room: PageBounds
    clock: Callable[[], float]
    data: bool
    used: int = 0
    largest: int | None = None
    full: bool = False

    def window(self) -> int:
        """How many events to read next."""
        if self.largest is None:
            return FEWEST
        return min(MOST, max(FEWEST, (self.room.max_bytes - self.used) // self.largest))

    def items(self, entry: SpanPage, events: Iterator[FeedEvent | None]) -> list[FeedItem]:
        """An entry's items; no event is asked for once the page is full."""
        return [self._item(item, events) for item in bare_items(entry.spans)]

    def _item(self, item: FeedItem, events: Iterator[FeedEvent | None]) -> FeedItem:
        left_out = item._replace(omitted=self.data)
        if self.full:
            return left_out
        event = next(events)
        shown = item if event is None else with_event(item, event)
        size = self.room.size_of(shown)
        self.largest = max(self.largest or 1, size)
        return shown if self._fits(size) else left_out

    def _fits(self, size: int) -> bool:
        if size > self.room.largest:
            return False
        late = self.clock() > self.room.until
        self.full = self.used > 0 and (late or self.used + size > self.room.max_bytes)
        self.used += size
        return not self.full
