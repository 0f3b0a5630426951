"""Opening aggregates, on the tables of an account or in memory: what an application does once, at its start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from epochal.contrib.event_store_adapter import LIBRARY, SHARDS
from epochal.contrib.event_store_adapter.hashes import hash_of
from epochal.contrib.event_store_adapter.ids import Hash
from epochal.contrib.event_store_adapter.serializers import Serializer, serializer_of
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
    """Open a store of aggregates in a journal and a snapshot table.

    event-store-adapter's libraries may share the tables.

    Args:
        journal: name of the table of events.
        snapshot: name of the table of heads and snapshots.
        types: types of aggregates, which must be declared if they hold `-`; the same for everyone who uses the tables.
        shards: number of shards of the tables' partition keys; the same for everyone who uses them, for ever.
        keys: hash function of the partition keys, likewise the same: the name of the library whose default it is,
            `javascript`, `rust`, `go`, `java` or `php`, or a function from an aggregate to a number.
        serializer: how payloads hold types and data: as `javascript`, `rust`, `go`, `java` or `php` write them, `plain`
            if they name no type, or a `Serializer`.
        place: endpoint and region of the tables.
    """
    distinct(journal=journal, snapshot=snapshot)
    settings = Settings.of(
        journal_table=journal, snapshot_table=snapshot, journal_shards=shards, aggregate_types=types
    )
    store = opened(place.opened(settings))
    site = replace(store.site, keys=replace(store.site.keys, hash=hash_of(keys)))
    return replace(store, site=replace(site, serializer=serializer_of(serializer)))


def memory_aggregates(tables: MemoryTables | None = None, *, types: Iterable[str] = ()) -> AggregateStore:
    """Open a store of aggregates in memory, for tests.

    Args:
        tables: tables to use; None for new ones.
        types: declared types of aggregates; those that hold `-` must be declared.
    """
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  layers are without it

    return opened(memory_deployment(tables, aggregate_types=tuple(types)))
