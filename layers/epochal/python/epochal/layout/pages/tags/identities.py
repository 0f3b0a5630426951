"""Events by ids that callers chose: each has a record of where it is, written with it, so that it is appended once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from epochal.codec.bodies import Encoded
from epochal.errors import CorruptData
from epochal.layout.fences import IdTaken
from epochal.layout.pages.items import Page, page_key, read_page
from epochal.layout.pages.reading import query
from epochal.layout.pages.tags.batch import TaggedBatch
from epochal.layout.pages.tags.entries import EventOfTag, body_of, entries_of, placed, recorded_all
from epochal.layout.pages.tags.site import TagStreams, id_key, read_id_record
from epochal.model.dcb import RecordedTaggedEvent, TaggedEvent, is_text
from epochal.plan.batches import settled
from epochal.plan.ops import Steps
from epochal.plan.values import Item


def stored_before(site: TagStreams, batch: TaggedBatch) -> Steps[tuple[RecordedTaggedEvent, ...]]:
    """A batch of ids as it is stored, if it is there already and equal; none of it, nothing.

    Raises:
        InvalidInput: an id exists with other contents; some exist, and others do not.
    """
    if not batch.ids:
        return ()
    found = yield from events_by_id(site, batch.ids)
    for event, bodies in zip(batch.events, batch.bodies, strict=True) if found else ():
        stored = found.get(event.id or "")
        if stored is None:
            raise IdTaken(
                "events", f"some of the ids exist and {event.id or 'an event without one'} does not"
            )
        if not _as_stored(event, bodies[0], stored).repeats(stored):
            raise IdTaken("events", f"the id {event.id} exists with other contents")
    return tuple(found[event.id or ""] for event in batch.events if found)


def events_by_id(site: TagStreams, ids: Iterable[str]) -> Steps[dict[str, RecordedTaggedEvent]]:
    """Events by ids that callers chose; those that never were are missing."""
    items: list[Item] = []
    # Where a record is, its event is too, once no append of them is under way.
    for read in settled((site.table, id_key(event_id)) for event_id in dict.fromkeys(ids)):
        reply = yield read
        items += [item for item in reply.items if item is not None]
    return (yield from _of_records(site, items))


def _as_stored(event: TaggedEvent, data: Encoded, stored: RecordedTaggedEvent) -> RecordedTaggedEvent:
    return replace(
        stored,
        type=event.type,
        data=body_of(data, text=is_text(event.data)),
        tags=tuple(sorted(set(event.tags))),
        executed_user=event.executed_user,
    )


def _of_records(site: TagStreams, items: Iterable[Item]) -> Steps[dict[str, RecordedTaggedEvent]]:
    entries: list[EventOfTag] = []
    for item in items:
        event_id, stream, index = read_id_record(item)
        entry, last = yield from _entry(site, stream, index)
        if entry is None:
            # The append may be under way still, though its record is there: it writes to this page, or to the next.
            places = (0,) if last is None else (last.index, last.version)
            yield from settled((site.table, page_key(stream, place)) for place in dict.fromkeys(places))
            entry, _ = yield from _entry(site, stream, index)
        if entry is None or entry.id != event_id:
            raise CorruptData(f"the event {event_id} is not where its record says")
        entries.append(entry)
    events = yield from recorded_all(site, entries)
    return {event.id: placed(event, entry) for event, entry in zip(events, entries, strict=True)}


def _entry(site: TagStreams, stream: str, index: int) -> Steps[tuple[EventOfTag | None, Page | None]]:
    """What a tag has at an index, and the last page that begins there or before."""
    reply = yield query(site.table, stream, 0, index, forward=False, limit=1)
    page = next((read_page(each, site.table) for each in reply.items), None)
    held = () if page is None else entries_of(page.span)
    return next((entry for entry in held if entry.index == index), None), page
