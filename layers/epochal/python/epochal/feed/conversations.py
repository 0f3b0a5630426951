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
"""Largest number of levels of a tree; deeper effects are placed side by side."""


@dataclass(slots=True)
class CausedEvent:
    """An event, and what it caused."""

    partition: int
    event: FeedEvent
    caused: list[CausedEvent] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, str]:
        """Names by which other events may refer to it as their cause: its id, if any, and its place."""
        return name_of(self.event), f"{self.event.stream}@{self.event.index}"


def conversation(
    feed: FeedReader, correlation: str, count: int, near: Iterable[CausedEvent] = ()
) -> list[CausedEvent]:
    """Return events of the conversation of an id or event, among `near` and each partition's last `count`.

    Args:
        count: number of recent items of each partition that are searched.
        near: events that are included in the search wherever they are.
    """
    lately = (
        CausedEvent(tail.partition, item.event)
        for tail in feed.partitions()
        for item in latest(feed, tail, count, data=True)
        if item.event is not None
    )
    nodes = list({(node.event.stream, node.event.index): node for node in (*near, *lately)}.values())
    correlations = {node.event.correlation_id for node in nodes if correlation in node.names}
    return [
        node
        for node in nodes
        if node.event.correlation_id in {correlation, *correlations} - {None} or correlation in node.names
    ]


def tree(nodes: Iterable[CausedEvent]) -> list[CausedEvent]:
    """Arrange events as a forest in which each is below its cause; return the roots in order of time.

    Events whose cause is not among them are roots. Of events that name each other as their cause, the earliest is a
    root.
    """
    ordered = sorted(nodes, key=lambda node: node.event.timestamp)
    names = {name: name_of(node.event) for node in ordered for name in node.names}
    effects = defaultdict[str | None, list[CausedEvent]](list)
    for node in ordered:
        effects[names.get(node.event.causation_id or "")].append(node)
    roots: list[CausedEvent] = []
    seen = set[int]()
    for node in (*effects[None], *ordered):
        if id(node) not in seen:
            roots.append(node)
            _place_effects(node, effects, seen)
    return sorted(roots, key=lambda node: node.event.timestamp)


def _place_effects(
    root: CausedEvent, effects: Mapping[str | None, list[CausedEvent]], seen: set[int]
) -> None:
    """Put the effects of a root below it, level by level; the deepest are placed beside one another.

    Events in `seen` are placed already.
    """
    seen.add(id(root))
    below = deque([(root, root.caused, 2)])
    while below:
        cause, place, level = below.popleft()
        for effect in effects.get(name_of(cause.event), ()):
            if id(effect) not in seen:
                seen.add(id(effect))
                place.append(effect)
                below.append((effect, effect.caused if level < DEEPEST else place, level + 1))
