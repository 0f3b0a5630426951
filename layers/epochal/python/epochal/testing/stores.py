"""Whole stores in memory, for users' own tests: no AWS, no network, no clean-up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from epochal.layout.dcb.reading import tag_site_of
from epochal.layout.journal.writes import site_of
from epochal.layout.tables import ALL, EVENTS, JOURNAL, PROJECTION_STATES, SNAPSHOT, TAGS, TIPS
from epochal.model.aggregates import AggregateTypes
from epochal.settings import Settings
from epochal.store.aggregates import AggregateStore
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver, Meter
from epochal.store.projections import ProjectionStates
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents
from epochal.testing.bodies import MemoryBodies
from epochal.testing.memory import MemoryTables
from epochal.testing.objects import MemoryObjects


def memory_tables() -> MemoryTables:
    """Empty tables of a deployment, each named by its kind: `tips`, `index`, `journal` and so on."""
    return MemoryTables({spec.kind: spec for spec in ALL})


def memory_streams(tables: MemoryTables | None = None) -> Streams:
    """A store of streams in memory, with a bucket."""
    tables = tables or memory_tables()
    driver = Driver(execute=tables.execute, meter=Meter())
    return Streams(driver=driver, table=TIPS.kind, codec=BodyCodec(bodies=MemoryBodies()))


def memory_aggregates(tables: MemoryTables | None = None, *, types: Iterable[str] = ()) -> AggregateStore:
    """A store of aggregates in memory; `types` are declared, as those that hold `-` must be."""
    tables = tables or memory_tables()
    site = site_of(Settings(journal_table=JOURNAL.kind, snapshot_table=SNAPSHOT.kind))
    declared = replace(site, types=AggregateTypes(types))
    return AggregateStore(driver=Driver(execute=tables.execute, meter=Meter()), site=declared)


def memory_tagged_events(tables: MemoryTables | None = None, *, type_heads: bool = False) -> TaggedEvents:
    """A store of tagged events in memory."""
    tables = tables or memory_tables()
    site = tag_site_of(Settings(events_table=EVENTS.kind, tags_table=TAGS.kind, type_heads=type_heads))
    return TaggedEvents(driver=Driver(execute=tables.execute, meter=Meter()), site=site)


def memory_projection_states(tables: MemoryTables | None = None) -> ProjectionStates:
    """States of projections in memory, with a bucket."""
    tables = tables or memory_tables()
    return ProjectionStates(
        driver=Driver(execute=tables.execute, meter=Meter()),
        table=PROJECTION_STATES.kind,
        objects=MemoryObjects(),
    )
