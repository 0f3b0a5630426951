"""What layouts tell of a stream: spans, of which the feed is made, its end, how it is stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

# Spans: consecutive events of a stream, by index and type, without their bodies. The feed is made of them.

ITEM_BYTES: Final = 80
"""Bytes reckoned for an item of the feed besides the names of its stream and type, as JSON inside JSON."""


def name_bytes(name: str) -> int:
    """Bytes of a stream's or a type's name as JSON inside JSON, which are up to seven for each character of it."""
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return len(name)
    return len(json.dumps(json.dumps(name, ensure_ascii=False), ensure_ascii=False).encode()) - 6


# A named tuple, because catching up makes one for nearly every event: a frozen dataclass takes twice as long.
class Span(NamedTuple):
    """Consecutive events of one stream: the first has index `index`, their types are `types`."""

    stream: str
    index: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    types: tuple[str, ...]

    @property
    def next(self) -> int:
        """Index after the last."""
        return self.index + len(self.types)

    def since(self, index: int) -> Span:
        """Without the events below `index`."""
        cut = max(0, index - self.index)
        return Span(self.stream, self.index + cut, self.types[cut:])


# Where streams end, as their heads tell.


@dataclass(frozen=True, slots=True)
class End:
    """How far a stream has got.

    Attributes:
        next: the index after its last event; None where the head does not tell, and the store must be asked.
        pruned: every event below this index is gone.
        since: events below this index are told by other heads of the stream.
    """

    stream: str
    next: int | None
    pruned: int = 0
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAppend:
    """What an append added to an item, and what that cost.

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
