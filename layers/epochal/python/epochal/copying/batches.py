"""Which events of a stream are appended together. Pure.

Few large appends cost least, as long as an item holds all their bodies: what does not fit is moved to the bucket, and
the original had it in its items. Unfolds are of one version of the stream, so an append ends there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from epochal.copying.contents import CopiedEvent
from epochal.model.events import Body

EVENTS: Final = 500
BYTES: Final = 128 * 1024
"""Of bodies as they are, uncompressed: an item has 400 KB."""

_FIELDS: Final = 200
"""Bytes reckoned for what an event has besides its bodies."""


def batches(events: Iterable[CopiedEvent], cut: int | None = None) -> Iterator[tuple[CopiedEvent, ...]]:
    """Events in their order, together as they are appended; none goes beyond event `cut - 1` that begins before it."""
    batch: list[CopiedEvent] = []
    room = BYTES
    for event in events:
        room -= _size(event)
        if batch and (room < 0 or len(batch) == EVENTS or event.index == cut):
            yield tuple(batch)
            batch, room = [], BYTES - _size(event)
        batch.append(event)
    if batch:
        yield tuple(batch)


def _size(event: CopiedEvent) -> int:
    return _FIELDS + sum(map(_held, (event.data, event.meta)))


def _held(body: Body) -> int:
    return len(body) if isinstance(body, bytes) else 0
