"""Tagged events by ids that callers chose, and the recognition of an append that was made before.

The record of an id that a caller chose says where the event is. It is written with the event, so that the event is
appended only once.
"""

from __future__ import annotations

from collections.abc import Iterable

from epochal.codec.bodies import MAX_DECODED, decode
from epochal.errors import CorruptData
from epochal.layout.queries import IdTaken
from epochal.layout.tag_streams import TagStreams
from epochal.layout.tagged_batch import TaggedBatch
from epochal.lazy_dataclasses import replace
from epochal.model.events import Recorded
from epochal.model.tags import repeats
from epochal.pages.items import Page, page_key, read_page
from epochal.pages.reading import query
from epochal.pages.tags.entries import (
    EventOfTag,
    beside_of,
    entries_of,
    id_key,
    placed,
    read_id_record,
    recorded_all,
)
from epochal.plan.batches import settled
from epochal.plan.ops import Steps
from epochal.plan.values import Item


def stored_before(site: TagStreams, batch: TaggedBatch) -> Steps[tuple[Recorded, ...]]:
    """Return a batch's events as stored if their ids exist; empty if none does; raise `IdTaken` otherwise.

    Raises:
        IdTaken: an id exists with other contents, or only some of the ids exist.
    """
    if not batch.ids:
        return ()
    records = yield from _records(site, batch.ids)
    if any(beside_of(record) != batch.beside for record in records):
        raise IdTaken("events", "an append with these ids exists, but with different `also` writes")
    events = yield from _of_records(replace(site, largest=MAX_DECODED), records)
    for event, bodies in zip(batch.events, batch.bodies, strict=True) if events else ():
        stored = events.get(event.id or "")
        if stored is None:
            raise IdTaken(
                "events", f"some ids are stored already, but {event.id or 'an event without one'} is not"
            )
        if not repeats(event, decode(bodies[0]), stored):
            raise IdTaken("events", f"an event with the id {event.id} exists, but with other contents")
    return tuple(events[event.id or ""] for event in batch.events if events)


def events_by_id(site: TagStreams, ids: Iterable[str]) -> Steps[dict[str, Recorded]]:
    """Read events by ids that callers chose; ids without an event are missing in the result."""
    return (yield from _of_records(site, (yield from _records(site, ids))))


def _records(site: TagStreams, ids: Iterable[str]) -> Steps[list[Item]]:
    items: list[Item] = []
    # If a record exists, its event is visible, too, once no append of them is under way.
    for read in settled((site.table, id_key(own_id)) for own_id in dict.fromkeys(ids)):
        reply = yield read
        items += [item for item in reply.items if item is not None]
    return items


def _of_records(site: TagStreams, items: Iterable[Item]) -> Steps[dict[str, Recorded]]:
    """Read the events that records of ids name, by id; raise `CorruptData` if one is not there."""
    entries: list[EventOfTag] = []
    for item in items:
        event_id, stream, index = read_id_record(item)
        entry, last = yield from _entry(site, stream, index)
        if entry is None:
            # The append may still be under way, although its record exists. It writes to this page or to the next one.
            places = (0,) if last is None else (last.index, last.version)
            yield from settled((site.table, page_key(stream, place)) for place in dict.fromkeys(places))
            entry, _ = yield from _entry(site, stream, index)
        if entry is None or entry.id != event_id:
            raise CorruptData(f"the event {event_id} is not where its record says")
        entries.append(entry)
    events = yield from recorded_all(site, entries)
    return {event.id: placed(event, entry) for event, entry in zip(events, entries, strict=True)}


def _entry(site: TagStreams, stream: str, index: int) -> Steps[tuple[EventOfTag | None, Page | None]]:
    """Read the event of a tag's stream at an index; return it with the last page that begins by then."""
    reply = yield query(site.table, stream, 0, index, forward=False, limit=1)
    page = next((read_page(item, site.table) for item in reply.items), None)
    held = () if page is None else entries_of(page.span)
    return next((entry for entry in held if entry.index == index), None), page
