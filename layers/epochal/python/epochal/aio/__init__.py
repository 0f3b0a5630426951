"""The stores for asynchronous programs: the same plans and promises, awaited (docs/guide/async.md).

stores  streams, tagged events, the feed, read models and deciders, awaited
bridge  runs blocking code in an event loop without blocking the loop
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.aio.bridge import WriteCancelled as WriteCancelled
    from epochal.aio.bridge import cancelled_write as cancelled_write
    from epochal.aio.bridge import each as each
    from epochal.aio.bridge import in_threads as in_threads
    from epochal.aio.bridge import run as run
    from epochal.aio.stores import AsyncBulk as AsyncBulk
    from epochal.aio.stores import AsyncDeciders as AsyncDeciders
    from epochal.aio.stores import AsyncDecisions as AsyncDecisions
    from epochal.aio.stores import AsyncFeed as AsyncFeed
    from epochal.aio.stores import AsyncJoinedAppends as AsyncJoinedAppends
    from epochal.aio.stores import AsyncPlace as AsyncPlace
    from epochal.aio.stores import AsyncReadModel as AsyncReadModel
    from epochal.aio.stores import AsyncReadModels as AsyncReadModels
    from epochal.aio.stores import AsyncStreams as AsyncStreams
    from epochal.aio.stores import AsyncTaggedEvents as AsyncTaggedEvents
    from epochal.aio.stores import handle_all as handle_all

_NAMES = {
    "bridge": (
        "WriteCancelled",
        "cancelled_write",
        "each",
        "in_threads",
        "run",
    ),
    "stores": (
        "AsyncBulk",
        "AsyncDeciders",
        "AsyncDecisions",
        "AsyncFeed",
        "AsyncJoinedAppends",
        "AsyncPlace",
        "AsyncReadModel",
        "AsyncReadModels",
        "AsyncStreams",
        "AsyncTaggedEvents",
        "handle_all",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
