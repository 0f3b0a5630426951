"""Groups events of a stream into appends. Pure.

Few large appends cost least, as long as an item holds all their bodies: bodies that do not fit would move to the
bucket, though the original has them in its items. Unfolds belong to one version of the stream, so an append ends at
that version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from epochal.contrib.transfer.copying.digests import CopiedEvent
from epochal.model.bodies import Body

EVENTS: Final = 500
TAGS: Final = 90
"""Most tags in an append: each is an item of a transaction, which has at most 100."""

BYTES: Final = 128 * 1024
"""Most bytes of bodies in an append, uncompressed. An item has at most 400 KB."""

_FIELDS: Final = 200
"""Estimated bytes of an event without its bodies."""


def batches(events: Iterable[CopiedEvent], cut: int | None = None) -> Iterator[tuple[CopiedEvent, ...]]:
    """Yield batches of events, in order, for one append each: limited in number, bytes and tags.

    A batch has at most 500 events, 128 KB of bodies, and 90 tags, unless a single event has more.

    Args:
        events: events of a stream
        cut: index of an event that begins a new batch, so that unfolds of this version go out with the batch
            before it
    """
    batch: list[CopiedEvent] = []
    room, tags = BYTES, set[str]()
    for event in events:
        room -= _size(event)
        tags.update(event.tags)
        if batch and (room < 0 or len(batch) == EVENTS or len(tags) > TAGS or event.index == cut):
            yield tuple(batch)
            batch, room, tags = [], BYTES - _size(event), set(event.tags)
        batch.append(event)
    if batch:
        yield tuple(batch)


def _size(event: CopiedEvent) -> int:
    """Estimate the bytes of an event."""
    return _FIELDS + sum(map(_held, (event.data, event.meta)))


def _held(body: Body) -> int:
    """Return the bytes of a body; 0 for a body in a bucket."""
    return len(body) if isinstance(body, bytes) else 0
