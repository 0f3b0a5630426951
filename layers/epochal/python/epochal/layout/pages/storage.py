"""A stream's pages as they are stored: the frames of each, and what the appends that added them cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from epochal.layout.pages.frames import time_of
from epochal.layout.pages.items import Page, frames_size, read_page, unfolds_size
from epochal.layout.pages.reading import query
from epochal.model.storage import StoredAppend, StoredItem
from epochal.model.times import format_ticks
from epochal.plan.ops import Steps
from epochal.plan.units import write_units


def stored_items(table: str, stream: str, first: int, end: int) -> Steps[tuple[StoredItem, ...]]:
    """The pages that hold events `first` to `end - 1`, in two requests. Raises `CorruptData`."""
    found = yield query(table, stream, 0, first, forward=False, limit=1)
    items = found.items
    if end > first + 1:
        more = yield query(table, stream, first + 1, end - 1)
        items += more.items
    return tuple(_shown(read_page(item, table)) for item in items)


def _shown(page: Page) -> StoredItem:
    return StoredItem(
        index=page.index,
        end=page.version,
        bytes=page.size,
        unfolds=unfolds_size(page.unfolds),
        full=page.full,
        appends=tuple(_appends(page)),
    )


def _appends(page: Page) -> Iterator[StoredAppend]:
    """Each left the page with one frame more; the latest left it as it is."""
    index = page.base
    least = bool(page.unfolds) or page.stamp is not None or page.base > page.index
    bare = replace(page, unfolds=b"", stamp=None, full=False, deleted=False)
    for position, frame in enumerate(page.frames, 1):
        last = position == len(page.frames)
        after = page if last else replace(bare, frames=page.frames[:position], version=index + frame.count)
        yield StoredAppend(
            index=index,
            events=frame.count,
            bytes=frames_size((frame,)),
            units=write_units(after.size),
            least=least,
            timestamp=format_ticks(time_of(frame.stamp)),
        )
        index += frame.count
