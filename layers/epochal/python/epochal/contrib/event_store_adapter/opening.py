"""Opening aggregates, on the tables of an account or in memory: what an application does once, at its start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from epochal.contrib.event_store_adapter import LIBRARY, SHARDS
from epochal.contrib.event_store_adapter.items import hash_of
from epochal.contrib.event_store_adapter.model import Hash, Serializer, serializer_of
from epochal.contrib.event_store_adapter.store import AggregateStore, opened
from epochal.dynamo.stores import HERE, Place
from epochal.dynamo.table_kinds import distinct
from epochal.lazy_dataclasses import replace
from epochal.settings import Settings

if TYPE_CHECKING:
    from epochal.testing.memory import MemoryTables


def open_aggregates(
    journal: str,
    snapshot: str,
    *,
    types: Iterable[str] = (),
    shards: int = SHARDS,
    keys: str | Hash = LIBRARY,
    serializer: str | Serializer = LIBRARY,
    place: Place = HERE,
) -> AggregateStore:
    """Aggregates in a journal and a snapshot table, which event-store-adapter's libraries may share.

    Args:
        types: of aggregates, which must be declared where they hold `-`; the same for everyone who uses the tables.
        shards: of the tables' partition keys; the same for everyone who uses them, for ever.
        keys: what the keys are hashed with, likewise: the library whose default it is, `javascript`, `rust`, `go`,
            `java` or `php`, or a function from an aggregate to a number.
        serializer: how payloads hold types and data: as `javascript`, `rust`, `go`, `java` or `php` write them, `plain`
            where they name no type, or a `Serializer`.
    """
    distinct(journal=journal, snapshot=snapshot)
    settings = Settings.of(
        journal_table=journal, snapshot_table=snapshot, journal_shards=shards, aggregate_types=types
    )
    found = opened(place.opened(settings))
    site = replace(found.site, keys=replace(found.site.keys, hash=hash_of(keys)))
    return replace(found, site=replace(site, serializer=serializer_of(serializer)))


def memory_aggregates(tables: MemoryTables | None = None, *, types: Iterable[str] = ()) -> AggregateStore:
    """A store of aggregates in memory; `types` are declared, as those that hold `-` must be."""
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  layers are without it

    return opened(memory_deployment(tables, aggregate_types=tuple(types)))
