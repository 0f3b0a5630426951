"""What a page tells the feed: the events that its latest write appended.

Every page is a head: its image carries its index, the next one, and its frames, so nothing need be read. A stream has
as many heads as pages, each with events of its own; one that is full does not tell whether another follows.

Frames of one write have stamps one tick apart. Those of two writes may have, too, where a clock is behind the stream:
then a head tells events that an earlier one has told, which the index drops.
"""

from __future__ import annotations

from epochal.layout.pages.frames import time_of
from epochal.layout.pages.items import Page, is_dictionary, is_page, read_page
from epochal.layout.pages.spans import PageSpan
from epochal.layout.port import Touched
from epochal.model.ends import End
from epochal.model.spans import Span
from epochal.model.times import Ticks
from epochal.plan.conditions import Condition, Present
from epochal.plan.values import Item

WHERE: Condition = Present("r", "N")
"""What only pages meet: records of idempotency keys do not."""


def appended(item: Item) -> Span | Touched | None:
    """The span that a page's latest write appended; None for records, and writes without events.

    Where this process has not met the dictionary that it is packed under, only that it is.

    Raises:
        CorruptData: the item looks like a page, and contradicts itself.
    """
    page = _page_of(item)
    if page is None or page.stamp is not None:
        return None
    span = page.span.since(page.version - _latest(page))
    return Touched(stream=page.stream) if _is_closed(page) else _span(span)


def _latest(page: Page) -> int:
    """How many events the latest write appended."""
    *earlier, last = page.frames
    count, time = last.count, time_of(last.stamp)
    for frame in reversed(earlier):
        time = Ticks(time - 1)
        if time_of(frame.stamp) != time:
            break
        count += frame.count
    return count


def end(item: Item) -> End | None:
    """Where a page ends; None for records. Raises as `appended` does."""
    page = _page_of(item)
    if page is None:
        return None
    pruned = max(page.low_water, page.base if page.base > page.index else 0)
    return End(page.stream, page.version, pruned, since=page.index)


def told(item: Item) -> Span | Touched | None:
    """`stored`, or as for `appended` that there is something."""
    page = _page_of(item)
    return Touched(stream=page.stream) if page is not None and _is_closed(page) else stored(item)


def stored(item: Item) -> Span | None:
    """The events that a page holds: what is before it is in other pages. None where it holds none. Raises likewise."""
    page = _page_of(item)
    return None if page is None else _span(page.span)


def learn(item: Item) -> None:
    """Meet the dictionary that an item is, if it is one. Raises likewise."""
    if is_dictionary(item) and "d" in item:
        from epochal.layout.pages.dictionaries import read_dictionary  # noqa: PLC0415  most stores have none

        read_dictionary(item)


def _is_closed(page: Page) -> bool:
    """Whether frames of it cannot be opened yet."""
    if not page.dictionaries:
        return False
    from epochal.layout.pages.dictionaries import lacks  # noqa: PLC0415  most stores have none

    return lacks(page)


def _page_of(item: Item) -> Page | None:
    return read_page(item) if is_page(item) else None


def _span(span: PageSpan) -> Span | None:
    return Span(span.page.stream, span.base, tuple(span.types)) if span.base < span.next else None
