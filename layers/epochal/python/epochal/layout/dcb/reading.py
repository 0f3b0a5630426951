"""Reading events by tag: the heads first, then the entries up to what the heads say, then the events.

Entries beyond a head's count were written after the head was read; they are cut off, so that what a read
returns and the position it returns are of one moment, tag by tag (DESIGN §5.12).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from epochal.errors import CorruptData
from epochal.layout.dcb.conditions import Fence
from epochal.layout.dcb.items import Keys, read_event, read_head
from epochal.model.dcb import Position, Reached, RecordedTaggedEvent
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import BatchGet, Query, Steps
from epochal.plan.values import Item, Key, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where tagged events are: two tables, and how keys are made."""

    events: str
    tags: str
    keys: Keys
    type_heads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Events in order of their sortable ids, and the position that a read of them has reached."""

    events: tuple[RecordedTaggedEvent, ...]
    position: Position


def read(site: Site, fenced: Fence, after: Position | None = None, also: Collection[str] = ()) -> Steps[Seen]:
    """The events that match a query, or those of them that are new since `after`.

    Args:
        also: further tags whose heads are read on the way, in the same request.
    """
    named = {tag for item in fenced.query.items for tag in item.tags}.union(also)
    heads = yield from read_heads(site, [*fenced.all_tags, *sorted(named.difference(fenced.all_tags))])
    seen = {tag: heads[tag] for tag in fenced.all_tags}
    others = {tag: reached for tag, reached in heads.items() if tag not in seen}
    before = {} if after is None else after.seen
    events = yield from matches(site, fenced, before, seen)
    return Seen(events=events, position=Position(seen=seen, heads=others))


def matches(
    site: Site, fenced: Fence, before: Mapping[str, Reached], until: Mapping[str, Reached]
) -> Steps[tuple[RecordedTaggedEvent, ...]]:
    """Matching events that lie beyond `before` through every item that they match, up to `until`.

    Beyond one item's fence an event may be new, and yet have been seen through another's.
    """
    fresh: dict[str, set[str]] = {}
    for tag in fenced.all_tags:
        types = _types_fenced_by(fenced, tag)
        entries = yield from _entries(site, tag, before.get(tag, Reached()), until[tag])
        fresh[tag] = {
            entry["eventId"]["S"] for entry in entries if not types or entry["eventType"]["S"] in types
        }
    wanted = sorted(set().union(*fresh.values()))
    found = yield from read_events(site, wanted)
    new = [event for event in found.values() if _is_new(event, fenced, fresh)]
    return tuple(sorted(new, key=lambda event: (event.sortable_id, event.id)))


def read_heads(site: Site, tags: Sequence[str]) -> Steps[dict[str, Reached]]:
    """How far each tag has got; nowhere where it has no head."""
    found = {tag: Reached() for tag in tags}
    for keys in _batches([site.keys.head(tag) for tag in found]):
        reply = yield BatchGet(table=site.tags, keys=keys)
        found |= {head.tag: head.reached for head in map(read_head, reply.items)}
    return found


def read_events(site: Site, ids: Iterable[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Events by id; those that have expired, or never were, are missing."""
    found: dict[str, RecordedTaggedEvent] = {}
    for keys in _batches([site.keys.event(event_id) for event_id in ids]):
        reply = yield BatchGet(table=site.events, keys=keys)
        found |= {event.id: event for event in map(read_event, reply.items)}
    return found


def _entries(site: Site, tag: str, before: Reached, until: Reached) -> Steps[list[Item]]:
    """A tag's entries from index `before.count` to `until.count`, exclusive."""
    found: list[Item] = []
    last: Key | None = None
    while before.count < until.count:
        reply = yield Query(
            table=site.tags,
            partition=("pk", text(site.keys.tag(tag))),
            sort=("sk", text(_just_after(before)), text(_just_after(until))),
            after=last,
        )
        # Entries of the original library have no index, and are no part of what heads count.
        found += [item for item in reply.items if "tagIndex" in item]
        last = reply.last
        if last is None:
            break
    if len(found) != until.count - before.count:
        raise CorruptData(f"tag {tag!r}: its head counts {until.count} events, its entries do not")
    return found


def _just_after(reached: Reached) -> str:
    """A sort key behind the last entry reached: event ids have no character as high as ~."""
    return f"{reached.last}#~" if reached.last else "0"


def _types_fenced_by(fenced: Fence, tag: str) -> frozenset[str]:
    """Types that the items fenced by a tag ask for; none where one of them asks for any."""
    types = [item.types for item, tags in zip(fenced.query.items, fenced.tags, strict=True) if tag in tags]
    return frozenset().union(*types) if all(types) else frozenset()


def _is_new(event: RecordedTaggedEvent, fenced: Fence, fresh: Mapping[str, set[str]]) -> bool:
    matched = [
        tags
        for item, tags in zip(fenced.query.items, fenced.tags, strict=True)
        if item.matches(event.type, event.tags)
    ]
    return bool(matched) and all(any(event.id in fresh[tag] for tag in tags) for tags in matched)


def _batches(keys: Sequence[Key]) -> Iterable[tuple[Key, ...]]:
    return (tuple(keys[start : start + BATCH_KEYS]) for start in range(0, len(keys), BATCH_KEYS))
