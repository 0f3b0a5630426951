"""What a store answers with, besides the outcomes of appends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from epochal.errors import CorruptData, DeniedBody, MissingBody
from epochal.model.events import Recorded, RecordedUnfold
from epochal.model.outcomes import NOTHING, Capacity
from epochal.model.versions import Token

Direction = Literal["forward", "backward"]
"""From the first event on, or from the last one back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """A stream's Tip: its state in one request where unfolds hold it.

    Attributes:
        version: next index.
        token: makes the next append one request.
        events: those still in the Tip, the last of the stream.
        low_water: events below are pruned. Another library's pruning leaves no mark, and a prune under way tells at its
            end: a read tells what is gone.
    """

    stream: str
    version: int
    token: Token
    unfolds: tuple[RecordedUnfold, ...]
    events: tuple[Recorded, ...]
    low_water: int
    deleted: bool
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Events `first` to `end - 1` of a stream: pruned, and in no archive."""

    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An event that is there, and whose contents cannot be decoded or fetched; `fault` is the error."""

    index: int
    type: str
    timestamp: str = ""
    fault: CorruptData | MissingBody | DeniedBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some events of a stream, in the order asked for, none left out between them.

    Attributes:
        next: index to ask for next; None at the end of the stream (or its beginning, backward).
        hole: events that were asked for before these, and are gone; None where there are none. A page ends where a hole
            begins, and the next one tells of it.
        version: the stream's next index when the page was read.
        low_water: events below are pruned.
        exists: False where there is no such stream.
        deleted: the stream carries a tombstone, and has no events any more.
    """

    events: tuple[Recorded, ...]
    next: int | None
    version: int
    low_water: int
    exists: bool
    deleted: bool
    hole: Hole | None = None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Events below `low_water` are gone for readers. Call again until `done`: items are deleted a part at a time."""

    low_water: int
    deleted: int
    done: bool
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)
