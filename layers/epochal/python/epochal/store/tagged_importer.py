"""Imports a history into tagged events, for migrations. An import is not atomic as a whole, and can be run again.

    atomic      each batch is one append
    resumable   after any failure, another run writes the events that are missing, which it recognizes by their ids
    in order    batches are written one after another, so each tag has its events in the order of the history
    kept        ids and timestamps are always kept; a place is kept if the tables can keep it. If not, the event gets
                the next possible place, and the report counts it (decision 71)

It runs beside appends, but only one import of the same events at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Claim, body_size
from epochal.model.events import Event, Recorded
from epochal.model.moments import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds, read_moment
from epochal.model.outcomes import Appended
from epochal.model.stream_names import TIMER_SET
from epochal.model.tag_answers import DatedEvent
from epochal.model.tags import make_place, parse_place
from epochal.pages.tags.append import append
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_pages import TaggedEvents

_OPENED: Final = b'{"copied":true,'


def marked(event: Event) -> Event:
    """Mark the event as a copy, if it sets a timer; return any other event unchanged."""
    if event.type != TIMER_SET or isinstance(event.data, Claim) or event.data != unmarked(event.data):
        return event
    return replace(event, data=event.data.replace(b"{", _OPENED, 1))


def unmarked(body: bytes) -> bytes:
    """Remove the mark of a copy from the body of a timer's setting."""
    before, opened, rest = body.partition(_OPENED)
    return body if before.strip() or not opened else before + b"{" + rest


FUTURE: Final = 24 * 60 * 60 * PER_SECOND
"""How far the places of a history may be ahead of this clock. Each append to a tag gets a later place than the last
one, so a place far in the future would date all later appends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEvent:
    """An event of another store, as it is to be imported.

    Attributes:
        event: the event, with its id.
        timestamp: time at which the event happened, ISO 8601.
        place: sortable text that orders the event among all events; None if it had none, or if the tables could not
            keep it.
    """

    event: Event
    timestamp: str
    place: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The progress of an import, as counts of events.

    Attributes:
        read: number of events from the start of the history that have been dealt with; a later run may continue there.
        written: number of events of the history that were appended.
        found: number of events of the history that were already stored, and so were not appended again.
        renumbered: number of appended events that got a new place in the order, because their own could not be kept.
    """

    read: int = 0
    written: int = 0
    found: int = 0
    renumbered: int = 0


def imported(event: Recorded) -> ImportedEvent:
    """Convert an event that was read from another store of tagged events to the form that `Importer.run` takes.

    Args:
        event: event that the other store has read.
    """
    return ImportedEvent(event=event.again(), timestamp=event.timestamp, place=event.place)


class Importer(ABC):
    """Imports a history of events into one store of tagged events."""

    __slots__ = ()
    store: TaggedStore

    def run(
        self,
        history: Iterable[ImportedEvent],
        *,
        after: Imported | None = None,
        progress: Callable[[Imported], None] | None = None,
    ) -> Imported:
        """Append the events of a history that are not stored yet; return the progress.

        Args:
            history: events in order of time, the same at every run. They are read while others are written.
            after: progress of an earlier run, whose events are skipped; None looks for all events.
            progress: called after every batch with the progress, which is stored whatever happens later.

        Raises:
            InvalidInput: a malformed event, named by its place in the history, or an id that exists with other
                contents. What comes before its batch is stored.
            TooLarge: an event with more tags or bytes than a transaction holds.
        """
        imported = after or Imported()
        for batch in self._cut(self._dated(islice(history, imported.read, None), imported.read)):
            imported = self._import(batch, imported)
            if progress is not None:
                progress(imported)
        return imported

    @abstractmethod
    def _cut(self, history: Iterable[DatedEvent]) -> Iterator[Sequence[DatedEvent]]:
        """Yield parts of the history, each small enough for one append unless its first event is too large.

        An id appears once in a part.
        """

    @abstractmethod
    def _as_stored(self, dated: DatedEvent, stored: Recorded) -> Recorded:
        """Return the event as it would be stored if it were the event found under its id."""

    @abstractmethod
    def _append(self, new: Sequence[DatedEvent]) -> int:
        """Append a part of the history; return the number of its places that could not be kept."""

    def _import(self, batch: Sequence[DatedEvent], done: Imported) -> Imported:
        """Append a batch's events that are not stored yet; return progress, raise if a stored one differs.

        Raises:
            InvalidInput: an id exists with other contents.
        """
        stored = self.store.events([dated.event.id or "" for dated in batch])
        new = [dated for dated in batch if dated.event.id not in stored]
        for place, dated in enumerate(batch, done.read):
            earlier = stored.get(dated.event.id or "")
            if earlier is not None and self._as_stored(dated, earlier) != earlier:
                raise InvalidInput(f"history[{place}]", f"the id {earlier.id} belongs to another event")
        moved = self._append(new) if new else 0
        return replace(
            done,
            read=done.read + len(batch),
            written=done.written + len(new),
            found=done.found + len(batch) - len(new),
            renumbered=done.renumbered + moved,
        )

    def _dated(self, history: Iterable[ImportedEvent], first: int) -> Iterator[DatedEvent]:
        """Check the events of a history; yield each with its time and place.

        Args:
            first: number of the first event in the history, for error messages.

        Raises:
            InvalidInput: an event is malformed or has no id.
        """
        for place, imported in enumerate(history, first):
            field = f"history[{place}]"
            if imported.event.id is None:
                raise InvalidInput(f"{field}.id", "must be given, to recognize imported events")
            event = self.store.normalize_event(marked(imported.event), field)
            happened = read_moment(imported.timestamp, f"{field}.timestamp")
            chosen = self._place_of(imported, event, happened, field)
            yield DatedEvent(event=event, timestamp=imported.timestamp, happened=happened, place=chosen)

    def _place_of(self, imported: ImportedEvent, event: Event, happened: Ticks, field: str) -> str:
        """Return an event's place, made of its time and id if it has none; raise if it is over a day ahead.

        Raises:
            InvalidInput: the place is malformed, or more than a day in the future.
        """
        if imported.place is None:
            chosen = make_place(happened, int((event.id or "").replace("-", ""), 16))
        else:
            chosen = parse_place(imported.place, f"{field}.place")
        if chosen > make_place(Ticks(from_unix_nanoseconds(self.store.now()) + FUTURE), 0):
            raise InvalidInput(f"{field}.place", "must not be more than a day in the future")
        return chosen


# Imports a history into the pages layout.
#
# batches     have up to 200 KB of events, which share a frame on each of their tags' pages
# kept        are timestamps, to 100 ns, but never places: the events of an append have consecutive places
# renumbered  are events whose new place does not have the time at which they happened

BATCH_BYTES: Final = 200_000
"""Largest bytes of a batch's events: half of an item, before compression."""

_FIELDS: Final = 300
"""Estimated bytes of the fields of an event besides its bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedImporter(Importer):
    """Imports the tagged events of another store, with their ids and times, into a table of streams.

    Attributes:
        store: store that the history is imported into.
    """

    store: TaggedEvents

    def _cut(self, history: Iterable[DatedEvent]) -> Iterator[Sequence[DatedEvent]]:
        """Yield parts of up to 200 KB and 100 items of the history, in which each id appears once."""
        chosen: list[DatedEvent] = []
        ids, tags, size = set[str | None](), set[str](), 0
        for dated in history:
            own = set(self.store.site.tags_of(dated.event.type, dated.event.tags))
            size += _FIELDS + body_size(dated.event.data) + body_size(dated.event.meta)
            items = len(ids) + 1 + len(tags | own)
            if chosen and (items > TRANSACTION_ITEMS or size > BATCH_BYTES or dated.event.id in ids):
                yield chosen
                chosen, ids, tags, size = [], set(), set(), 0
            chosen.append(dated)
            ids.add(dated.event.id)
            tags |= own
        if chosen:
            yield chosen

    def _as_stored(self, dated: DatedEvent, stored: Recorded) -> Recorded:
        """Return the event as it would be stored if it were the event found under its id."""
        event = dated.event
        return replace(
            stored,
            type=event.type,
            data=event.data,
            meta=event.meta,
            tags=tuple(sorted(set(event.tags))),
            timestamp=format_ticks(dated.happened),
            causation_id=event.causation_id,
            correlation_id=event.correlation_id,
        )

    def _append(self, new: Sequence[DatedEvent]) -> int:
        """Append a part of the history; return the number of places that differ from those wanted."""
        events = [replace(dated.event, timestamp=format_ticks(dated.happened)) for dated in new]
        batch = replace(self.store.batch(events), now=max(dated.happened for dated in new), dated=True)
        outcome = self.store.driver.run(append(self.store.site, batch))
        written = outcome.events if isinstance(outcome, Appended) else ()
        return sum(event.place != dated.place for event, dated in zip(written, new, strict=True))
