"""Stores in memory that writers under the same tags share."""

from __future__ import annotations

from epochal.model.events import Event
from epochal.store.tagged_pages import TaggedEvents
from tests.support.counted_stores import CountedStores

COURSE, TERM, STUDENT = "course:1", "term:1", "student:1"


def enrolled(*tags: str, kind: str = "Enrolled", data: bytes = b"{}") -> Event:
    return Event(type=kind, data=data, tags=tags or (COURSE,))


class World(CountedStores):
    """Stores in memory that count requests and refusals, with tagged events."""

    @property
    def tagged(self) -> TaggedEvents:
        return self.streams.tagged

    def count(self, tag: str = COURSE) -> int:
        return self.plain.tagged.count(tag)
