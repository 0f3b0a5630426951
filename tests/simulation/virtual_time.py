"""Blocking code of several processes under a clock that moves only while all of them wait."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

from greenlet import getcurrent, greenlet


class VirtualTime:
    """A clock, and the greenlets that wait by it. Of those that wait for one moment, a seed decides who is first."""

    def __init__(self, rng: Random) -> None:
        self.now = 0.0
        self._rng = rng
        self._waiting: list[tuple[float, float, greenlet]] = []

    def begin(self, body: Callable[[], object]) -> None:
        """Run a body from this moment on, beside the others."""
        self._push(0.0, greenlet(body))

    def wait(self, seconds: float) -> None:
        """Let the others go on until so much later."""
        assert seconds >= 0, f"{seconds} s are no time to wait"
        waiting = getcurrent()
        self._push(seconds, waiting)
        assert waiting.parent is not None
        waiting.parent.switch()

    def run(self) -> None:
        """Run all bodies to their ends; raises what one of them raises."""
        while self._waiting:
            self.now, _, following = heapq.heappop(self._waiting)
            following.parent = getcurrent()
            following.switch()

    def _push(self, seconds: float, waiting: greenlet) -> None:
        heapq.heappush(self._waiting, (self.now + seconds, self._rng.random(), waiting))
