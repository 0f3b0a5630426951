"""What a store answers with, besides the outcomes of appends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epochal.model.events import Recorded, RecordedUnfold
from epochal.model.versions import Token

Direction = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """A stream's Tip: its state in one request where unfolds hold it.

    Attributes:
        version: next index.
        token: makes the next append one request.
        events: those still in the Tip, the last of the stream.
        low_water: events below are pruned.
    """

    stream: str
    version: int
    token: Token
    unfolds: tuple[RecordedUnfold, ...]
    events: tuple[Recorded, ...]
    low_water: int
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some events of a stream, in the order asked for.

    Attributes:
        next: index to ask for next; None at the end of the stream (or its beginning, backward).
        version: the stream's next index when the page was read.
        low_water: events below are pruned.
        exists: False where there is no such stream.
        deleted: the stream carries a tombstone; what there may be of its events is in the archive.
    """

    events: tuple[Recorded, ...]
    next: int | None
    version: int
    low_water: int
    exists: bool
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Events below `low_water` are gone for readers. Call again until `done`: items are deleted a part at a time."""

    low_water: int
    deleted: int
    done: bool
