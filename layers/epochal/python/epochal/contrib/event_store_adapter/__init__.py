"""Aggregates on the tables of event-store-adapter's libraries: a journal of events, an item each, and snapshots.

    from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id, open_aggregates

FORMATS §2 has the bytes. The rules in short:

- The head is the snapshot with number 0. Every append raises its `version`, in one transaction with its events.
- Events are numbered from 1 without holes, and never change.
- The original libraries share the tables. What they do not write, we do without (`head_version` tells who wrote last).

    model, payloads, items      ids and events, how payloads hold them, what is stored
    append, reading             plans
    store, deciders             what users call
    port, history, options      what the feed and a deployment need
    http, commands, tools, aio  the service, the tools, asynchronous programs

Names are resolved when they are first used: a function that reads the feed needs no deciders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.plugins import Plugin, named_later

if TYPE_CHECKING:
    from epochal.contrib.event_store_adapter.aio import AsyncAggregateDeciders as AsyncAggregateDeciders
    from epochal.contrib.event_store_adapter.aio import AsyncAggregates as AsyncAggregates
    from epochal.contrib.event_store_adapter.append import Retention as Retention
    from epochal.contrib.event_store_adapter.deciders import AggregateDeciders as AggregateDeciders
    from epochal.contrib.event_store_adapter.deciders import AggregateTransacted as AggregateTransacted
    from epochal.contrib.event_store_adapter.deciders import Standing as Standing
    from epochal.contrib.event_store_adapter.deciders import StateCodec as StateCodec
    from epochal.contrib.event_store_adapter.deciders import by_size as by_size
    from epochal.contrib.event_store_adapter.deciders import every as every
    from epochal.contrib.event_store_adapter.deciders import json_state as json_state
    from epochal.contrib.event_store_adapter.model import AggregateEvent as AggregateEvent
    from epochal.contrib.event_store_adapter.model import AggregateId as AggregateId
    from epochal.contrib.event_store_adapter.model import AggregateTypes as AggregateTypes
    from epochal.contrib.event_store_adapter.model import Lock as Lock
    from epochal.contrib.event_store_adapter.model import aggregate_id as aggregate_id
    from epochal.contrib.event_store_adapter.opening import memory_aggregates as memory_aggregates
    from epochal.contrib.event_store_adapter.opening import open_aggregates as open_aggregates
    from epochal.contrib.event_store_adapter.options import AdapterOptions as AdapterOptions
    from epochal.contrib.event_store_adapter.payloads import Serializer as Serializer
    from epochal.contrib.event_store_adapter.store import AggregateAppended as AggregateAppended
    from epochal.contrib.event_store_adapter.store import AggregateConflict as AggregateConflict
    from epochal.contrib.event_store_adapter.store import AggregateStore as AggregateStore

PLUGIN: Final = Plugin(
    port=f"{__name__}.port:PORT",
    history=f"{__name__}.history",
    options=f"{__name__}.options:AdapterOptions",
    coherent=f"{__name__}.port:coherent",
    stores={"aggregates": f"{__name__}.store:opened"},
    operations=f"{__name__}.http",
    commands=f"{__name__}.commands:COMMANDS",
    copied=f"{__name__}.tools:copied",
    proofs=f"{__name__}.tools:writers",
    spans=f"{__name__}.deciders:SPANS",
)

_NAMES: Final = {
    "options": ("AdapterOptions",),
    "aio": ("AsyncAggregateDeciders", "AsyncAggregates"),
    "append": ("Retention",),
    "deciders": (
        "AggregateDeciders",
        "AggregateTransacted",
        "Standing",
        "StateCodec",
        "by_size",
        "every",
        "json_state",
    ),
    "model": ("AggregateEvent", "AggregateId", "AggregateTypes", "Lock", "aggregate_id"),
    "opening": ("memory_aggregates", "open_aggregates"),
    "payloads": ("Serializer",),
    "store": ("AggregateAppended", "AggregateConflict", "AggregateStore"),
}

_FILES: Final = {name: file for file, names in _NAMES.items() for name in names}

__all__ = ["PLUGIN", *_FILES]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = named_later(__name__, _FILES)
