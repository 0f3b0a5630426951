"""Positions: how far a read of tagged events has seen each tag, which an append can be conditional on."""

from __future__ import annotations

from collections.abc import Mapping

from epochal.lazy_dataclasses import dataclass, field
from epochal.model.tokens import Token


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a tag's events have been read: how many, and the place of the last.

    Attributes:
        count: number of events that have been read.
        last: place (sortable text) of the last event that has been read.
        token: if the tag is a stream, the token with which an append on exactly that state takes one request; only a
            hint.
    """

    count: int = 0
    last: str = ""
    token: Token | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a read has read the events of each tag; callers pass it back unchanged.

    `model.tags` gives it its text form. Positions with the same tags are comparable: a later one is behind in none of
    them.

    Attributes:
        seen: for each tag that guards the read, how far its events have been read: an append is refused if such a tag
            has got more events.
        heads: how far tags that are not in `seen` had come at the read: a hint that saves an append from reading them.
        items: digests of those query items that more than one of the tags in `seen` could guard, so that each item
            stays guarded by the same tag.
    """

    seen: Mapping[str, Reached] = field(default_factory=dict)
    heads: Mapping[str, Reached] = field(default_factory=dict)
    items: frozenset[str] = frozenset()

    def __le__(self, other: Position) -> bool:
        return self.seen.keys() == other.seen.keys() and all(
            reached.count <= other.seen[tag].count for tag, reached in self.seen.items()
        )
