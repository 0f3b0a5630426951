"""Importing a history into tagged events: for migrations. Not atomic as a whole, and made to be run again.

    atomic      each batch of up to 100 items or 4 MB is one append: events, entries and heads together
    resumable   whatever ended a run, running it again writes what is missing: ids tell what is there
    in order    batches follow each other, so each tag's events come in the order of the history
    kept        ids and timestamps always; sortable ids where they exceed those of all earlier events of their tags,
                which an ordered history into an empty store always does; else the event gets the id that follows, and
                the report counts it (decision 71)

It runs beside appends, but only one import of the same events at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from epochal.errors import InvalidInput
from epochal.layout.dcb.append import append
from epochal.layout.dcb.importing import Dated, cut
from epochal.layout.dcb.writes import Stamp, TaggedBatch, recorded
from epochal.model.dcb import RecordedTaggedEvent, SortableId, TaggedEvent, parse_sortable_id, sortable_id
from epochal.model.times import PER_SECOND, Ticks, from_unix_nanoseconds, parse_time
from epochal.store.dcb_events import DcbEvents

FUTURE: Final = 24 * 60 * 60 * PER_SECOND
"""How far a history may be ahead of our clock. Later appends to a tag exceed its last id, so one id from far in the
future would date all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEvent:
    """An event as it was elsewhere.

    Attributes:
        event: with its id.
        timestamp: when it happened, ISO 8601.
        sortable_id: None where it had none: it is then made from the timestamp and the id, the same every time.
    """

    event: TaggedEvent
    timestamp: str
    sortable_id: SortableId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How far an import has got.

    Attributes:
        read: events of the history that are dealt with; a later run may go on there.
        written: of these, appended.
        found: of these, there before.
        renumbered: of the written, those whose sortable id could not be kept.
    """

    read: int = 0
    written: int = 0
    found: int = 0
    renumbered: int = 0


def imported(event: RecordedTaggedEvent) -> ImportedEvent:
    """An event of another store of tagged events."""
    plain = TaggedEvent(
        type=event.type,
        data=event.data,
        meta=event.meta,
        tags=event.tags,
        id=event.id,
        causation_id=event.causation_id,
        correlation_id=event.correlation_id,
        executed_user=event.executed_user,
    )
    return ImportedEvent(event=plain, timestamp=event.timestamp, sortable_id=event.sortable_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """Imports into one store."""

    store: DcbEvents

    def run(
        self,
        history: Iterable[ImportedEvent],
        *,
        after: Imported | None = None,
        progress: Callable[[Imported], None] | None = None,
    ) -> Imported:
        """Append what of a history is not there yet.

        Args:
            history: in order of time, the same at every run. Read as it is written.
            after: how far an earlier run has got, which saves asking for its events; None asks for all.
            progress: called after every batch with how far it is: that much is stored, whatever happens then.

        Raises:
            InvalidInput: a malformed event, named by its place in the history, or an id that exists with other
                contents. What comes before its batch is stored.
            TooLarge: an event with more tags or bytes than a transaction holds.
        """
        done = after or Imported()
        for batch in cut(self.store.site, self._dated(islice(history, done.read, None), done.read)):
            done = self._import(batch, done)
            if progress is not None:
                progress(done)
        return done

    def _import(self, batch: Sequence[Dated], done: Imported) -> Imported:
        stored = self.store.events([dated.event.id or "" for dated in batch])
        new = [dated for dated in batch if dated.event.id not in stored]
        for place, dated in enumerate(batch, done.read):
            found = stored.get(dated.event.id or "")
            if found is not None and recorded(dated.event, found.sortable_id, found.timestamp) != found:
                raise InvalidInput(f"history[{place}]", f"the id {found.id} exists with other contents")
        written = self._append(new) if new else ()
        moved = sum(
            event.sortable_id != dated.stamp.proposed for event, dated in zip(written, new, strict=True)
        )
        return replace(
            done,
            read=done.read + len(batch),
            written=done.written + len(new),
            found=done.found + len(batch) - len(new),
            renumbered=done.renumbered + moved,
        )

    def _append(self, new: Sequence[Dated]) -> tuple[RecordedTaggedEvent, ...]:
        batch = TaggedBatch(
            events=tuple(dated.event for dated in new), stamps=tuple(dated.stamp for dated in new)
        )
        return self.store.driver.run(append(self.store.site, batch)).events

    def _dated(self, history: Iterable[ImportedEvent], first: int) -> Iterator[Dated]:
        for place, each in enumerate(history, first):
            field = f"history[{place}]"
            if each.event.id is None:
                raise InvalidInput(f"{field}.id", "must be given: it tells what was imported before")
            event = self.store.checked(each.event, field)
            happened = parse_time(each.timestamp, f"{field}.timestamp")
            yield Dated(event, Stamp(self._id_of(each, event, happened, field), each.timestamp))

    def _id_of(self, each: ImportedEvent, event: TaggedEvent, happened: Ticks, field: str) -> SortableId:
        if each.sortable_id is None:
            chosen = sortable_id(happened, int((event.id or "").replace("-", ""), 16))
        else:
            chosen = parse_sortable_id(each.sortable_id, f"{field}.sortable_id")
        if chosen > sortable_id(Ticks(from_unix_nanoseconds(self.store.now()) + FUTURE), 0):
            raise InvalidInput(f"{field}.sortable_id", "lies more than a day in the future")
        return chosen
