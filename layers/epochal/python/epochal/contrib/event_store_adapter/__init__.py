"""Aggregates on the tables of event-store-adapter's libraries: a journal of events, an item each, and snapshots.

    from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id, open_aggregates

FORMATS §2 has the bytes. The rules in short:

- The head is the snapshot with number 0. Every append raises its `version`, in one transaction with its events.
- Events are numbered from 1 without holes, and never change.
- The original libraries share the tables. What they do not write, we do without (`head_version` tells who wrote last).

    ids, model            ids of aggregates; their events and snapshots
    hashes, items         how keys are made; what is stored
    serializers           how payloads hold events and snapshots
    append, transaction   plans of an append
    outcomes              how appends end, and what a replay reads
    reading, retention    plans of reads, and of retiring copies of snapshots
    store, event_pages    what users call
    opening               opening aggregates on tables or in memory
    deciders              deciders on aggregates
    snapshot_policies     which appends of deciders store a snapshot
    state_codecs          snapshots of states
    sealed_states         snapshots of states that are sealed for a person
    port, history         what the feed and a deployment need
    plugin                the parts of the layout, for the rest of the library
    http, commands        the operations of the HTTP API, and the commands of the tools
    aio                   aggregates and deciders for asynchronous programs
    copies, proofs        what `epochal copy` and `epochal prove` need

Names are resolved when they are first used: a function that reads the feed needs no deciders.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from epochal.declaration import Names, Number, OneOf, must_keep, must_stay, of_tables, setting
from epochal.deferred import deferred_names
from epochal.lazy_dataclasses import dataclass
from epochal.settings import EVENTS

if TYPE_CHECKING:
    from epochal.contrib.event_store_adapter.aio import AsyncAggregateDeciders as AsyncAggregateDeciders
    from epochal.contrib.event_store_adapter.aio import AsyncAggregates as AsyncAggregates
    from epochal.contrib.event_store_adapter.deciders import AggregateDeciders as AggregateDeciders
    from epochal.contrib.event_store_adapter.deciders import AggregateTransacted as AggregateTransacted
    from epochal.contrib.event_store_adapter.deciders import Standing as Standing
    from epochal.contrib.event_store_adapter.ids import AggregateId as AggregateId
    from epochal.contrib.event_store_adapter.ids import AggregateTypes as AggregateTypes
    from epochal.contrib.event_store_adapter.ids import aggregate_id as aggregate_id
    from epochal.contrib.event_store_adapter.model import AggregateEvent as AggregateEvent
    from epochal.contrib.event_store_adapter.model import Lock as Lock
    from epochal.contrib.event_store_adapter.opening import memory_aggregates as memory_aggregates
    from epochal.contrib.event_store_adapter.opening import open_aggregates as open_aggregates
    from epochal.contrib.event_store_adapter.outcomes import AggregateAppended as AggregateAppended
    from epochal.contrib.event_store_adapter.outcomes import AggregateConflict as AggregateConflict
    from epochal.contrib.event_store_adapter.retention import Retention as Retention
    from epochal.contrib.event_store_adapter.sealed_states import sealed_state as sealed_state
    from epochal.contrib.event_store_adapter.serializers import Serializer as Serializer
    from epochal.contrib.event_store_adapter.snapshot_policies import by_size as by_size
    from epochal.contrib.event_store_adapter.snapshot_policies import every as every
    from epochal.contrib.event_store_adapter.state_codecs import StateCodec as StateCodec
    from epochal.contrib.event_store_adapter.state_codecs import json_state as json_state
    from epochal.contrib.event_store_adapter.store import AggregateStore as AggregateStore


_NAMES: Final = {
    "aio": ("AsyncAggregateDeciders", "AsyncAggregates"),
    "deciders": ("AggregateDeciders", "AggregateTransacted", "Standing"),
    "ids": ("AggregateId", "AggregateTypes", "aggregate_id"),
    "model": ("AggregateEvent", "Lock"),
    "opening": ("memory_aggregates", "open_aggregates"),
    "outcomes": ("AggregateAppended", "AggregateConflict"),
    "retention": ("Retention",),
    "sealed_states": ("sealed_state",),
    "serializers": ("Serializer",),
    "snapshot_policies": ("by_size", "every"),
    "state_codecs": ("StateCodec", "json_state"),
    "store": ("AggregateStore",),
}

__all__ = ["AdapterOptions", *chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


# Settings that a stage chooses, and that deployed functions get (`epochal.settings`).

LIBRARY = "javascript"
"""The library of event-store-adapter whose keys and payloads aggregates have by default."""

LIBRARIES = (LIBRARY, "rust", "go", "java", "php")
"""The libraries of event-store-adapter that aggregates may be shared with."""

PAYLOADS = (*LIBRARIES, "plain")
"""Forms of payloads: those of the libraries, and one that names no type."""

SHARDS = 64
"""Default number of shards of aggregates: that of event-store-adapter's libraries, which may share the tables."""


def _must_keep_hyphenated(before: str, now: str) -> str:
    """Return why a change of declared types is refused: it drops a type holding `-`; empty if allowed.

    An id such as `user-account-7` tells its type only if that type is declared.
    """
    return must_keep(",".join(name for name in before.split(",") if "-" in name), now)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterOptions:
    """Settings of a stage for aggregates in event-store-adapter's tables; each field has the name of its setting."""

    # With other keys, stored items are not found. A shard is one value of a partition key: more than 10,000 do not
    # spread the load any further.
    journal_shards: int = of_tables(
        SHARDS, Number(most=10_000), "Shards of aggregates' keys", EVENTS, broken=must_stay
    )
    journal_keys: str = of_tables(
        LIBRARY,
        OneOf(of=LIBRARIES),
        "Library by whose hash aggregates' keys are made",
        EVENTS,
        broken=must_stay,
    )
    journal_serializer: str = of_tables(
        LIBRARY, OneOf(of=PAYLOADS), "Library as which aggregates are written", EVENTS, broken=must_stay
    )
    aggregate_types: tuple[str, ...] = of_tables(
        (),
        Names(),
        "Types of aggregates, separated by commas; those that hold - must be declared",
        EVENTS,
        broken=_must_keep_hyphenated,
    )
    # Each append with a snapshot looks for copies beyond this number.
    snapshot_copies: int = setting(
        0, Number(least=0, most=1_000), "Snapshots of an aggregate kept beside its head", ("append",)
    )
    snapshot_ttl_days: int = setting(
        0,
        Number(least=0, most=3_650),
        "Days after which snapshots beyond these expire; 0 deletes them at once",
        ("append",),
    )


def __dir__() -> list[str]:
    return sorted(__all__)
