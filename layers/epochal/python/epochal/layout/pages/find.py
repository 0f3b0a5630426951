"""Finding an append by its stamp, to tell our own write from another's after a lost response.

Contents are never compared: two writers may append equal events. Nor is an append taken for absent because it was not
found: only a page that holds the events at every index where it may be shows that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.pages.batch import WHOSE, Packed
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import query
from epochal.layout.streams import decided_events
from epochal.plan.ops import Items, Steps


class Earlier(Enum):
    """What a search that found nothing means."""

    ABSENT = "absent"
    PRUNED = "pruned"


class Sought(Protocol):
    """What an append is looked for by."""

    @property
    def rest(self) -> bytes:
        """What follows the time in its stamp."""

    @property
    def keyed(self) -> bool:
        """Whether that stems from a caller's idempotency key."""

    @property
    def count(self) -> int | None:
        """How many events it has, with those that went out with it; None where that depends on what was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtDecision:
    """A decision, looked for by the key that it was made under."""

    rest: bytes
    keyed = True
    count = None


def sought(batch: Packed) -> Sought:
    """What a batch is looked for by."""
    return SoughtDecision(rest=batch.rest) if is_decision(batch) else batch


def is_decision(batch: Packed) -> bool:
    """Whether it is what was decided, which may be otherwise where that is done again."""
    return batch.keyed and decided_events(batch.append_id) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAppend:
    """An append that has been made: its first index and the one after its last, its stamp, and the page that holds it,
    as it was read.
    """

    first: int
    end: int
    stamp: bytes
    page: Page


def in_page(page: Page, batch: Sought, since: int) -> FoundAppend | None:
    """The append, if the page holds it at index `since` or later. What is below that is of a key that was used before,
    and has been forgotten since.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    first = page.base
    for frame in page.frames:
        end = first + frame.count
        if first >= since and _is_of(frame.stamp[8:], batch):
            count = frame.count if batch.count is None else batch.count
            return FoundAppend(first=end - count, end=end, stamp=frame.stamp, page=page)
        first = end
    return None


def find(table: str, head: Page, batch: Sought, at: int, *, or_later: bool) -> Steps[FoundAppend | Earlier]:
    """An append whose first event has index `at`, or with `or_later` any from there on. Raises as `in_page` does."""
    found = in_page(head, batch, at)
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
            found = in_page(page, batch, at)
            if found is not None or page.index <= at or absent_from(page, page.index) is Earlier.PRUNED:
                return found or absent_from(page, max(at, page.index))
        if reply.last is None:
            raise CorruptData(f"{head.stream}: event {at} is in no page")
        pages = replace(pages, after=reply.last)


def absent_from(page: Page, at: int) -> Earlier:
    """What it means that an append is not among the page's events from index `at` on."""
    return Earlier.PRUNED if page.base > at else Earlier.ABSENT


def _is_of(rest: bytes, batch: Sought) -> bool:
    if rest == batch.rest:
        return True
    if batch.keyed and rest[:WHOSE] == batch.rest[:WHOSE]:
        raise InvalidInput("idempotency_key", "was used before for other contents")
    return False
