"""Policies that say which appends store a snapshot.

A snapshot makes replays shorter; the events since it make them longer. The head that holds it is written by every
append, and paid for whole, whatever the policy: so a snapshot is left out to save the work of making it, and what is
sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be_whole
from epochal.plan.limits import BATCH_KEYS

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Since(Generic[S]):
    """What a snapshot policy decides by: the events since the last snapshot, and the state with the new events.

    Attributes:
        state: state with the new events folded in.
        events: number of events after the snapshot, the new ones included.
        size: number of bytes of data of the events after the snapshot, the new ones included.
    """

    state: S
    events: int
    size: int


Policy = Callable[[Since[Any]], bool]
"""Function that says whether an append stores a snapshot."""


def every(events: int) -> Policy:
    """Make a policy that stores a snapshot once `events` events were appended since the last one.

    Args:
        events: number of events, 1 or more; 1 for a snapshot in every append.
    """
    must_be_whole(events, "events", 1)
    return lambda since: since.events >= events


ONE_BATCH: Final = every(BATCH_KEYS)
"""Default policy: events after the snapshot can be read in one request, so that a replay is two requests."""


def by_size(size: int) -> Policy:
    """Make a policy that stores a snapshot once events since the last one reach `size` bytes of data.

    Args:
        size: number of bytes, 1 or more.
    """
    must_be_whole(size, "size", 1)
    return lambda since: since.size >= size
