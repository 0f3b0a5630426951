"""Wake-ups in this process: what a queue and a scheduler do on AWS, for timers of stores in memory."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable

from epochal.contrib.timers.protocol import Sent, Wake
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds


class WakeUps:
    """Wake-ups on their way; safe under threads.

    Args:
        now: nanoseconds since 1970.
    """

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: list[tuple[Ticks, int, Wake]] = []
        self._slots: set[str] = set()

    def send(self, sent: Sent) -> None:
        """Take wake-ups: near ones each for itself, of a slot one until it has come."""
        now = from_unix_nanoseconds(self._now())
        with self._lock:
            for wake_up, seconds in sent.near:
                self._push(Ticks(now + seconds * PER_SECOND), wake_up)
            for slot in sent.far:
                if slot.name not in self._slots:
                    self._slots.add(slot.name)
                    self._push(slot.since, slot)

    @property
    def next(self) -> Ticks | None:
        """When the next one comes; None where there is none."""
        with self._lock:
            return self._waiting[0][0] if self._waiting else None

    def take(self, most: int = 100) -> list[Wake]:
        """Those that have come by now. One that fails is to be sent again."""
        now, taken = from_unix_nanoseconds(self._now()), list[Wake]()
        with self._lock:
            while len(taken) < most and self._waiting and self._waiting[0][0] <= now:
                taken.append(heapq.heappop(self._waiting)[2])
            self._slots.difference_update(each.name for each in taken if each.timer is None)
        return taken

    def _push(self, at: Ticks, wake_up: Wake) -> None:
        heapq.heappush(self._waiting, (at, next(self._numbers), wake_up))
