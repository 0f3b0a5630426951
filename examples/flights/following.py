"""A reader that follows the feed while the writers write, and takes the time from acknowledgement to arrival."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median

from examples.flights.stores import BEGINNING, Item, Store

WAIT_SECONDS = 1
"""Of a long poll: short, so that following ends soon after it is told to."""


class FeedStalled(Exception):
    """Nothing more came out of the feed, though more was written."""


@dataclass(slots=True)
class Lag:
    """Seconds from an append's acknowledgement to the arrival of its last event. Safe under threads."""

    clock: Callable[[], float] = time.monotonic
    arrived: int = 0
    _waiting: dict[tuple[str, int], float] = field(default_factory=dict)
    _reached: dict[str, int] = field(default_factory=dict)
    _seconds: array[float] = field(default_factory=lambda: array("d"))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, stream: str, _first: int, version: int) -> None:
        """An append has been answered."""
        now = self.clock()
        with self._lock:
            if self._reached.get(stream, -1) >= version - 1:  # the feed was faster than the answer
                self._seconds.append(0.0)
            else:
                self._waiting[stream, version - 1] = now

    def arrive(self, items: Iterable[Item]) -> None:
        """Items have come."""
        now = self.clock()
        with self._lock:
            for item in items:
                self.arrived += 1
                self._reached[item.stream] = item.index
                sent = self._waiting.pop((item.stream, item.index), None)
                if sent is not None:
                    self._seconds.append(now - sent)

    @property
    def typical(self) -> float:
        """The median."""
        return median(self._seconds) if self._seconds else 0.0

    @property
    def longest(self) -> float:
        """The maximum."""
        return max(self._seconds, default=0.0)


class Follower:
    """A thread that follows every partition in which something has come."""

    def __init__(self, store: Store, lag: Lag) -> None:
        self._store = store
        self._lag = lag
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def wait_for(self, events: int, *, patience: float, tick: Callable[[], object] = lambda: None) -> None:
        """Return once so many events have arrived.

        Raises:
            FeedStalled: nothing came for `patience` seconds.
        """
        seen, since = -1, time.monotonic()
        while self._lag.arrived < events:
            if self._failure is not None:
                raise self._failure
            if self._lag.arrived != seen:
                seen, since = self._lag.arrived, time.monotonic()
            if time.monotonic() - since > patience:
                raise FeedStalled(
                    f"{seen:,} of {events:,} events are in the feed, and no more came for {patience:.0f} s"
                )
            tick()
            time.sleep(0.1)

    def stop(self) -> None:
        """End the thread, after the request it is waiting for."""
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        at: dict[int, str] = {}
        try:
            while not self._over.is_set():
                if not at:  # a look at a partition in which nothing ever comes would wait in vain
                    tails = self._store.tails()
                    at = {number: BEGINNING for number, tail in tails.items() if tail != BEGINNING}
                    self._over.wait(0 if at else WAIT_SECONDS)
                for partition, start in at.items():
                    page = self._store.page(partition, start, data=False, wait=WAIT_SECONDS)
                    self._lag.arrive(page.items)
                    at[partition] = page.next
        except Exception as error:  # noqa: BLE001  it is raised again, in the thread that waits
            self._failure = error
