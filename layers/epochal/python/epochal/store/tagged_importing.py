"""Importing a history into pages.

atomic      a batch has events of up to 200 KB, which share a frame on each of their tags' pages
kept        timestamps to 100 ns; sortable ids never: an append has one place, and its events follow one another there
counted     as renumbered are events whose new place is not at the time at which they happened
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from epochal.layout.pages.tags.append import append
from epochal.model.dcb import RecordedTaggedEvent, bytes_of
from epochal.model.tagged_results import DatedEvent, TaggedAppended
from epochal.model.times import format_ticks
from epochal.plan.ops import TRANSACTION_ITEMS
from epochal.store.importing import Importer
from epochal.store.tagged import TaggedEvents

BATCH_BYTES: Final = 200_000
"""Half of an item, before they are compressed."""

_FIELDS: Final = 300
"""Bytes reckoned for the fields of an event besides its bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedImporter(Importer):
    """Imports into one store."""

    store: TaggedEvents

    def _cut(self, history: Iterable[DatedEvent]) -> Iterator[Sequence[DatedEvent]]:
        taken: list[DatedEvent] = []
        ids, tags, size = set[str | None](), set[str](), 0
        for each in history:
            own = set(self.store.site.tags_of(each.event.type, each.event.tags))
            size += _FIELDS + sum(len(bytes_of(body)) for body in (each.event.data, each.event.meta))
            items = len(ids) + 1 + len(tags | own)
            if taken and (items > TRANSACTION_ITEMS or size > BATCH_BYTES or each.event.id in ids):
                yield taken
                taken, ids, tags, size = [], set(), set(), 0
            taken.append(each)
            ids.add(each.event.id)
            tags |= own
        if taken:
            yield taken

    def _as_stored(self, dated: DatedEvent, found: RecordedTaggedEvent) -> RecordedTaggedEvent:
        event = dated.event
        return replace(
            found,
            type=event.type,
            data=event.data,
            meta=event.meta,
            tags=tuple(sorted(set(event.tags))),
            timestamp=format_ticks(dated.happened),
            causation_id=event.causation_id,
            correlation_id=event.correlation_id,
            executed_user=event.executed_user,
        )

    def _append(self, new: Sequence[DatedEvent]) -> int:
        times = tuple(each.happened for each in new)
        batch = replace(self.store.batch([each.event for each in new]), now=max(times), times=times)
        made = self.store.driver.run(append(self.store.site, batch))
        written = made.events if isinstance(made, TaggedAppended) else ()
        return sum(event.sortable_id != each.place for event, each in zip(written, new, strict=True))
