"""The first wake-ups of a reaction, sent when its stack is deployed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from epochal.feed.reader import FeedReader
from epochal.hosting.wakeup_queue import Queue, steered_wake_ups

T = TypeVar("T")

SPARED_SECONDS: Final = 15.0
"""Of the function's time, for the last attempt and the answer."""

PAUSE_SECONDS: Final = 5.0


def wake_all(queue: Queue, reader: FeedReader, seconds: float) -> None:
    """Send wake-ups for every partition of the index; after an error, try again until time is short.

    Raises whatever the last attempt raises.
    """

    def wake() -> None:
        queue.send(steered_wake_ups(reader.partitions(), f"deployed-{time.time_ns()}"))

    patiently(wake, seconds - SPARED_SECONDS)


def patiently(do: Callable[[], T], seconds: float, sleep: Callable[[float], None] = time.sleep) -> T:
    """Call a function until it succeeds, and return its result; raise its error once time is over.

    A new permission may not hold everywhere yet.
    """
    for _ in range(int(seconds // PAUSE_SECONDS)):
        try:
            return do()
        except Exception:  # noqa: BLE001  the last attempt raises it
            sleep(PAUSE_SECONDS)
    return do()
