"""Reading events: pages as they are needed, bodies decoded, an archive where the table was pruned."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TypeVar

from epochal.layout.tips.items import StoredEvent, Tip, read_event
from epochal.layout.tips.reading import Cursor, Pages, advance, begin, stand
from epochal.model.events import Claim, Recorded
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver
from epochal.store.encoding import recorded_events
from epochal.store.results import Direction, Page

T = TypeVar("T")

_CHUNK = 16
"""Events whose bodies are decoded at once: enough to fetch them in parallel, few enough where each has megabytes."""

_FIELDS = 200
"""Bytes reckoned for an event's fields besides its bodies, where a page is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads one table of streams, and its archive."""

    driver: Driver
    table: str
    codec: BodyCodec
    fetch: bool
    archive: Reader | None

    def events(
        self, stream: str, start: int | None, limit: int | None, direction: Direction
    ) -> Iterator[Recorded]:
        """Events from `start` on, at most `limit`."""
        found = self._walk(stream, self._begin(stream, start, direction), start, limit)
        return found if limit is None else islice(found, limit)

    def onward(self, tip: Tip, start: int | None, direction: Direction) -> Iterator[Recorded]:
        """Events from `start` on of the stream that `tip` heads: no request for what the Tip itself carries."""
        cursor = stand(tip, start, forward=direction == "forward")
        return self._walk(tip.stream, cursor, start, None)

    def page(self, stream: str, start: int | None, limit: int, direction: Direction, max_bytes: int) -> Page:
        """Events up to a limit or a size, at least one."""
        cursor = self._begin(stream, start, direction)
        if cursor is None:
            return Page(events=(), next=None, version=0, low_water=0, exists=False, deleted=False)
        taken: list[Recorded] = []
        size = 0
        for event in self._walk(stream, cursor, start, limit):
            size += _size(event)
            if taken and size > max_bytes:
                break
            taken.append(event)
            if len(taken) == limit:
                break
        return Page(
            events=tuple(taken),
            next=self._next(taken[-1].index, cursor) if taken else None,
            version=cursor.tip.version,
            low_water=cursor.tip.low_water,
            exists=True,
            deleted=cursor.tip.deleted,
        )

    def _begin(self, stream: str, start: int | None, direction: Direction) -> Cursor | None:
        return self.driver.run(begin(self.table, stream, start, forward=direction == "forward"))

    def _walk(
        self, stream: str, cursor: Cursor | None, start: int | None, limit: int | None
    ) -> Iterator[Recorded]:
        if cursor is None:
            return
        low_water = cursor.tip.low_water
        if cursor.forward and (start or 0) < low_water:
            yield from self._archived(stream, start or 0, low_water)
        while not cursor.at_end:
            cursor = yield from self._advance(cursor, limit)
        if not cursor.forward and low_water > 0:
            last = low_water - 1 if start is None else min(low_water - 1, start)
            yield from self._archived_backward(stream, last)

    def _advance(self, cursor: Cursor, limit: int | None) -> Generator[Recorded, None, Cursor]:
        """One page more. Nothing of it is held once it has been consumed: a page in wire form is large."""
        pages = self.driver.run(advance(self.table, cursor, limit))
        size = _CHUNK if limit is None else min(_CHUNK, limit)
        for chunk in _chunks(_stored(pages, forward=cursor.forward), size):
            yield from recorded_events(cursor.tip.stream, chunk, self.codec, fetch=self.fetch)
        return pages.cursor

    def _archived(self, stream: str, start: int, end: int) -> Iterator[Recorded]:
        if self.archive is None:
            return iter(())
        return takewhile(lambda event: event.index < end, self.archive.events(stream, start, None, "forward"))

    def _archived_backward(self, stream: str, last: int) -> Iterator[Recorded]:
        if self.archive is None:
            return iter(())
        return self.archive.events(stream, last, None, "backward")

    def _next(self, last: int, cursor: Cursor) -> int | None:
        """Where a page that ends at event `last` goes on."""
        if cursor.forward:
            return last + 1 if last + 1 < cursor.tip.version else None
        lowest = cursor.tip.low_water if self.archive is None else 0
        return last - 1 if last > lowest else None


def _stored(pages: Pages, *, forward: bool) -> Iterator[tuple[int, StoredEvent]]:
    """A page's events with their indices, each decoded when it is asked for."""
    for span in pages.spans:
        for offset, (kind, event) in _ordered(enumerate(span.pairs), forward=forward):
            yield span.base + offset, read_event(kind, event)


def _ordered(pairs: Iterable[T], *, forward: bool) -> Iterable[T]:
    return pairs if forward else reversed(list(pairs))


def _chunks(events: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(islice(events, size)):
        yield chunk


def _size(event: Recorded) -> int:
    bodies = sum(body.size if isinstance(body, Claim) else len(body) for body in (event.data, event.meta))
    return _FIELDS + bodies
