"""What a stage chooses of Sekiban's tables, and what it is told to functions (`epochal.settings`)."""

from __future__ import annotations

from epochal.declaration import Flag, Number, Text, of_tables, setting
from epochal.lazy_dataclasses import dataclass
from epochal.settings import EVENTS

INLINE_BYTES = 300_000
"""A compressed state larger than this goes to the bucket: in base64 it is a third longer, and an item holds
409,600 bytes."""

PREFIX = "projections"
"""Of the keys of states in the bucket."""

_BOTH = ("append", "replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class SekibanOptions:
    """Settings of tagged events in Sekiban's tables, and of states of projections, by their names."""

    # A read of all events asks every shard. May be raised later, never lowered.
    write_shards: int = of_tables(1, Number(most=1_000), "Shards of the index of all tagged events", _BOTH)
    type_heads: bool = of_tables(
        False, Flag(), "Tagged events are written with heads of types, for conditions by type alone", _BOTH
    )
    # As Sekiban has it; `#` and `|` would end it early within keys.
    service: str = of_tables(
        "",
        Text(pattern=r"([a-z0-9-]{1,64})?", meaning="at most 64 lower-case letters, digits and hyphens"),
        "Tenant of tagged events and states",
        EVENTS,
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
