"""Decisions: states folded from typed events, and the loop that decides on them until its append is stored.

Programs use these modules:

on_streams           decides on streams: one at a time, or several at once
on_queries           decides on tagged events, by projections and one conditional append
on_stream_and_query  decides on the state of one stream and projections
projections          declares questions about past events
access               chooses which events make a state, and what is stored with a decision
loading              loads states: from the store, from a cache, or by assumption
cache                keeps states in this process
codecs               converts events of a domain to stored ones, and back
upcasting            converts what an older program wrote

loop                 is the loop of every decision
stream_decisions     is a decision on the states of streams
folding              folds a state from a head and older events
model_snapshots      stores the states of projections
snapshot_marks       marks what a snapshot was made with
fingerprints         fingerprints classes, to notice that their stored form changed
shapes               writes values as JSON, and reads them back
type_hints           finds the shape of a type
value_forms          finds the form of a class's values by the library that made it
round_trips          compares a value with what was read back
mismatch             is the error of a value that does not survive JSON
msgspec_checks       refuses classes of msgspec that do not survive JSON
pydantic_checks      refuses classes of Pydantic that do not survive JSON
pydantic_fields      has the fields of Pydantic classes, by their names in JSON
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.deciders.access import LATEST_KNOWN_EVENT as LATEST_KNOWN_EVENT
    from epochal.deciders.access import UNOPTIMIZED as UNOPTIMIZED
    from epochal.deciders.access import Access as Access
    from epochal.deciders.access import Transmuted as Transmuted
    from epochal.deciders.access import custom as custom
    from epochal.deciders.access import multi_snapshot as multi_snapshot
    from epochal.deciders.access import rolling_state as rolling_state
    from epochal.deciders.access import snapshot as snapshot
    from epochal.deciders.cache import Cache as Cache
    from epochal.deciders.cache import CachedState as CachedState
    from epochal.deciders.codecs import EventCodec as EventCodec
    from epochal.deciders.codecs import Sealing as Sealing
    from epochal.deciders.codecs import Stored as Stored
    from epochal.deciders.codecs import StoredEvent as StoredEvent
    from epochal.deciders.codecs import json_codec as json_codec
    from epochal.deciders.loading import ALLOW_LAG as ALLOW_LAG
    from epochal.deciders.loading import ASSUME_EMPTY as ASSUME_EMPTY
    from epochal.deciders.loading import REQUIRE_LOAD as REQUIRE_LOAD
    from epochal.deciders.loading import AllowStale as AllowStale
    from epochal.deciders.loading import Load as Load
    from epochal.deciders.loop import Answer as Answer
    from epochal.deciders.loop import WithAlso as WithAlso
    from epochal.deciders.model_snapshots import ModelSnapshots as ModelSnapshots
    from epochal.deciders.on_queries import Decided as Decided
    from epochal.deciders.on_queries import Decisions as Decisions
    from epochal.deciders.on_queries import Model as Model
    from epochal.deciders.on_streams import Decider as Decider
    from epochal.deciders.on_streams import Deciders as Deciders
    from epochal.deciders.on_streams import handle_all as handle_all
    from epochal.deciders.projections import Projection as Projection
    from epochal.deciders.projections import projection as projection
    from epochal.deciders.stream_decisions import AllTransacted as AllTransacted
    from epochal.deciders.stream_decisions import Party as Party
    from epochal.deciders.stream_decisions import Transacted as Transacted
    from epochal.deciders.upcasting import Change as Change
    from epochal.deciders.upcasting import Upcast as Upcast
    from epochal.deciders.upcasting import upcast as upcast

_NAMES = {
    "access": (
        "Access",
        "LATEST_KNOWN_EVENT",
        "Transmuted",
        "UNOPTIMIZED",
        "custom",
        "multi_snapshot",
        "rolling_state",
        "snapshot",
    ),
    "cache": (
        "Cache",
        "CachedState",
    ),
    "codecs": (
        "EventCodec",
        "Sealing",
        "Stored",
        "StoredEvent",
        "json_codec",
    ),
    "loading": (
        "ALLOW_LAG",
        "ASSUME_EMPTY",
        "AllowStale",
        "Load",
        "REQUIRE_LOAD",
    ),
    "loop": (
        "Answer",
        "WithAlso",
    ),
    "model_snapshots": ("ModelSnapshots",),
    "on_queries": (
        "Decided",
        "Decisions",
        "Model",
    ),
    "on_streams": (
        "AllTransacted",
        "Decider",
        "Deciders",
        "Party",
        "Transacted",
        "handle_all",
    ),
    "projections": (
        "Projection",
        "projection",
    ),
    "upcasting": (
        "Change",
        "Upcast",
        "upcast",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
