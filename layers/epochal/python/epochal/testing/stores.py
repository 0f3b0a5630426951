"""Whole stores in memory, for users' own tests: no AWS, no network, no clean-up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from epochal.deployment import Deployment
from epochal.layout.registry import declared
from epochal.layout.tables import store_tables
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents
from epochal.testing.bucket import MemoryBucket
from epochal.testing.memory import MemoryTables


def memory_tables() -> MemoryTables:
    """Empty tables of a deployment, each named by its kind: `tips`, `index`, `journal` and so on."""
    return MemoryTables({spec.kind: spec for spec in store_tables()})


def memory_settings(**options: Any) -> Settings:
    """The settings of a deployment with such tables."""
    kinds = {spec.kind for spec in store_tables()}
    tables = {each.name: each.table for each in declared().values() if each.table in kinds}
    return Settings.of(**{**tables, **options})


def memory_tips(tables: MemoryTables | None = None) -> Streams:
    """A store of streams in memory that are stored as tips, with a bucket."""
    return memory_deployment(tables).tips


def memory_streams(tables: MemoryTables | None = None) -> Streams:
    """A store of streams in memory, with a bucket."""
    return memory_deployment(tables).streams


def memory_tagged_events(
    tables: MemoryTables | None = None, *, types: Iterable[str] = (), everything: bool = False
) -> TaggedEvents:
    """A store of tagged events in memory, with a bucket; conditions by type alone are for those named."""
    return memory_deployment(tables, tagged_types=tuple(types), tagged_everything=everything).tagged


def memory_deployment(tables: MemoryTables | None = None, **options: Any) -> Deployment:
    """A deployment in memory, with a bucket; `options` are settings by their names."""
    driver = Driver(execute=(tables or memory_tables()).execute, meter=Meter())
    return Deployment(settings=memory_settings(**options), driver=driver, bucket=MemoryBucket())
