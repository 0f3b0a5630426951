"""A reaction's first wake-up: of every partition of the index, since only the reaction knows what it asks for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from epochal.dynamo.clients import service_client
from epochal.dynamo.deployed import deployed
from epochal.hosting.wakeups import Queue, tick
from epochal.settings import Settings

SPARED_SECONDS: Final = 15.0
"""Of the function's time, for the last attempt and the answer."""

PAUSE_SECONDS: Final = 5.0


def wake_all(url: str, seconds: float) -> None:
    """Send the queue at `url` a wake-up for every partition; raises what the last attempt does."""
    queue = Queue(service_client("sqs", retried=True), url)
    reader = deployed(Settings.from_environment(os.environ)).feed

    def wake() -> None:
        queue.send(tick(reader.partitions(), time.time()))

    patiently(wake, seconds - SPARED_SECONDS)


def patiently(do: Callable[[], object], seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Do it, again and again for so long: a permission that was granted a moment ago does not hold everywhere yet."""
    for _ in range(int(seconds // PAUSE_SECONDS)):
        try:
            do()
        except Exception:  # noqa: BLE001  the last attempt raises it
            sleep(PAUSE_SECONDS)
        else:
            return
    do()
