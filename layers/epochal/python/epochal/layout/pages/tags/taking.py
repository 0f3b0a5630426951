"""Events for entries, with their bodies, as long as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from epochal.layout.pages.tags.entries import EventOfTag, recorded_all
from epochal.layout.pages.tags.site import TagStreams
from epochal.model.dcb import RecordedTaggedEvent, Trail
from epochal.model.tagged_results import Takes
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import Steps

PART_BYTES: Final = 4 * 1024 * 1024
"""Bodies that are elsewhere are read in batches, until they come to this."""


def take(
    site: TagStreams,
    wanted: Sequence[EventOfTag],
    takes: Takes,
    *,
    trail: Trail | None,
    first: Trail | None = None,
) -> Steps[tuple[list[RecordedTaggedEvent], str | None]]:
    """The events, and the key at which there was no room for more.

    Args:
        trail: of the events; `first` is that of the first one, where it has another.
    """
    taken: list[RecordedTaggedEvent] = []
    read = 0
    for start in range(0, len(wanted), BATCH_KEYS):
        if read >= PART_BYTES:
            return taken, wanted[start].key
        events = yield from recorded_all(site, wanted[start : start + BATCH_KEYS])
        for event in events:
            event = replace(event, trail=trail if first is None or taken else first)  # noqa: PLW2901
            if not takes(event):
                return taken, event.key
            taken.append(event)
        read += sum(event.size for event in events)
    return taken, None
