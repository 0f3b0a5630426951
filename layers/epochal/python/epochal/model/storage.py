"""How a stream is stored, for people: its items, what each append added to one, and what that cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAppend:
    """An append.

    Attributes:
        index: of its first event.
        bytes: that its events take.
        units: write units, where it was no part of a transaction, in which it costs twice as much.
        least: it may have been more, since what the item held besides is no longer there.
        timestamp: ISO 8601.
    """

    index: int
    events: int
    bytes: int
    units: int
    least: bool
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An item of a stream.

    Attributes:
        index: of its first event.
        end: the index after its last.
        bytes: of the whole item, its unfolds among them.
        full: it takes no more.
    """

    index: int
    end: int
    bytes: int
    unfolds: int
    full: bool
    appends: tuple[StoredAppend, ...]
