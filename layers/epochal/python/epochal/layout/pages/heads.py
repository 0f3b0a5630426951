"""What a page tells the feed: the events that its latest write appended.

Every page is a head: its image carries its index, the next one, and its frames, so nothing need be read. A stream has
as many heads as pages, each with events of its own; one that is full does not tell whether another follows.
"""

from __future__ import annotations

from epochal.layout.pages.items import Page, is_page, read_page
from epochal.layout.pages.spans import PageSpan
from epochal.model.ends import End
from epochal.model.spans import Span
from epochal.plan.conditions import Absent, Condition, Present
from epochal.plan.values import Item

WHERE: Condition = Present("r", "N")
"""What only pages meet: records of idempotency keys do not."""

MOVED: Condition = Absent("w", "B")
"""What a page meets that an append wrote."""


def appended(item: Item) -> Span | None:
    """The span that a page's latest write appended; None for records, and writes without events.

    Raises:
        CorruptData: the item looks like a page, and contradicts itself.
    """
    page = _page_of(item)
    if page is None or page.stamp is not None:
        return None
    return _span(page.span.since(page.version - page.frames[-1].count))


def end(item: Item) -> End | None:
    """Where a page ends; None for records. Raises as `appended` does."""
    page = _page_of(item)
    if page is None:
        return None
    pruned = max(page.low_water, page.base if page.base > page.index else 0)
    return End(page.stream, page.version, pruned, since=page.index, last=page.deleted or not page.full)


def stored(item: Item) -> Span | None:
    """The events that a page holds: what is before it is in other pages. None where it holds none. Raises likewise."""
    page = _page_of(item)
    return None if page is None else _span(page.span)


def _page_of(item: Item) -> Page | None:
    return read_page(item) if is_page(item) else None


def _span(span: PageSpan) -> Span | None:
    return Span(span.page.stream, span.base, tuple(span.types)) if span.base < span.next else None
