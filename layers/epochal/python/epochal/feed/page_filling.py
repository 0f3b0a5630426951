"""Pages of the feed that end where their room ends.

If events are requested they are read in windows: few events at first, then as many as would fit if each were as large
as the largest so far. So little more is read than the page shows, however large events are.

A checkpoint is between entries of the index, so a page ends before the entry that does not fit, and the next page
begins with that entry: a part of an entry, and of a window, is read in vain. The first entry of a page is always in it,
even if not all of its events fit: the others come `omitted`, as does an event that is too large for any page. An entry
without its events always fits (`index.entries`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import repeat
from typing import Final

from epochal.feed.events import FeedEvent, UnopenedFeedEvent
from epochal.feed.hydration import PARALLEL, HydrateUnopened, bare_items, events_of, with_event, with_removals
from epochal.feed.results import FeedItem, SpanPage
from epochal.lazy_dataclasses import dataclass

FEWEST: Final = PARALLEL
"""Minimum number of events of a window: one for each stream that is read concurrently."""

MOST: Final = 128
"""Maximum number of events of a window: 50 MB if each is as large as an item can be, after only small ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBounds:
    """The limits of a page.

    Attributes:
        max_bytes: bytes of all items; the first item may be larger.
        largest: bytes of an item beyond which its event is omitted.
        size_of: returns the bytes of an item with its event, in the form that the page will have.
        until: clock reading after which no further window is begun.
    """

    max_bytes: int
    largest: int
    size_of: Callable[[FeedItem], int]
    until: float


def fill(
    room: PageBounds,
    entries: Sequence[tuple[int, SpanPage]],
    hydrate: Callable[[int], HydrateUnopened] | None,
    clock: Callable[[], float],
) -> tuple[tuple[FeedItem, ...], int]:
    """Fill a page with as many entries as have room, at least one; return the items and how many entries.

    Without `hydrate`, the items have no events.
    """
    filling = _Filling(room=room, clock=clock, data=hydrate is not None)
    items, taken = list[FeedItem](), 0
    with ExitStack() as stack:
        events = {
            number: stack.enter_context(
                closing(
                    _events(
                        [entry for owner, entry in entries if owner == number],
                        None if hydrate is None else hydrate(number),
                        filling.window,
                    )
                )
            )
            for number, _ in entries
        }
        for number, entry in entries:
            entry_items = filling.items(entry, events[number])
            if not filling.full or not taken:
                items += entry_items
                taken += 1
            if filling.full:
                break
    return tuple(items), taken


def _events(
    entries: Sequence[SpanPage], hydrate: HydrateUnopened | None, window: Callable[[], int]
) -> Generator[FeedEvent | UnopenedFeedEvent | None, None, None]:
    """Iterate over the event of each item in order; None for each if events are not requested."""
    if hydrate is None:
        yield from repeat(None)
    else:
        yield from events_of((span for entry in entries for span in entry.spans), hydrate, window)


@dataclass(slots=True, kw_only=True)
class _Filling:
    """A page while it is filled.

    Attributes:
        room: limits of the page.
        clock: returns seconds.
        data: whether events were requested, so that an item may lack one.
        used: bytes of the items so far.
        opened: bytes of all events that were opened, those without room included.
        largest: bytes of the largest of them; None before the first.
        full: whether an item had no room, or time was over.
    """

    room: PageBounds
    clock: Callable[[], float]
    data: bool
    used: int = 0
    opened: int = 0
    largest: int | None = None
    full: bool = False

    def window(self) -> int:
        """Return how many events to read next, so that they fit even if all are as large as the largest."""
        if self.largest is None:
            return FEWEST
        return min(MOST, max(FEWEST, (self.room.max_bytes - self.used) // self.largest))

    def items(
        self, entry: SpanPage, events: Iterator[FeedEvent | UnopenedFeedEvent | None]
    ) -> list[FeedItem]:
        """Return an entry's items with events, and its removals; no event is read once the page is full."""
        items = [self._item(item, events) for item in bare_items(entry.spans)]
        self.used += sum(self.room.size_of(FeedItem.of(removal)) for _, removal in entry.removals)
        return with_removals(items, entry.spans, entry.removals)

    def _item(self, item: FeedItem, events: Iterator[FeedEvent | UnopenedFeedEvent | None]) -> FeedItem:
        """Return one item with its event, or with its event omitted if it has no room."""
        left_out = item._replace(omitted=self.data)
        if self.full:
            return left_out
        event = next(events)
        if isinstance(event, UnopenedFeedEvent):
            event = self._open(event)
            if event is None:
                return left_out
        filled = item if event is None else with_event(item, event)
        size = self.room.size_of(filled)
        self.opened += size
        self.largest = max(self.largest or 1, size)
        return filled if self._fits(size) else left_out

    def _open(self, event: UnopenedFeedEvent) -> FeedEvent | None:
        """Open an event that may be large; return None if the page has no room for it.

        The event is decompressed only as far as there is room: megabytes of spaces are stored in a few bytes.
        """
        largest, rest = self.room.largest, 2 * self.room.max_bytes - self.opened
        room = min(largest, rest, self.room.max_bytes - self.used if self.used else largest)
        opened = event.decode(room) if room > 0 else None
        if opened is None:
            self.opened += max(room, 0)
            self.full = room < largest
        return opened

    def _fits(self, size: int) -> bool:
        """Return whether an item fits, and count it; mark the page full if not, unless no page could hold it."""
        if size > self.room.largest:
            return False
        late = self.clock() > self.room.until
        self.full = self.used > 0 and (late or self.used + size > self.room.max_bytes)
        self.used += size
        return not self.full
