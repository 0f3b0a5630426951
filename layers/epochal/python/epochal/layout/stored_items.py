"""Items of a stream as they are stored, with the appends in each and their cost."""

from __future__ import annotations

from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAppend:
    """The events that one append added to an item, and their cost.

    Attributes:
        index: index of its first event.
        events: number of its events.
        bytes: bytes that its events take.
        units: write units outside of a transaction, in which it costs twice as much.
        least: whether `units` is a lower bound, because other contents of the item have been removed since.
        timestamp: time of the append, ISO 8601.
    """

    index: int
    events: int
    bytes: int
    units: int
    least: bool
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An item of a stream, with its appends.

    Attributes:
        index: index of its first event.
        end: index after its last event.
        bytes: bytes of the whole item, its unfolds included.
        unfolds: bytes of its unfolds.
        full: whether the item takes no more events.
        appends: the appends whose events are in the item.
    """

    index: int
    end: int
    bytes: int
    unfolds: int
    full: bool
    appends: tuple[StoredAppend, ...]
