"""Reading the events that match a query: the streams of the tags that fence it, merged by the places of their events.

The last page of a tag is read first, or all pages of a short stream at once; earlier pages no longer change. So a read
of one tag never shows a part of an append. The tags are read one after another, so a tag may show an append that a tag
that was read before does not show yet (`layout.queries`).

A query is read in parts of bounded size, oldest or newest events first. All parts belong to one read: the heads are
read once, and each part continues where the one before ended. A part reads a limited number of events of each tag. If
a tag has more, the part ends at the earliest place where a tag was cut (newest first, at the latest such place): beyond
it, the events of the tags could not be put in order. Bodies on other pages are read as long as the part has room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Self

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.queries import Fence, at_the_end, begun, check_covered, is_new, types_fenced_by
from epochal.layout.query_reads import ENTRIES, Part, PartBack, Wanted
from epochal.layout.tag_streams import TagStreams
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Recorded
from epochal.model.positions import Position, Reached
from epochal.model.tag_answers import REST, Down, Reach, Seen, Takes
from epochal.model.tags import Trail
from epochal.model.tokens import MAX_VERSION
from epochal.pages.items import Page, read_page
from epochal.pages.reading import SHORT, Cursor, advance, begin_read, cursor_at, last_pages, load_head, query
from epochal.pages.tags.entries import (
    EventOfTag,
    entries_of,
    reached_by,
    recorded_all,
    recorded_each,
    stream_of,
)
from epochal.plan.batches import side_by_side
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import Items, Query, Steps

Cursors = Mapping[str, Cursor]
"""Cursors of reads by tag; a tag without a cursor has not been read yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReads:
    """Reads of the events that match one query (see `layout.query_reads.TaggedReads`).

    Attributes:
        site: the table of tags.
        fenced: the query, with the tags that fence it.
        cursors: cursors by tag, with the pages that were read together with the read's position.
    """

    site: TagStreams
    fenced: Fence
    cursors: Cursors = field(default_factory=dict)

    def everything(self, after: Position | None = None) -> Steps[Seen]:
        """Read the matching events, or those new since `after`; return them with the read's position."""
        before: Reach = {} if after is None else after.seen
        position, first = yield from self.begin(before)
        events = yield from matches(
            self.site, self.fenced, before, position.seen, first.cursors, end=position
        )
        return Seen(events=at_the_end(events, position), position=position)

    def begin(self, before: Reach, limit: int = SHORT) -> Steps[tuple[Position, Self]]:
        """Read the tags' heads; return the position of a read that begins now, and its first pages.

        The heads of the query's other tags come along: they save an append a request.

        Args:
            limit: events of each tag that are wanted; a page has an event at least.
        """
        site, fenced = self.site, self.fenced
        others = {tag for item in fenced.query.items for tag in item.tags}.difference(fenced.all_tags)
        unread = [tag for tag in fenced.all_tags if not before.get(tag, Reached()).count]
        rest = [tag for tag in (*fenced.all_tags, *sorted(others)) if tag not in unread]
        replies: list[Items] = yield from side_by_side(
            [query(site.table, stream_of(tag), 0, MAX_VERSION, limit=min(SHORT, limit + 1)) for tag in unread]
            + [_last(site, tag) for tag in rest]
        )
        cursors = dict[str, Cursor]()
        heads = dict[str, Page | None]()
        for tag, reply in zip((*unread, *rest), replies, strict=True):
            pages = tuple(read_page(item, site.table) for item in reply.items)
            head: Page | None = pages[-1] if pages else None
            if tag in unread and reply.last is not None:
                head = yield from load_head(site.table, stream_of(tag))
            heads[tag] = head
            if head is not None and tag in unread:
                cursors[tag] = Cursor(head=head, at=0, forward=True, located=True, ahead=pages)
            elif head is not None:
                cursors[tag] = cursor_at(head, max(0, before.get(tag, Reached()).count - 1))
        reached = {tag: reached_by(head) for tag, head in heads.items()}
        position = Position(
            seen={tag: reached[tag] for tag in fenced.all_tags},
            heads={tag: reached[tag] for tag in others},
            items=fenced.marks,
        )
        return position, replace(self, cursors=cursors)

    def part(self, query: Wanted) -> Steps[Part]:
        """Read the next matching events: all that are wanted, or as many as fit in a part.

        A few more events are read of each tag, since pages are read whole.
        """
        reach, until = query.at, query.until
        most = ENTRIES if query.most is None else min(ENTRIES, query.most)
        slices = dict[str, _Slice]()
        for tag in self.fenced.all_tags:
            between, cursor = (reach[tag], until[tag]), self.cursors.get(tag)
            slices[tag] = yield from _upward(self.site, tag, between, cursor, most=most, field=query.field)
        chains = {tag: part.entries for tag, part in slices.items()}
        bound = min((f"{part.entries[-1].key}~" for part in slices.values() if not part.whole), default=None)
        entries = [
            entry
            for entry in candidates(self.fenced, chains, query.before, until)
            if bound is None or entry.key < bound
        ]
        trail = None if query.end is None else Trail(base=reach, passed=places_of(chains), end=query.end)
        events, cut = yield from take(self.site, entries, query.takes, trail=trail)
        bound = bound if cut is None else cut
        if bound is None:
            return Part(events=tuple(events), reached=until, done=True)
        reached = {tag: _passed(part.entries, reach[tag], bound) for tag, part in slices.items()}
        return Part(events=tuple(events), reached=reached, done=False, full=cut is not None)

    def part_back(
        self, after: Position | None, rest: Down | None, takes: Takes, most: int
    ) -> Steps[PartBack]:
        """Read some matching events, newest first, from up to about `most` events of each tag.

        `rest` is that of the part before, of the same query.
        """
        fenced = self.fenced
        base = begun(fenced, {} if after is None else after.seen)
        cursors: Cursors = {}
        if rest is None:
            # With an end other than the beginning, `begin` reads the last pages instead of the first ones.
            position, first_read = yield from self.begin({tag: Reached(1) for tag in fenced.all_tags})
            cursors = first_read.cursors
        else:
            for reached in (rest.position, Position(seen=rest.at)):
                check_covered(reached, fenced, REST)
            position = rest.position
        tops = position.seen if rest is None else rest.at
        field = "after" if rest is None else REST
        slices = dict[str, _Slice]()
        for tag in fenced.all_tags:
            slices[tag] = yield from _downward(
                self.site, tag, base[tag], tops[tag], cursors.get(tag), most=most, field=field
            )
        chains = {tag: part.entries for tag, part in slices.items()}
        floor = max((part.entries[0].key for part in slices.values() if not part.whole), default=None)
        sought = [
            entry
            for entry in reversed(candidates(fenced, chains, base, position.seen))
            if floor is None or entry.key > floor
        ]
        trail = Trail(base=base, passed=places_of(chains), end=position)
        first = Trail.of(position) if rest is None else None
        events, cut = yield from take(self.site, sought, takes, trail=trail, first=first)
        lowest = floor if cut is None else cut
        further = None
        if lowest is not None:
            remaining = {tag: _left(part.entries, base[tag], lowest) for tag, part in slices.items()}
            further = Down(upto=lowest, position=position, at=remaining)
        return PartBack(events=tuple(events), position=position, rest=further, full=cut is not None)


def events_between(site: TagStreams, tag: str, first: int, end: int) -> Steps[tuple[Recorded, ...]]:
    """Read a tag's events `first` to `end - 1`, as far as there are any."""
    entries: list[EventOfTag] = []
    cursor = yield from begin_read(site.table, stream_of(tag), first)
    while cursor is not None and not cursor.at_end and cursor.at < end:
        part = yield from advance(site.table, cursor, end - cursor.at)
        entries += [entry for span in part.spans for entry in entries_of(span.before(end))]
        cursor = part.cursor
    return tuple((yield from recorded_all(site, entries)))


def heads_of(site: TagStreams, tags: Collection[str]) -> Steps[dict[str, Page | None]]:
    """Read the last page of each tag; None for a tag without events."""
    pages = yield from last_pages(site.table, [stream_of(tag) for tag in tags])
    return {tag: pages[stream_of(tag)] for tag in tags}


def matches(
    site: TagStreams,
    fenced: Fence,
    before: Reach,
    until: Reach,
    cursors: Cursors,
    *,
    end: Position | None = None,
) -> Steps[tuple[Recorded, ...]]:
    """Read the matching events that are new since `before`, and not beyond `until`.

    Args:
        end: position of the read, if each event gets a position of its own; else None.
    """
    chains = dict[str, Sequence[EventOfTag]]()
    for tag in fenced.all_tags:
        between = (before.get(tag, Reached()), until[tag])
        chains[tag] = (yield from _upward(site, tag, between, cursors.get(tag))).entries
    sought = candidates(fenced, chains, before, until)
    events = yield from recorded_all(site, sought)
    if end is None:
        return tuple(events)
    trail = Trail(base=begun(fenced, before), passed=places_of(chains), end=end)
    return tuple(replace(event, trail=trail) for event in events)


def candidates(
    fenced: Fence, chains: Mapping[str, Sequence[EventOfTag]], before: Reach, until: Reach
) -> list[EventOfTag]:
    """Return new matching events, once each, in order, as the entry with the body if one has it."""
    by_key = dict[str, EventOfTag]()
    for tag, entries in chains.items():
        types = types_fenced_by(fenced, tag)
        for entry in entries:
            if types and entry.type not in types:
                continue
            earlier = by_key.get(entry.key)
            if earlier is None or earlier.body is not None:
                by_key[entry.key] = entry
    return [by_key[key] for key in sorted(by_key) if is_new(by_key[key], fenced, before, until)]


def places_of(chains: Mapping[str, Iterable[EventOfTag]]) -> dict[str, list[tuple[str, int]]]:
    """Return the keys and indices of entries, by tag, as a trail has them."""
    return {tag: [(entry.key, entry.index) for entry in entries] for tag, entries in chains.items()}


def entries_after_reached(
    tag: str, entries: Sequence[EventOfTag], reached: Reached, field: str = "after"
) -> Sequence[EventOfTag]:
    """Return the entries after the first, which must be the one `reached` names; all if it names none.

    `reached` may come from outside. If it names none, all entries are returned.

    Raises:
        InvalidInput: it is not what was reached.
    """
    if not reached.count:
        return entries
    if not entries or entries[0].reached != reached:
        raise foreign_position_error(tag, field)
    return entries[1:]


def foreign_position_error(tag: str, field: str) -> InvalidInput:
    """Make the error for an end that a tag never had."""
    return InvalidInput(field, f"does not match the events of {tag!r}: it is of another store, or altered")


def _last(site: TagStreams, tag: str) -> Query:
    return query(site.table, stream_of(tag), 0, MAX_VERSION, forward=False, limit=1)


PART_BYTES: Final = 4 * 1024 * 1024
"""Bytes of events after which a part reads no further batch of events."""


def take(
    site: TagStreams,
    entries: Sequence[EventOfTag],
    takes: Takes,
    *,
    trail: Trail | None,
    first: Trail | None = None,
) -> Steps[tuple[list[Recorded], str | None]]:
    """Read events until `takes` refuses one, or 4 MB; return them and the next event's key, or None.

    Args:
        trail: data from which an event's position is computed; `first` replaces it for the first event.
    """
    taken: list[Recorded] = []
    read = 0
    for start in range(0, len(entries), BATCH_KEYS):
        if read >= PART_BYTES:
            return taken, entries[start].key
        events = yield from recorded_each(site, entries[start : start + BATCH_KEYS])
        for event in events:
            event = replace(event, trail=trail if first is None or taken else first)  # noqa: PLW2901
            if not takes(event):
                return taken, event.key
            taken.append(event)
            read += event.size
    return taken, None


SLICE_BYTES: Final = 1024 * 1024
"""Bytes of a tag's events after which a part reads no more."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """Events of one tag, in ascending order; `whole` if none is left in the order of reading."""

    entries: Sequence[EventOfTag]
    whole: bool


def _upward(
    site: TagStreams,
    tag: str,
    between: tuple[Reached, Reached],
    cursor: Cursor | None,
    *,
    most: int | None = None,
    field: str = "after",
) -> Steps[_Slice]:
    """Read a tag's events between two ends, all or about `most`; raise `InvalidInput` for a foreign end."""
    index, until = between
    if index.count >= until.count:
        if index != until and index.count:
            raise foreign_position_error(tag, field)
        return _Slice((), whole=True)
    # The last event before the range is read, too: it shows that the end in the position is genuine.
    cursor = cursor or cursor_at(_ending(site, tag, until), max(0, index.count - 1))
    entries: list[EventOfTag] = []
    size = 0
    while not cursor.at_end and (most is None or (len(entries) <= most and size < SLICE_BYTES)):
        limit = None if most is None else most + 1 - len(entries)
        cursor, more = yield from _step(site, tag, cursor, limit, field)
        entries += more
        size += sum(len(entry.event.data.data) for entry in more)
    if cursor.at_end and entries and entries[-1].reached != until:
        raise foreign_position_error(tag, field)
    return _Slice(entries_after_reached(tag, entries, index, field), whole=cursor.at_end)


def _downward(
    site: TagStreams,
    tag: str,
    before: Reached,
    top: Reached,
    cursor: Cursor | None,
    *,
    most: int,
    field: str,
) -> Steps[_Slice]:
    """Read about `most` of a tag's events, downward from `top` to `before`; at least two if there are."""
    if before.count >= top.count:
        if before != top and before.count:
            raise foreign_position_error(tag, "after")
        return _Slice((), whole=True)
    head = _ending(site, tag, top) if cursor is None else cursor.head
    back = cursor_at(head, None, forward=False)
    least = max(0, before.count - 1)
    entries: list[EventOfTag] = []
    size = 0
    while not back.at_end and (not entries or entries[0].index > least):
        # The lowest event is left for the next part, which begins there.
        if len(entries) > 1 and (len(entries) > most or size >= SLICE_BYTES):
            break
        back, more = yield from _step(site, tag, back, max(1, most + 1 - len(entries)), field)
        entries = [*more, *entries]
        size += sum(len(entry.event.data.data) for entry in more)
    if entries and entries[-1].reached != top:
        raise foreign_position_error(tag, field)
    entries = [entry for entry in entries if entry.index >= least]
    complete = not entries or entries[0].index == least
    if complete:
        return _Slice(entries_after_reached(tag, entries, before), whole=True)
    return _Slice(entries, whole=False)


def _step(
    site: TagStreams, tag: str, cursor: Cursor, limit: int | None, field: str
) -> Steps[tuple[Cursor, list[EventOfTag]]]:
    """Read a tag's next part; return the new cursor and the part's events in ascending order.

    An end that came from outside may be one that the tag never had.
    """
    try:
        part = yield from advance(site.table, cursor, limit)
    except CorruptData as error:
        if cursor.head.frames:
            raise
        raise foreign_position_error(tag, field) from error
    spans = part.spans if cursor.forward else reversed(part.spans)
    return part.cursor, [entry for span in spans for entry in entries_of(span)]


def _ending(site: TagStreams, tag: str, until: Reached) -> Page:
    """Make a last page without events, at which a read ends even if the tag has grown since."""
    return Page(table=site.table, stream=stream_of(tag), index=until.count, version=until.count)


def _passed(entries: Sequence[EventOfTag], reached: Reached, bound: str) -> Reached:
    return next((entry.reached for entry in reversed(entries) if entry.key < bound), reached)


def _left(entries: Sequence[EventOfTag], base: Reached, bound: str) -> Reached:
    return next((entry.reached for entry in reversed(entries) if entry.key <= bound), base)
