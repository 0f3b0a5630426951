"""The latest items of the feed, and what belongs to one conversation, as a tree of causes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from epochal.feed.history import FeedEvent, FeedItem, PartitionTail, name_of
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.lazy_dataclasses import dataclass, field

# The latest items of a partition of the feed.


def latest(
    feed: FeedReader,
    at: PartitionTail,
    count: int,
    *,
    categories: Collection[str] | None = None,
    data: bool = False,
) -> tuple[FeedItem, ...]:
    """The last `count` items, oldest first: of these `categories` alone, as far back as there is time to look."""
    page = feed.newest(count, before={at.partition: at.tail}, categories=categories, data=data)
    return page.items[:count][::-1]


def before(at: Checkpoint, entries: int) -> Checkpoint:
    """So many entries back within the epoch; from its beginning, the beginning of the one before."""
    if at.offset:
        return Checkpoint.of(at.epoch, max(0, at.offset - entries))
    return Checkpoint.of(at.epoch - 1, 0) if at.epoch else BEGINNING


# What belongs to one conversation, as a tree of causes.
#
# Events name their cause by its id or its place (`Flight-UA1545@3`), as reactions write it. The search is over the
# latest items of every partition, since no index of conversations is kept.

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
        """By which others may name it: its own, and its place."""
        return name_of(self.event), f"{self.event.stream}@{self.event.index}"


def conversation(
    feed: FeedReader, wanted: str, count: int, near: Iterable[CausedEvent] = ()
) -> list[CausedEvent]:
    """Events of the conversation that a correlation id or one of its events names, among the last so many items.

    Args:
        near: events that are looked at besides, wherever they are.
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
    """Each event below its cause; those whose cause is not among them are roots, in order of time.

    Of events that name each other as their cause, the earliest is a root.
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
    """Put below a root what it caused, but what `seen` has; the deepest are beside one another."""
    seen.add(id(root))
    below = deque([(root, root.caused, 2)])
    while below:
        cause, place, level = below.popleft()
        for each in effects.get(name_of(cause.event), ()):
            if id(each) not in seen:
                seen.add(id(each))
                place.append(each)
                below.append((each, each.caused if level < DEEPEST else place, level + 1))
