"""What a program does once: opens Sekiban's tables, of an account or in memory, and imports a history into them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from epochal.contrib.sekiban import INLINE_BYTES, PREFIX
from epochal.contrib.sekiban.append import append
from epochal.contrib.sekiban.history_parts import parts_of
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.contrib.sekiban.projections import CachedObjects, ProjectionStates, states_of
from epochal.contrib.sekiban.store import READS_AT_ONCE, DcbEvents, opened
from epochal.contrib.sekiban.transaction import Stamp, TaggedBatch, recorded
from epochal.dynamo.stores import HERE, Place
from epochal.dynamo.table_kinds import distinct
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Recorded
from epochal.model.tag_answers import DatedEvent
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
    """Open a store of tagged events in Sekiban's two tables.

    `events` and `tags` are the names of the tables, and `place` is their endpoint and region.

    Args:
        events: name of the table of events.
        tags: name of the table of tags.
        service: name of the tenant that the events belong to; empty for tables of one tenant.
        type_heads: whether conditions by type alone are allowed; if so, every append moves heads that all others move
            too.
        write_shards: number of shards of the index of all events; may be raised later, never lowered.
        consistent: whether single events and listings by tag are read strongly consistent; False halves their cost, but
            they may miss the latest events.
        reads_at_once: number of concurrent requests of a listing by tag, or of all events over several shards.
        patience: retries after throttling and outages; `store.driver.PERSISTENT` retries 10 times, up to 30 seconds
            apart, as the original library does.
        place: where the tables are.
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
    """Open the store of projection states in their table, with large states in `bucket` if it is given.

    Args:
        table: name of the table of states.
        bucket: name of the bucket for large states; without one, large states are refused.
        prefix: prefix of keys in the bucket.
        service: name of the tenant that the states belong to; empty for a table of one tenant.
        inline_bytes: compressed bytes above which a state is large; at most 300,000.
        cache_bytes: bytes of large states, compressed, that are cached in this process; 0 caches none.
        patience: retries after throttling and outages.
        place: endpoint and region of the table and the bucket, and the client to use.
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
    """Open a store of tagged events in Sekiban's tables in memory.

    Args:
        tables: tables to use; None creates new ones.
        type_heads: whether conditions by type alone are allowed.
    """
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  Lambda layers do not contain it

    return opened(memory_deployment(tables, type_heads=type_heads))


def memory_projection_states(tables: MemoryTables | None = None) -> ProjectionStates:
    """Open a store of projection states in memory, with a bucket in memory for large ones.

    Args:
        tables: tables to use; None creates new ones.
    """
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  Lambda layers do not contain it

    return states_of(memory_deployment(tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class DcbImporter(Importer):
    """An importer of a history of tagged events into one store of tagged events.

    atomic      a batch of up to 100 items or 4 MB: events, entries and heads together
    kept        sortable ids that exceed those of all earlier events of their tags; this holds for every id of an
                ordered history that is imported into an empty store

    Attributes:
        store: store of tagged events that the history is imported into.
    """

    store: DcbEvents

    def _cut(self, history: Iterable[DatedEvent]) -> Iterator[Sequence[DatedEvent]]:
        """Split a history into batches, each small enough for one append."""
        return parts_of(self.store.site, history)

    def _as_stored(self, dated: DatedEvent, stored: Recorded) -> Recorded:
        """Make the stored form of a dated event, with the place and timestamp of the event found for it."""
        return recorded(dated.event, stored.place, stored.timestamp)

    def _append(self, new: Sequence[DatedEvent]) -> int:
        """Append a batch of dated events, and return how many of them got another sortable id than theirs."""
        stamps = tuple(Stamp(dated.place, dated.timestamp) for dated in new)
        batch = TaggedBatch(events=tuple(TaggedEvent.of(dated.event) for dated in new), stamps=stamps)
        written = self.store.driver.run(append(self.store.site, batch)).events
        return sum(event.place != dated.place for event, dated in zip(written, new, strict=True))
