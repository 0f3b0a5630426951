"""Listings of tagged events: the tags in the table, and the events of a tag after a place.

Places increase with the index in a tag, so the page to begin at is found by a search from the end, in steps that
double, and then by bisection. A reader that follows the end of a tag finds the page with one request.
"""

from __future__ import annotations

from epochal.layout.tag_streams import TagStreams
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tag_answers import TagCount, TagEntry
from epochal.model.tags import is_reserved
from epochal.pages.items import Page, read_page
from epochal.pages.reading import Cursor, advance, begin_read, query
from epochal.pages.tags.entries import EventOfTag, entries_of, last_entry, stream_of
from epochal.pages.tags.reading import heads_of
from epochal.plan.conditions import All, AnyOf, BeginsWith, Condition, equals
from epochal.plan.ops import Scan, Steps
from epochal.plan.values import Item, number, text


def make_tag_scan(site: TagStreams, group: str | None) -> Scan:
    """Make the scan for the first page of each tag of a group, or of all tags.

    First pages are never pruned.
    """
    names: Condition = BeginsWith("p", TAG_STREAMS)
    if group is not None:
        own = stream_of(group)
        names = AnyOf((equals("p", text(own)), BeginsWith("p", f"{own}:")))
    where = All((equals("i", number(0)), names))
    return Scan(table=site.table, where=where, consistent=False)


def read_tag(site: TagStreams, item: Item) -> TagCount | None:
    """Read a tag and its event count, 0 if more pages follow, from its first page; None if it is reserved."""
    page = read_page(item, site.table)
    tag = page.stream.removeprefix(TAG_STREAMS)
    return None if is_reserved(tag) else TagCount(tag=tag, events=0 if page.full else page.version)


def latest(site: TagStreams, tag: str) -> Steps[TagEntry | None]:
    """Read the last event of a tag; None if there is none."""
    head = (yield from heads_of(site, [tag]))[tag]
    return None if head is None else entry_of(last_entry(head))


def entry_of(entry: EventOfTag) -> TagEntry:
    """Convert an entry of a tag to the form that callers get, without body."""
    return TagEntry(
        event_id=entry.id,
        event_type=entry.type,
        place=entry.place,
        index=entry.index,
        created_at=entry.event.timestamp,
    )


def count_since(site: TagStreams, tag: str, since: str | None) -> Steps[int]:
    """Count the events of a tag after the place `since`; all of them if it is None."""
    head = (yield from heads_of(site, [tag]))[tag]
    if head is None or since is None:
        return 0 if head is None else head.version
    page = yield from _holding(site, head, since)
    passed = sum(entry.place <= since for entry in entries_of(page.span))
    return head.version - page.index - passed


def begin_read_after(
    site: TagStreams, tag: str, since: str | None, limit: int | None = None
) -> Steps[Cursor | None]:
    """Return a cursor before the page with a tag's first event after `since`; None without events.

    If no event is after `since`, it is the page of the last one.
    """
    if since is None:
        return (yield from begin_read(site.table, stream_of(tag), None, limit=limit))
    head = (yield from heads_of(site, [tag]))[tag]
    if head is None:
        return None
    page = yield from _holding(site, head, since)
    return Cursor(head=head, at=page.index, forward=True, located=True, ahead=(page,))


def entries_after(
    site: TagStreams, cursor: Cursor, since: str | None, limit: int
) -> Steps[tuple[Cursor, list[EventOfTag]]]:
    """Read one more part of a tag; return the next cursor, and the events after `since`."""
    part = yield from advance(site.table, cursor, limit)
    entries = [entry for span in part.spans for entry in entries_of(span)]
    return part.cursor, [entry for entry in entries if since is None or entry.place > since]


def _holding(site: TagStreams, head: Page, since: str) -> Steps[Page]:
    """Find the last page of a tag that begins at or before `since`; the first page if none does."""
    low, high, step = head, head.version, 1
    while low.index and _first(low) > since:
        high, index = low.index, max(0, low.index - step)
        step *= 2
        low = yield from _page_at(site, head, index)
    while low.version < high:
        page = yield from _page_at(site, head, (low.version + high) // 2)
        if _first(page) > since:
            high = page.index
        else:
            low = page
    return low


def _page_at(site: TagStreams, head: Page, index: int) -> Steps[Page]:
    """Read the page that contains event `index`."""
    reply = yield query(site.table, head.stream, 0, index, forward=False, limit=1)
    return read_page(reply.items[0], site.table)


def _first(page: Page) -> str:
    return next(entries_of(page.span)).place
