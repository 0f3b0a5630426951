"""Reading events by tag: the heads first, then the entries up to what the heads say, then the events.

Entries beyond a head's count were written after the head was read; they are cut off, so that what a read
returns and the position it returns are of one moment, tag by tag (DESIGN §5.12).

An append that is being carried out may show in parts: a head or an entry is there, and what belongs to it is not yet.
So an entry that a head counts is looked for again, and an event that an entry names is asked for in a transaction,
which waits for the append: an event that this does not find has expired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Self

from epochal.contrib.sekiban.entries import (
    Slice,
    after_id,
    event_id_of,
    key_of,
    places_of,
    possible_keys,
    read_entries,
    retry_until_complete,
)
from epochal.contrib.sekiban.items import RecordedTaggedEvent, TagSite, read_event, read_head
from epochal.layout.queries import Fence, at_the_end, begun, check_covered, is_new, types_fenced_by
from epochal.layout.query_reads import ENTRIES, Part, PartBack, Wanted
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Recorded
from epochal.model.positions import Position, Reached
from epochal.model.tag_answers import REST, Down, Reach, Seen, Takes
from epochal.model.tags import Trail
from epochal.plan.batches import get_all, settled
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import Steps
from epochal.plan.values import Item, Key, read_number


def stand(site: TagSite, fenced: Fence, tags: Collection[str] = ()) -> Steps[Position]:
    """Read the heads of a query's tags, and return the position of a read that begins now.

    The heads of the query's other tags, and of `tags`, are read in the same request: they save an append a request.
    """
    others = {tag for item in fenced.query.items for tag in item.tags}.union(tags).difference(fenced.all_tags)
    heads = yield from read_heads(site, [*fenced.all_tags, *sorted(others)])
    return Position(
        seen={tag: heads[tag] for tag in fenced.all_tags},
        heads={tag: heads[tag] for tag in others},
        items=fenced.marks,
    )


def matches(
    site: TagSite,
    fenced: Fence,
    before: Reach,
    until: Reach,
    ids: Collection[str] = (),
    *,
    end: Position | None = None,
) -> Steps[tuple[Recorded, ...]]:
    """Read the events that match a query, are after `before`, and are at most at `until`.

    Args:
        fenced: the query, with the tags that fence it.
        before: how far the reader has read each tag already.
        until: how far each tag is read; an event has to be within it through any query item that it matches.
        ids: ids of events to return whatever they match, if any event may match.
        end: the position of the read, if the events are to have positions of their own.
    """
    missing: set[str] = set()
    passed: dict[str, list[tuple[str, int]]] = {}
    for tag in fenced.all_tags:
        types = types_fenced_by(fenced, tag)
        start = before.get(tag, Reached())
        look = partial(_look, site, tag, start, until[tag])
        entries = (yield from retry_until_complete(look, site, tag, until[tag], [start])).entries
        passed[tag] = places_of(entries)
        missing |= {
            entry["eventId"]["S"] for entry in entries if not types or entry["eventType"]["S"] in types
        }
    events = yield from read_events(site, sorted(missing.union(ids)) if missing else ())
    events |= yield from settled_events(site, sorted(missing.difference(events)))
    new = [event for event in events.values() if event.id in ids or is_new(event, fenced, before, until)]
    new.sort(key=lambda event: (event.place, event.id))
    if end is None:
        return tuple(new)
    trail = Trail(base=begun(fenced, before), passed=passed, end=end)
    return tuple(replace(event, trail=trail) for event in new)


def read_heads(site: TagSite, tags: Sequence[str]) -> Steps[dict[str, Reached]]:
    """Read the count and last sortable id of each tag, which are zero and empty without a head."""
    heads = {tag: Reached() for tag in tags}
    items = yield from get_all(site.tags, map(site.keys.head, heads))
    reached = {site.keys.tag_of(item["pk"]["S"]): read_head(item).reached for item in items}
    return {tag: reached.get(tag, nowhere) for tag, nowhere in heads.items()}


def read_events(site: TagSite, ids: Iterable[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Read events by id; those that are expired, unknown or being written are missing."""
    return _by_id((yield from get_all(site.events, map(site.keys.event, ids))))


def certain_events(site: TagSite, ids: Sequence[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Read events by id, including those that are being written; expired and unknown ones are missing."""
    events = yield from read_events(site, ids)
    return events | (
        yield from settled_events(site, [event_id for event_id in ids if event_id not in events])
    )


def settled_events(site: TagSite, ids: Sequence[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Read events by id in transactions that wait for appends under way; those not there are left out.

    Events that have expired, or never existed, are missing from the result.
    """
    events: dict[str, RecordedTaggedEvent] = {}
    for read in settled((site.events, site.keys.event(event_id)) for event_id in ids):
        reply = yield read
        events |= _by_id(item for item in reply.items if item is not None)
    return events


def _by_id(items: Iterable[Item]) -> dict[str, RecordedTaggedEvent]:
    """Decode events from items, and return them by id."""
    return {event.id: event for event in map(read_event, items)}


# The matches of a query, read in bounded parts, oldest or newest first: the interface that `layout.queries` needs.
#
# A part reads a bounded number of entries of each fencing tag. Where a tag has more of them, the part ends at the
# earliest such cut: beyond it, the entries of different tags could not be put in order.
#
# Newest first, all parts belong to one read, whose heads were read once. A part reads some entries of each fencing tag,
# from its place downward. The highest of the keys at which these entries end is as far down as the tags can be put in
# order. Above it every tag has an entry at or below each event, or has none left, so each event's position is known.


PART_BYTES: Final = 4 * 1024 * 1024
"""Bytes of events, matching or not, after which a part reads no further batch."""


def take(
    site: TagSite,
    fenced: Fence,
    keys: Sequence[str],
    takes: Takes,
    *,
    before: Reach,
    until: Reach,
    trail: Trail | None,
    first: Trail | None = None,
    at_once: int,
) -> Steps[tuple[list[Recorded], str | None]]:
    """Read the entries' matching new events; return them and the key to go on from, None if all were read.

    Args:
        keys: sort keys of the entries, in the order of reading.
        takes: the function that counts an event and returns False if there is no room for it.
        before: how far the reader has read each tag already.
        until: how far each tag is read.
        trail: trail of the events, which tells their positions.
        first: trail of the first event, if it differs.
        at_once: number of events in the first request; each further request has twice as many.
    """
    events: list[Recorded] = []
    index = read = 0
    while index < len(keys):
        if read >= PART_BYTES:
            return events, keys[index]
        batch = keys[index : index + at_once]
        certain = yield from certain_events(site, list(map(event_id_of, batch)))
        for key in batch:
            event = certain.get(event_id_of(key))
            if event is None or not is_new(event, fenced, before, until):
                continue
            event = replace(event, trail=trail if first is None or events else first)
            if not takes(event):
                return events, key
            events.append(event)
        read += sum(event.size for event in certain.values())
        index, at_once = index + len(batch), min(BATCH_KEYS, 2 * at_once)
    return events, None


def _look(
    site: TagSite, tag: str, reached: Reached, until: Reached, limit: int | None = None
) -> Steps[Slice | None]:
    """Read a tag's entries between two places once, all or about `limit`; None if an entry is missing."""
    entries_found: list[Item] = []
    last: Key | None = None
    while reached.count < until.count and reached.last <= until.last:
        bounds = (after_id(reached.last), after_id(until.last))
        entries, last = yield from read_entries(site, tag, bounds, last, limit=limit)
        entries_found += entries
        if last is None or (entries_found and limit is not None):
            break
    end = until.count if last is None else reached.count + len(entries_found)
    indices = [read_number(item, "tagIndex") for item in entries_found]
    # Lengths first: if `until` was supplied by a caller, the range may be larger than memory.
    if len(indices) != end - reached.count or indices != list(range(reached.count, end)):
        return None
    return Slice(tuple(entries_found), last is None)


def _in_order(fenced: Fence, slices: Mapping[str, Slice]) -> tuple[list[str], str | None]:
    """Return the ordered keys of entries that may match, and the key from which on some are missing.

    The second key is None if none is missing.
    """
    ends = [f"{key_of(part.entries[-1])}~" for part in slices.values() if not part.whole]
    bound = min(ends, default=None)
    ordered = sorted(key for key in possible_keys(fenced, slices) if bound is None or key < bound)
    return (ordered, bound) if len(ordered) <= ENTRIES else (ordered[:ENTRIES], ordered[ENTRIES])


def _reached(slices: Mapping[str, Slice], start: Reach, bound: str) -> Reach:
    """Return how far each tag has been read by a part that ends before the key `bound`."""
    reached = dict(start)
    for tag, part in slices.items():
        passed = [item for item in part.entries if key_of(item) < bound]
        if passed:
            reached[tag] = Reached(start[tag].count + len(passed), passed[-1]["sortableUniqueId"]["S"])
    return reached


FIRST: Final = 20
"""Entries of each tag that are read in addition to the requested number of events; entries are small."""


def _in_order_back(fenced: Fence, slices: Mapping[str, Slice]) -> tuple[list[str], str | None]:
    """Return keys of entries that may match, newest first, and the key from which down some are missing.

    The second key is None if none is missing.
    """
    floor = max((key_of(part.entries[0]) for part in slices.values() if not part.whole), default=None)
    return sorted(
        (key for key in possible_keys(fenced, slices) if floor is None or key > floor), reverse=True
    ), floor


def _look_back(
    site: TagSite, tag: str, between: tuple[Reached, Reached], cut: tuple[str | None, int]
) -> Steps[Slice | None]:
    """Read about `most` of a tag's entries downward from a key once; None if an entry is missing.

    At least two entries are read if there are as many.

    Args:
        between: the places in the tag above and up to which entries are read.
        cut: the key from which to read downward, None for the end of `between`, and the number of entries.
    """
    (before, until), (upto, most) = between, cut
    entries_found: list[Item] = []
    last: Key | None = None
    highest = after_id(until.last) if upto is None else min(after_id(until.last), upto)
    if before.count >= until.count or highest < after_id(before.last):
        return Slice((), whole=True)
    while True:
        entries, last = yield from read_entries(
            site, tag, (after_id(before.last), highest), last, forward=False, limit=most + 1
        )
        entries_found += entries
        if len(entries_found) > 1 or last is None:
            break
    entries_found.reverse()
    indices = [index for _, index in places_of(entries_found)]
    top = until.count if upto is None else indices[-1] + 1 if indices else before.count
    bottom = before.count if last is None else indices[0]
    if indices != list(range(bottom, top)):
        return None
    return Slice(tuple(entries_found), whole=last is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DcbReads:
    """Reads of the events that match a fenced query; implements `layout.query_reads.TaggedReads`."""

    site: TagSite
    fenced: Fence

    def everything(self, after: Position | None) -> Steps[Seen]:
        """Read all events that match, or all new ones since the position `after`, with the new position."""
        position = yield from stand(self.site, self.fenced)
        before: Reach = {} if after is None else after.seen
        events = yield from matches(self.site, self.fenced, before, position.seen, end=position)
        return Seen(events=at_the_end(events, position), position=position)

    def begin(
        self,
        before: Reach,  # noqa: ARG002  heads alone are read
        limit: int,  # noqa: ARG002  likewise
    ) -> Steps[tuple[Position, Self]]:
        """Begin a read in parts: read the heads, and return the read's position and this reader."""
        return (yield from stand(self.site, self.fenced)), self

    def part(self, matching: Wanted) -> Steps[Part]:
        """Read a part of the matching events, oldest first.

        The number of entries read does not depend on the number of events wanted, since entries are small.
        """
        site, fenced = self.site, self.fenced
        reached, until = matching.at, matching.until
        slices: dict[str, Slice] = {}
        for tag in fenced.all_tags:
            fields = [reached[tag], until[tag]] if matching.field == REST else [reached[tag]]
            look = partial(_look, site, tag, reached[tag], until[tag], ENTRIES)
            slices[tag] = yield from retry_until_complete(
                look, site, tag, until[tag], fields, field=matching.field
            )
        keys, bound = _in_order(fenced, slices)
        passed = {tag: places_of(part.entries) for tag, part in slices.items()}
        trail = None if matching.end is None else Trail(base=reached, passed=passed, end=matching.end)
        events, cut = yield from take(
            site,
            fenced,
            keys,
            matching.takes,
            before=matching.before,
            until=until,
            trail=trail,
            at_once=BATCH_KEYS,
        )
        bound = bound if cut is None else cut
        if bound is None:
            return Part(events=tuple(events), reached=until, done=True)
        return Part(
            events=tuple(events), reached=_reached(slices, reached, bound), done=False, full=cut is not None
        )

    def part_back(
        self, after: Position | None, rest: Down | None, takes: Takes, most: int
    ) -> Steps[PartBack]:
        """Read a page of the matching events, or of the new ones since `after`, newest first.

        Args:
            after: position after which events are new; None for all events.
            rest: cursor of the previous page, whose query and `after` must have been the same; None begins a read.
            takes: the function that counts an event and returns False if there is no room for it.
            most: number of events wanted; so many entries of each tag are read, plus `FIRST`.
        """
        site, fenced = self.site, self.fenced
        before: Reach = {} if after is None else after.seen
        entries, at_once = min(ENTRIES, FIRST + most), min(BATCH_KEYS, most + 1)
        base = begun(fenced, before)
        if rest is None:
            position = yield from stand(site, fenced)
        else:
            check_covered(rest.position, fenced, REST)
            position = rest.position
        upto = None if rest is None else rest.upto
        slices: dict[str, Slice] = {}
        for tag in fenced.all_tags:
            between = (base[tag], position.seen[tag])
            field, bounds = ("after", between[:1]) if rest is None else (REST, between)
            look = partial(_look_back, site, tag, between, (upto, entries))
            slices[tag] = yield from retry_until_complete(look, site, tag, between[1], bounds, field=field)
        passed = {tag: places_of(part.entries) for tag, part in slices.items()}
        trail = Trail(base=base, passed=passed, end=position)
        keys, floor = _in_order_back(fenced, slices)
        events, cut = yield from take(
            site,
            fenced,
            keys,
            takes,
            before=before,
            until=position.seen,
            trail=trail,
            first=Trail.of(position) if rest is None else None,
            at_once=at_once,
        )
        lowest = floor if cut is None else cut
        further = None if lowest is None else Down(upto=lowest, position=position)
        return PartBack(events=tuple(events), position=position, rest=further, full=cut is not None)
