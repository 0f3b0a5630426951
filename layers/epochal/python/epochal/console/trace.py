"""What belongs to one conversation, as a tree of causes.

Events name their cause by its id or its place (`Flight-UA1545@3`), as reactions write it. The search is over the latest
items of every partition, since no index of conversations is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from epochal.console.recent import latest
from epochal.console.show import whole
from epochal.deployment import Deployment
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedEvent

SEARCHED: Final = 500
"""Items of each partition, unless the address asks for more."""

MOST: Final = 10_000


@dataclass(slots=True)
class Node:
    """An event, and what it caused."""

    partition: int
    event: FeedEvent
    caused: list[Node] = field(default_factory=list)


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The conversation that `id` names: by its correlation id, or by one of its events."""
    wanted, count = arguments.get("id", "").strip(), whole(arguments, "items", SEARCHED, MOST)
    roots = tree(conversation(deployment.feed, wanted, count)) if wanted else []
    return {"id": wanted, "items": count, "roots": roots, "more": min(10 * count, MOST)}


def conversation(feed: FeedReader, wanted: str, count: int) -> list[Node]:
    """Events of the conversation that a correlation id or one of its events names, among the last so many items."""
    found = [
        Node(at.partition, item.event)
        for at in feed.partitions()
        for item in latest(feed, at, count, data=True)
        if item.event is not None
    ]
    named = {each.event.correlation_id for each in found if name_of(each.event) == wanted}
    return [
        each
        for each in found
        if each.event.correlation_id in {wanted, *named} - {None} or name_of(each.event) == wanted
    ]


def tree(nodes: Iterable[Node]) -> list[Node]:
    """Each event below its cause; those whose cause is not among them are roots, in order of time."""
    ordered = sorted(nodes, key=lambda each: each.event.timestamp)
    by_name = {name_of(each.event): each for each in ordered}
    roots: list[Node] = []
    for each in ordered:
        cause = by_name.get(each.event.causation_id or "")
        (roots if cause is None or cause is each else cause.caused).append(each)
    return roots or ordered


def name_of(event: FeedEvent) -> str:
    """What others name it by as their cause."""
    return event.id or f"{event.stream}@{event.index}"
