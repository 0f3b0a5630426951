"""Finding an append by its stamp, to tell our own write from another's after a lost response.

Contents are never compared: two writers may append equal events. Nor is an append taken for absent because it was not
found: only a page that holds the events at every index where it may be shows that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.pages.batch import WHOSE, Packed
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import query
from epochal.plan.ops import Items, Steps


class Earlier(Enum):
    """What a search that found nothing means."""

    ABSENT = "absent"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAppend:
    """An append that has been made: its first index, its stamp, and the page that holds it, as it was read."""

    first: int
    stamp: bytes
    page: Page


def in_page(page: Page, batch: Packed) -> FoundAppend | None:
    """The append, if the page holds it.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    at = page.base
    for frame in page.frames:
        at += frame.count
        if _is_of(frame.stamp[8:], batch):
            return FoundAppend(first=at - batch.count, stamp=frame.stamp, page=page)
    return None


def find(table: str, head: Page, batch: Packed, at: int, *, or_later: bool) -> Steps[FoundAppend | Earlier]:
    """An append whose first event has index `at`, or with `or_later` any from there on. Raises as `in_page` does."""
    found = in_page(head, batch)
    if found is not None:
        return found
    if head.index <= at:
        return absent_from(head, at)
    # Newest first: a retry follows its first try closely.
    pages = query(
        table,
        head.stream,
        0,
        head.index - 1 if or_later else at,
        forward=False,
        limit=None if or_later else 1,
    )
    while True:
        reply: Items = yield pages
        for page in (read_page(item, table) for item in reply.items):
            found = in_page(page, batch)
            if found is not None or page.index <= at or absent_from(page, page.index) is Earlier.PRUNED:
                return found or absent_from(page, max(at, page.index))
        if reply.last is None:
            raise CorruptData(f"{head.stream}: event {at} is in no page")
        pages = replace(pages, after=reply.last)


def absent_from(page: Page, at: int) -> Earlier:
    """What it means that an append is not among the page's events from index `at` on."""
    return Earlier.PRUNED if page.base > at else Earlier.ABSENT


def _is_of(rest: bytes, batch: Packed) -> bool:
    if rest == batch.rest:
        return True
    if batch.keyed and rest[:WHOSE] == batch.rest[:WHOSE]:
        raise InvalidInput("idempotency_key", "was used before for other contents")
    return False
