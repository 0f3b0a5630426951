"""The events of one conversation, as a tree of causes.

Events name their cause by its id or its place (`Flight-UA1545@3`), as reactions write it. The search covers the latest
items of every partition, since no index of conversations is stored.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Final

from epochal.feed.events import FeedEvent, name_of
from epochal.feed.latest import latest
from epochal.feed.reader import FeedReader
from epochal.lazy_dataclasses import dataclass, field

DEEPEST: Final = 50
"""Levels of a tree: pages nest no deeper."""


@dataclass(slots=True)
class CausedEvent:
    """An event, and what it caused."""

    partition: int
    event: FeedEvent
    caused: list[CausedEvent] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, str]:
        """Names by which other events may name it as their cause: its own, and its place."""
        return name_of(self.event), f"{self.event.stream}@{self.event.index}"


def conversation(
    feed: FeedReader, wanted: str, count: int, near: Iterable[CausedEvent] = ()
) -> list[CausedEvent]:
    """List the recent events of a conversation, which a correlation id or one of its events names.

    Args:
        count: number of recent items of each partition that are searched.
        near: events that are included in the search wherever they are.
    """
    lately = (
        CausedEvent(at.partition, item.event)
        for at in feed.partitions()
        for item in latest(feed, at, count, data=True)
        if item.event is not None
    )
    found = list({(each.event.stream, each.event.index): each for each in (*near, *lately)}.values())
    named = {each.event.correlation_id for each in found if wanted in each.names}
    return [
        each
        for each in found
        if each.event.correlation_id in {wanted, *named} - {None} or wanted in each.names
    ]


def tree(nodes: Iterable[CausedEvent]) -> list[CausedEvent]:
    """Arrange events as a forest in which each is below its cause; roots are in order of time.

    Events whose cause is not among them are roots. Of events that name each other as their cause, the earliest is a
    root.
    """
    ordered = sorted(nodes, key=lambda each: each.event.timestamp)
    names = {name: name_of(each.event) for each in ordered for name in each.names}
    effects = defaultdict[str | None, list[CausedEvent]](list)
    for each in ordered:
        effects[names.get(each.event.causation_id or "")].append(each)
    roots: list[CausedEvent] = []
    seen = set[int]()
    for each in (*effects[None], *ordered):
        if id(each) not in seen:
            roots.append(each)
            _hang(each, effects, seen)
    return sorted(roots, key=lambda each: each.event.timestamp)


def _hang(root: CausedEvent, effects: Mapping[str | None, list[CausedEvent]], seen: set[int]) -> None:
    """Put the effects of a root below it, level by level; the deepest are placed beside one another.

    Events in `seen` are placed already.
    """
    seen.add(id(root))
    below = deque([(root, root.caused, 2)])
    while below:
        cause, place, level = below.popleft()
        for each in effects.get(name_of(cause.event), ()):
            if id(each) not in seen:
                seen.add(id(each))
                place.append(each)
                below.append((each, each.caused if level < DEEPEST else place, level + 1))
