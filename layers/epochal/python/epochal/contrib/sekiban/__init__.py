"""Tagged events in the tables of Sekiban's `Sekiban.Dcb.DynamoDB`, and states of its projections.

    from epochal.contrib.sekiban import open_dcb_events, open_projection_states

An event is stored under its id, with an entry for each of its tags, and a head for each tag. FORMATS §3 has the bytes.
The rules in short:

- A tag's head counts its events. Every append moves the heads of all tags of its events, in the same transaction.
- An event's sortable id exceeds those of all earlier events of its tags, whatever the writers' clocks say.
- A condition is a set of heads that must not have moved. Each query item needs only one: a match moves them all.
- Where a head has moved, the events beyond the position are read: only a match is a conflict.

Names are resolved when they are first used: a function that reads the feed needs no states.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from epochal.declaration import Flag, Number, Text, must_not_fall, must_stay, of_tables, setting
from epochal.deferred import deferred_names
from epochal.lazy_dataclasses import dataclass
from epochal.settings import EVENTS

if TYPE_CHECKING:
    from epochal.contrib.sekiban.aio import AsyncProjectionStates as AsyncProjectionStates
    from epochal.contrib.sekiban.items import RecordedTaggedEvent as RecordedTaggedEvent
    from epochal.contrib.sekiban.items import SortableId as SortableId
    from epochal.contrib.sekiban.items import TaggedEvent as TaggedEvent
    from epochal.contrib.sekiban.listings import TagListings as TagListings
    from epochal.contrib.sekiban.opening import DcbImporter as DcbImporter
    from epochal.contrib.sekiban.opening import memory_dcb_events as memory_dcb_events
    from epochal.contrib.sekiban.opening import memory_projection_states as memory_projection_states
    from epochal.contrib.sekiban.opening import open_dcb_events as open_dcb_events
    from epochal.contrib.sekiban.opening import open_projection_states as open_projection_states
    from epochal.contrib.sekiban.projections import ProjectionStates as ProjectionStates
    from epochal.contrib.sekiban.states import StoredState as StoredState
    from epochal.contrib.sekiban.store import DcbEvents as DcbEvents


_NAMES: Final = {
    "aio": ("AsyncProjectionStates",),
    "items": ("RecordedTaggedEvent", "SortableId", "TaggedEvent"),
    "listings": ("TagListings",),
    "opening": (
        "DcbImporter",
        "memory_dcb_events",
        "memory_projection_states",
        "open_dcb_events",
        "open_projection_states",
    ),
    "projections": ("ProjectionStates",),
    "states": ("StoredState",),
    "store": ("DcbEvents",),
}

__all__ = ["SekibanOptions", *chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


# Settings that a stage chooses and that its functions receive (`epochal.settings`).

INLINE_BYTES = 300_000
"""A compressed state larger than this goes to the bucket: in base64 it is a third longer, and an item holds
409,600 bytes."""

PREFIX = "projections"
"""Prefix of the keys of states in the bucket."""

_BOTH = ("append", "replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class SekibanOptions:
    """Settings of a stage for tagged events and projection states in Sekiban's tables, by the settings' names."""

    # A read of all events queries every shard. The number may be raised later, never lowered.
    write_shards: int = of_tables(
        1, Number(most=1_000), "Shards of the index of all tagged events", _BOTH, broken=must_not_fall
    )
    type_heads: bool = of_tables(
        False,
        Flag(),
        "Tagged events are written with heads of types, for conditions by type alone",
        _BOTH,
        broken=must_stay,
    )
    # The pattern is Sekiban's; `#` and `|` would end the name early within keys.
    service: str = of_tables(
        "",
        Text(pattern=r"([a-z0-9-]{1,64})?", meaning="at most 64 lower-case letters, digits and hyphens"),
        "Tenant of tagged events and states",
        EVENTS,
        broken=must_stay,
    )
    state_inline_bytes: int = setting(
        INLINE_BYTES,
        Number(least=0, most=INLINE_BYTES),
        "Compressed states of projections that are larger go to the bucket",
        ("append",),
    )
    consistent_reads: bool = setting(
        True,
        Flag(),
        "Single tagged events and tags are read strongly consistent; else they cost half",
        ("replay",),
    )
    projection_states_table: str = of_tables("", Text(), "States of projections", _BOTH, chosen=False)
    states_prefix: str = of_tables(
        PREFIX, Text(), "Where large states lie in the bucket", _BOTH, chosen=False
    )


def __dir__() -> list[str]:
    return sorted(__all__)
