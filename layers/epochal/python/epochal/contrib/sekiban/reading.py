"""Reading events by tag: the heads first, then the entries up to what the heads say, then the events.

Entries beyond a head's count were written after the head was read; they are cut off, so that what a read
returns and the position it returns are of one moment, tag by tag (DESIGN §5.12).

An append that is being carried out may show in parts: a head or an entry is there, and what belongs to it is not yet.
So an entry that a head counts is looked for again, and an event that an entry names is asked for in a transaction,
which waits for the append: an event that this does not find has expired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from epochal.contrib.sekiban.entries import just_after, places_of, read_entries, whole
from epochal.contrib.sekiban.events import RecordedTaggedEvent
from epochal.contrib.sekiban.items import TagSite, read_event, read_head
from epochal.layout.queries import Fence, at_the_end, begun, is_new, types_fenced_by
from epochal.model.events import Recorded
from epochal.model.tags import Reach, Seen, Trail
from epochal.model.versions import Position, Reached
from epochal.plan.ops import Steps, get_all, settled
from epochal.plan.values import Item, Key


def read(
    site: TagSite,
    fenced: Fence,
    after: Position | None = None,
    *,
    tags: Collection[str] = (),
    ids: Collection[str] = (),
) -> Steps[Seen]:
    """The events that match a query, or those of them that are new since `after`.

    Args:
        tags: further tags whose heads are read in the same request.
        ids: as for `matches`.
    """
    position = yield from stand(site, fenced, tags)
    before: Reach = {} if after is None else after.seen
    events = yield from matches(site, fenced, before, position.seen, ids, end=position)
    return Seen(events=at_the_end(events, position), position=position)


def stand(site: TagSite, fenced: Fence, tags: Collection[str] = ()) -> Steps[Position]:
    """The position of a read that begins now.

    The heads of the query's other tags, and of `tags`, come along: they save an append a request.
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
    """Matching events that are beyond `before`, and up to `until` through any item that they match.

    Args:
        ids: if there may be any match, also return the events of these ids, whatever they match.
        end: the position of the read, where events shall tell theirs.
    """
    wanted: set[str] = set()
    passed: dict[str, list[tuple[str, int]]] = {}
    for tag in fenced.all_tags:
        types = types_fenced_by(fenced, tag)
        start = before.get(tag, Reached())
        look = partial(_look, site, tag, start, until[tag])
        entries = yield from whole(look, site, tag, until[tag], [start])
        passed[tag] = places_of(entries)
        wanted |= {
            entry["eventId"]["S"] for entry in entries if not types or entry["eventType"]["S"] in types
        }
    found = yield from read_events(site, sorted(wanted.union(ids)) if wanted else ())
    found |= yield from settled_events(site, sorted(wanted.difference(found)))
    new = [event for event in found.values() if event.id in ids or is_new(event, fenced, before, until)]
    new.sort(key=lambda event: (event.place, event.id))
    if end is None:
        return tuple(new)
    trail = Trail(base=begun(fenced, before), passed=passed, end=end)
    return tuple(replace(event, trail=trail) for event in new)


def read_heads(site: TagSite, tags: Sequence[str]) -> Steps[dict[str, Reached]]:
    """How far each tag has got; nowhere where it has no head."""
    found = {tag: Reached() for tag in tags}
    items = yield from get_all(site.tags, map(site.keys.head, found))
    reached = {site.keys.tag_of(item["pk"]["S"]): read_head(item).reached for item in items}
    return {tag: reached.get(tag, nowhere) for tag, nowhere in found.items()}


def read_events(site: TagSite, ids: Iterable[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Events by id; those that have expired, never were, or are being written are missing."""
    return _by_id((yield from get_all(site.events, map(site.keys.event, ids))))


def certain_events(site: TagSite, ids: Sequence[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Events by id; those that have expired, or never were, are missing, and none that is being written is."""
    found = yield from read_events(site, ids)
    return found | (yield from settled_events(site, [each for each in ids if each not in found]))


def settled_events(site: TagSite, ids: Sequence[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Events by id, once no append of them is under way; those that have expired, or never were, are missing."""
    found: dict[str, RecordedTaggedEvent] = {}
    for read in settled((site.events, site.keys.event(event_id)) for event_id in ids):
        reply = yield read
        found |= _by_id(item for item in reply.items if item is not None)
    return found


def _by_id(items: Iterable[Item]) -> dict[str, RecordedTaggedEvent]:
    return {event.id: event for event in map(read_event, items)}


def _look(site: TagSite, tag: str, before: Reached, until: Reached) -> Steps[list[Item] | None]:
    """A tag's entries from index `before.count` to `until.count`, exclusive; None where one is missing."""
    found: list[Item] = []
    last: Key | None = None
    # A position that was altered may end beyond what it begins.
    while before.count < until.count and before.last <= until.last:
        entries, last = yield from read_entries(site, tag, (just_after(before), just_after(until)), last)
        found += entries
        if last is None:
            break
    return found if len(found) == until.count - before.count else None
