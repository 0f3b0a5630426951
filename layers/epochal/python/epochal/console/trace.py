"""One conversation, as a tree of causes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from epochal.console.show import whole
from epochal.console.streams import places
from epochal.deployment import Deployment
from epochal.feed.causes import CausedEvent, conversation, tree

SEARCHED: Final = 100
"""Items of each partition, unless the address asks for more."""

MOST: Final = 10_000

AROUND: Final = 25
"""Events of a stream on either side of one that is named: an append has several as a rule."""

CAUSES: Final = 20
"""That are followed back from an event."""

_PLACE: Final = re.compile(r"(?P<stream>.+)@(?P<index>[0-9]{1,15})")


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The conversation that `id` names: by its correlation id, or by one of its events. `at` is an event of it, as
    `Stream@index`: it, its neighbours and its causes are read where they are, however long ago they came.
    """
    wanted, count = arguments.get("id", "").strip(), whole(arguments, "items", SEARCHED, MOST)
    at = arguments.get("at", "").strip() or wanted
    near = list(_near(deployment, at)) if wanted else []
    roots = tree(conversation(deployment.feed, wanted, count, near)) if wanted else []
    return {"id": wanted, "at": at, "items": count, "roots": roots, "more": min(10 * count, MOST)}


def _near(deployment: Deployment, name: str) -> Iterator[CausedEvent]:
    """An event with its neighbours, and so each cause of it that is named by its place."""
    followed = set[str]()
    while (place := _PLACE.fullmatch(name)) and name not in followed and len(followed) <= CAUSES:
        followed.add(name)
        cause, index = "", int(place["index"])
        for _, partition in places(deployment, place["stream"]):
            end = deployment.feed.end_of(partition, place["stream"], 0)
            first, last = max(0, index - AROUND), min(end, index + AROUND)
            for event in (
                deployment.feed.events(partition, place["stream"], first, last) if first < last else ()
            ):
                yield CausedEvent(partition, event)
                if event.index == index:
                    cause = event.causation_id or ""
        name = cause
