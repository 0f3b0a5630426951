"""What a program does once: opens Sekiban's tables, of an account or in memory, and imports a history into them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from epochal.contrib.sekiban import INLINE_BYTES, PREFIX
from epochal.contrib.sekiban.append import Stamp, TaggedBatch, append, parts_of, recorded
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.contrib.sekiban.projections import CachedObjects, ProjectionStates, states_of
from epochal.contrib.sekiban.store import READS_AT_ONCE, DcbEvents, opened
from epochal.dynamo.stores import HERE, Place
from epochal.dynamo.table_kinds import distinct
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Recorded
from epochal.model.tags import DatedEvent
from epochal.settings import Settings
from epochal.store.driver import DEFAULT, Patience
from epochal.store.tagged_importer import Importer

if TYPE_CHECKING:
    from epochal.testing.memory import MemoryTables


def open_dcb_events(
    events: str,
    tags: str,
    *,
    service: str = "",
    type_heads: bool = False,
    write_shards: int = 1,
    consistent: bool = True,
    reads_at_once: int = READS_AT_ONCE,
    patience: Patience = DEFAULT,
    place: Place = HERE,
) -> DcbEvents:
    """Tagged events in Sekiban's two tables.

    Args:
        service: tenant whose events these are; empty for tables of one tenant.
        type_heads: also allow conditions by type alone; every append then moves heads that all others move too.
        write_shards: over which the index of all events is spread; may be raised later, never lowered.
        consistent: False halves what single events and listings by tag cost, which may then miss the latest events.
        reads_at_once: requests that a listing by tag, or one of all events over several shards, has under way.
        patience: how long to wait out throttling and outages; `store.driver.PERSISTENT` retries 10 times, up to 30
            seconds apart, as the original library does.
    """
    distinct(events=events, tags=tags)
    settings = Settings.of(
        events_table=events,
        tags_table=tags,
        service=service,
        type_heads=type_heads,
        write_shards=write_shards,
        consistent_reads=consistent,
    )
    return replace(opened(place.opened(settings, patience)), reads_at_once=reads_at_once)


def open_projection_states(
    table: str,
    *,
    bucket: str = "",
    prefix: str = PREFIX,
    service: str = "",
    inline_bytes: int = INLINE_BYTES,
    cache_bytes: int = 0,
    patience: Patience = DEFAULT,
    place: Place = HERE,
) -> ProjectionStates:
    """States of projections in their table, large ones in a bucket.

    Args:
        bucket: of large states; without one they are refused.
        prefix: of keys in the bucket.
        service: tenant whose states these are; empty for a table of one tenant.
        inline_bytes: states that are larger when compressed are large; at most 300,000.
        cache_bytes: of large states, as compressed, kept in this process; 0 keeps none.
    """
    settings = Settings.of(
        projection_states_table=table,
        bucket=bucket,
        states_prefix=prefix,
        service=service,
        state_inline_bytes=inline_bytes,
    )
    states = states_of(place.opened(settings, patience))
    return replace(states, objects=CachedObjects(states.objects, cache_bytes)) if cache_bytes else states


def memory_dcb_events(tables: MemoryTables | None = None, *, type_heads: bool = False) -> DcbEvents:
    """A store of tagged events in memory, in Sekiban's tables."""
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  layers are without it

    return opened(memory_deployment(tables, type_heads=type_heads))


def memory_projection_states(tables: MemoryTables | None = None) -> ProjectionStates:
    """States of projections in memory, with a bucket."""
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  layers are without it

    return states_of(memory_deployment(tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class DcbImporter(Importer):
    """Imports into one store.

    atomic      a batch has up to 100 items or 4 MB: events, entries and heads together
    kept        sortable ids where they exceed those of all earlier events of their tags, which an ordered history into
                an empty store always does
    """

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
