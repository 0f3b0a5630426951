"""Reading by tag: one chain of pages for each tag that fences the query, merged by the events' places.

A tag's last page is read first, or with all of a short chain; what is before it no longer changes. So an append never
shows in parts through one tag. The tags are read one after the other: what one of them shows, another that was read
before may not (`layout.matching`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from epochal.errors import InvalidInput
from epochal.layout.fences import Fence
from epochal.layout.matching import at_the_end, begun, is_new, types_fenced_by
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import SHORT, Cursor, advance, load_head, query, stand
from epochal.layout.pages.reading import begin as begin_stream
from epochal.layout.pages.tags.entries import EventOfTag, entries_of, reached_by, recorded_all
from epochal.layout.pages.tags.site import TagStreams, stream_of
from epochal.model.dcb import Position, Reached, RecordedTaggedEvent, Trail
from epochal.model.tagged_results import Reach, Seen
from epochal.model.versions import MAX_VERSION
from epochal.plan.batches import side_by_side
from epochal.plan.ops import Items, Query, Steps

Cursors = Mapping[str, Cursor]
"""Where the reads of tags have got to that have begun; a tag that is missing has not."""


def read(site: TagStreams, fenced: Fence, after: Position | None = None) -> Steps[Seen]:
    """The events that match a query, or those of them that are new since `after`."""
    before: Reach = {} if after is None else after.seen
    position, cursors = yield from begin(site, fenced, before)
    events = yield from matches(site, fenced, before, position.seen, cursors, end=position)
    return Seen(events=at_the_end(events, position), position=position)


def begin(
    site: TagStreams, fenced: Fence, before: Reach, limit: int = SHORT
) -> Steps[tuple[Position, Cursors]]:
    """The position of a read that begins now, and its cursors.

    The heads of the query's other tags come along: they save an append a request.

    Args:
        limit: events of each tag that are wanted; a page has an event at least.
    """
    others = {tag for item in fenced.query.items for tag in item.tags}.difference(fenced.all_tags)
    whole = [tag for tag in fenced.all_tags if not before.get(tag, Reached()).count]
    rest = [tag for tag in (*fenced.all_tags, *sorted(others)) if tag not in whole]
    replies: list[Items] = yield from side_by_side(
        [query(site.table, stream_of(tag), 0, MAX_VERSION, limit=min(SHORT, limit + 1)) for tag in whole]
        + [_last(site, tag) for tag in rest]
    )
    cursors = dict[str, Cursor]()
    heads = dict[str, Page | None]()
    for tag, reply in zip((*whole, *rest), replies, strict=True):
        pages = tuple(read_page(item, site.table) for item in reply.items)
        head: Page | None = pages[-1] if pages else None
        if tag in whole and reply.last is not None:
            head = yield from load_head(site.table, stream_of(tag))
        heads[tag] = head
        if head is not None and tag in whole:
            cursors[tag] = Cursor(head=head, at=0, forward=True, located=True, ahead=pages)
        elif head is not None:
            cursors[tag] = stand(head, max(0, before.get(tag, Reached()).count - 1))
    reached = {tag: reached_by(head) for tag, head in heads.items()}
    position = Position(
        seen={tag: reached[tag] for tag in fenced.all_tags},
        heads={tag: reached[tag] for tag in others},
        items=fenced.marks,
    )
    return position, cursors


def events_between(
    site: TagStreams, tag: str, first: int, end: int
) -> Steps[tuple[RecordedTaggedEvent, ...]]:
    """A tag's events from index `first` to `end - 1`, as far as there are any."""
    found: list[EventOfTag] = []
    cursor = yield from begin_stream(site.table, stream_of(tag), first)
    while cursor is not None and not cursor.at_end and cursor.at < end:
        part = yield from advance(site.table, cursor, end - cursor.at)
        found += [entry for span in part.spans for entry in entries_of(span.before(end))]
        cursor = part.cursor
    return tuple((yield from recorded_all(site, found)))


def heads_of(site: TagStreams, tags: Collection[str]) -> Steps[dict[str, Page | None]]:
    """The last page of each tag; None where it has none."""
    replies: list[Items] = yield from side_by_side(_last(site, tag) for tag in tags)
    return {
        tag: read_page(reply.items[0], site.table) if reply.items else None
        for tag, reply in zip(tags, replies, strict=True)
    }


def matches(
    site: TagStreams,
    fenced: Fence,
    before: Reach,
    until: Reach,
    cursors: Cursors,
    *,
    end: Position | None = None,
) -> Steps[tuple[RecordedTaggedEvent, ...]]:
    """Matching events that are beyond `before`, and up to `until` through any item that they match.

    Args:
        end: the position of the read, where events shall tell theirs.
    """
    chains = dict[str, Sequence[EventOfTag]]()
    for tag in fenced.all_tags:
        chains[tag] = yield from _chain(site, tag, before.get(tag, Reached()), until[tag], cursors.get(tag))
    wanted = candidates(fenced, chains, before, until)
    events = yield from recorded_all(site, wanted)
    if end is None:
        return tuple(events)
    trail = Trail(base=begun(fenced, before), passed=places_of(chains), end=end)
    return tuple(replace(event, trail=trail) for event in events)


def candidates(
    fenced: Fence, chains: Mapping[str, Sequence[EventOfTag]], before: Reach, until: Reach
) -> list[EventOfTag]:
    """Entries of what matches and is new, each event once, in order: with its body, where one of them has it."""
    found = dict[str, EventOfTag]()
    for tag, entries in chains.items():
        types = types_fenced_by(fenced, tag)
        for entry in entries:
            if types and entry.type not in types:
                continue
            known = found.get(entry.key)
            if known is None or known.body is not None:
                found[entry.key] = entry
    return [found[key] for key in sorted(found) if is_new(found[key], fenced, before, until)]


def places_of(chains: Mapping[str, Iterable[EventOfTag]]) -> dict[str, list[tuple[str, int]]]:
    """Keys of entries with their indices, as a trail has them."""
    return {tag: [(entry.key, entry.index) for entry in entries] for tag, entries in chains.items()}


def after(
    tag: str, entries: Sequence[EventOfTag], reached: Reached, field: str = "after"
) -> Sequence[EventOfTag]:
    """Without those that were reached. The last of these was read as well: `reached` may come from outside.

    Raises:
        InvalidInput: it is not what was reached.
    """
    if not reached.count:
        return entries
    if not entries or entries[0].reached != reached:
        raise altered(tag, field)
    return entries[1:]


def altered(tag: str, field: str) -> InvalidInput:
    """What is raised for an end that a tag never had."""
    return InvalidInput(field, f"does not fit what is stored of {tag!r}: it is of another store, or altered")


def _last(site: TagStreams, tag: str) -> Query:
    return query(site.table, stream_of(tag), 0, MAX_VERSION, forward=False, limit=1)


def _chain(
    site: TagStreams, tag: str, before: Reached, until: Reached, cursor: Cursor | None
) -> Steps[Sequence[EventOfTag]]:
    """A tag's events from index `before.count` to `until.count`, exclusive."""
    if before.count >= until.count or cursor is None:
        if before.count and before != until:
            raise altered(tag, "after")
        return []
    found: list[EventOfTag] = []
    while not cursor.at_end:
        part = yield from advance(site.table, cursor)
        found += [entry for span in part.spans for entry in entries_of(span)]
        cursor = part.cursor
    return after(tag, found, before)
