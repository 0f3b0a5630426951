"""Opening streams as tips, on a table of an account or in memory: what an application does once, at its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.contrib.equinox.append import Calving
from epochal.contrib.equinox.streams import opened
from epochal.dynamo.stores import HERE, Place
from epochal.errors import InvalidInput
from epochal.settings import Settings
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.testing.memory import MemoryTables


def open_tips(
    table: str,
    *,
    bucket: str = "",
    calving: Calving | None = None,
    equinox: bool = False,
    place: Place = HERE,
) -> Streams:
    """Named streams in a table of the `tips` layout.

    Args:
        bucket: of bodies too large for an item; without one they are refused.
        calving: when events leave the Tip; None for the cheapest, or with `equinox` for Equinox's own rule.
        equinox: Equinox applications use the table too. Calves are then written in one transaction with the Tip, at
            32 KiB of events, and no stream keeps a tombstone.

    Raises:
        InvalidInput: `calving` in two steps, which Equinox cannot live with.
    """
    if equinox and calving is not None and calving.mode != "transactional":
        raise InvalidInput("calving", "must be transactional where Equinox applications use the table too")
    return opened(place.opened(Settings.of(tips_table=table, bucket=bucket, equinox=equinox)), calving)


def memory_tips(tables: MemoryTables | None = None) -> Streams:
    """A store of streams in memory that are stored as tips, with a bucket."""
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  layers are without it

    return opened(memory_deployment(tables))
