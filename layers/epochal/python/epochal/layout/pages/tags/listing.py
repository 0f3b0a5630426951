"""Listing what there is: a tag's events since one of them, and which tags there are.

Sortable ids increase with the index in a tag, so where to begin is found as one finds a page in a book: from the end,
in steps that double, then between two pages that are known. Who follows the end finds it with one request.
"""

from __future__ import annotations

from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import Cursor, advance, begin, query
from epochal.layout.pages.tags.entries import EventOfTag, TagStreams, entries_of, last_entry, stream_of
from epochal.layout.pages.tags.reading import heads_of
from epochal.model.events import TAG_STREAMS
from epochal.model.tags import TagCount, TagEntry, is_reserved
from epochal.plan.ops import All, AnyOf, BeginsWith, Condition, Scan, Steps, equals
from epochal.plan.values import Item, number, text


def tags_page(site: TagStreams, group: str | None) -> Scan:
    """The first page of a scan for the first page of each tag of a group, or of all. They are never pruned."""
    named: Condition = BeginsWith("p", TAG_STREAMS)
    if group is not None:
        own = stream_of(group)
        named = AnyOf((equals("p", text(own)), BeginsWith("p", f"{own}:")))
    where = All((equals("i", number(0)), named))
    return Scan(table=site.table, where=where, consistent=False)


def read_tag(site: TagStreams, item: Item) -> TagCount | None:
    """The tag whose first page this is, with its number of events, or 0 where others follow; None: it is reserved."""
    page = read_page(item, site.table)
    tag = page.stream.removeprefix(TAG_STREAMS)
    return None if is_reserved(tag) else TagCount(tag=tag, events=0 if page.full else page.version)


def latest(site: TagStreams, tag: str) -> Steps[TagEntry | None]:
    """The last event of a tag."""
    head = (yield from heads_of(site, [tag]))[tag]
    return None if head is None else entry_of(last_entry(head))


def entry_of(entry: EventOfTag) -> TagEntry:
    """An event without its body."""
    return TagEntry(
        event_id=entry.id,
        event_type=entry.type,
        place=entry.place,
        index=entry.index,
        created_at=entry.event.timestamp,
    )


def count_since(site: TagStreams, tag: str, since: str | None) -> Steps[int]:
    """How many events a tag has after `since`."""
    head = (yield from heads_of(site, [tag]))[tag]
    if head is None or since is None:
        return 0 if head is None else head.version
    page = yield from _holding(site, head, since)
    passed = sum(entry.place <= since for entry in entries_of(page.span))
    return head.version - page.index - passed


def stand_after(
    site: TagStreams, tag: str, since: str | None, limit: int | None = None
) -> Steps[Cursor | None]:
    """Before the page of a tag that has the first event after `since`, or the last one up to it. None: it has none."""
    if since is None:
        return (yield from begin(site.table, stream_of(tag), None, limit=limit))
    head = (yield from heads_of(site, [tag]))[tag]
    if head is None:
        return None
    page = yield from _holding(site, head, since)
    return Cursor(head=head, at=page.index, forward=True, located=True, ahead=(page,))


def entries_after(
    site: TagStreams, cursor: Cursor, since: str | None, limit: int
) -> Steps[tuple[Cursor, list[EventOfTag]]]:
    """One part more of a tag, of what came after `since`."""
    part = yield from advance(site.table, cursor, limit)
    found = [entry for span in part.spans for entry in entries_of(span)]
    return part.cursor, [entry for entry in found if since is None or entry.place > since]


def _holding(site: TagStreams, head: Page, since: str) -> Steps[Page]:
    """The last page that begins at or before `since`; the first one, where none does."""
    low, high, step = head, head.version, 1
    while low.index and _first(low) > since:
        high, at = low.index, max(0, low.index - step)
        step *= 2
        low = yield from _page_at(site, head, at)
    while low.version < high:
        page = yield from _page_at(site, head, (low.version + high) // 2)
        if _first(page) > since:
            high = page.index
        else:
            low = page
    return low


def _page_at(site: TagStreams, head: Page, at: int) -> Steps[Page]:
    """The page that holds event `at`."""
    reply = yield query(site.table, head.stream, 0, at, forward=False, limit=1)
    return read_page(reply.items[0], site.table)


def _first(page: Page) -> str:
    return next(entries_of(page.span)).place
