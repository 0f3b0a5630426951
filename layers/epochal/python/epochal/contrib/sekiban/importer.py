"""Importing a history into Sekiban's tables.

atomic      a batch has up to 100 items or 4 MB: events, entries and heads together
kept        sortable ids where they exceed those of all earlier events of their tags, which an ordered history into
            an empty store always does
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from epochal.contrib.sekiban.append import Stamp, TaggedBatch, append, parts_of, recorded
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.contrib.sekiban.store import DcbEvents
from epochal.copying.importing import Importer
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Recorded
from epochal.model.tags import DatedEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class DcbImporter(Importer):
    """Imports into one store."""

    store: DcbEvents

    def _cut(self, history: Iterable[DatedEvent]) -> Iterator[Sequence[DatedEvent]]:
        return parts_of(self.store.site, history)

    def _as_stored(self, dated: DatedEvent, found: Recorded) -> Recorded:
        return recorded(dated.event, found.place, found.timestamp)

    def _append(self, new: Sequence[DatedEvent]) -> int:
        stamps = tuple(Stamp(dated.place, dated.timestamp) for dated in new)
        batch = TaggedBatch(events=tuple(TaggedEvent.of(dated.event) for dated in new), stamps=stamps)
        written = self.store.driver.run(append(self.store.site, batch)).events
        return sum(event.place != dated.place for event, dated in zip(written, new, strict=True))
