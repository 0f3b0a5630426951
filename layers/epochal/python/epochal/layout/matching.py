"""Which events a read of a query shows: those that match, beyond a position through every item that they match."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from epochal.layout.fences import Fence
from epochal.model.events import Recorded
from epochal.model.tags import EVERYTHING, Reach, Trail, type_tag
from epochal.model.versions import Position, Reached


class Matchable(Protocol):
    """What tells whether a query asks for an event."""

    @property
    def type(self) -> str:
        """What happened."""

    @property
    def tags(self) -> Collection[str]:
        """What it concerns."""

    @property
    def place(self) -> str:
        """Its place."""


def begun(fenced: Fence, before: Reach) -> Reach:
    """Where a read of what is new since `before` begins, by tag."""
    return {tag: before.get(tag, Reached()) for tag in fenced.all_tags}


def types_fenced_by(fenced: Fence, tag: str) -> frozenset[str]:
    """Types that the items fenced by a tag ask for; none where one of them asks for any."""
    types = [item.types for item, tags in zip(fenced.query.items, fenced.tags, strict=True) if tag in tags]
    return frozenset().union(*types) if all(types) else frozenset()


def at_the_end(events: tuple[Recorded, ...], position: Position) -> tuple[Recorded, ...]:
    """The events of a read, the last of which tells the position of the whole read."""
    if not events:
        return events
    return (*events[:-1], replace(events[-1], trail=Trail.of(position)))


def is_new(event: Matchable, fenced: Fence, before: Reach, until: Reach) -> bool:
    """Whether an event matches, and is beyond `before` through every item that it matches, but not beyond `until`.

    Beyond one item's fence an event may be new, and yet have been seen through another's: heads are not read
    at one moment. Within a tag ids only increase, so the id tells which side of a fence an event is on.
    """
    carried = {*event.tags, type_tag(event.type), EVERYTHING}
    seen, reached = _reached(event, before), _reached(event, until)
    fences = {
        number: carried.intersection(tags)
        for number, (item, tags) in enumerate(zip(fenced.query.items, fenced.tags, strict=True))
        if item.matches(event.type, event.tags)
    }
    was_seen = any(
        tags <= seen if number in fenced.together else not tags.isdisjoint(seen)
        for number, tags in fences.items()
    )
    return not was_seen and any(not tags.isdisjoint(reached) for tags in fences.values())


def _reached(event: Matchable, position: Reach) -> set[str]:
    return {tag for tag, reached in position.items() if event.place <= reached.last}
