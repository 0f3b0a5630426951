"""A clock that only sleeping moves, and that does on the way what was to be done by then."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Timeline:
    """Simulated seconds since a test began."""

    def __init__(self) -> None:
        self._now = 0.0
        self._numbers = count()
        self._plans: list[tuple[float, int, Callable[[], object]]] = []

    def __call__(self) -> float:
        return self._now

    def at(self, moment: float, do: Callable[[], object]) -> None:
        """Call a function at a moment, during a sleep."""
        heapq.heappush(self._plans, (moment, next(self._numbers), do))

    def every(self, seconds: float, do: Callable[[], object]) -> Callable[[], None]:
        """Call a function repeatedly from now on; return a function that stops it."""
        over = False

        def again() -> None:
            if not over:
                self.at(self._now + seconds, again)
                do()

        def stop() -> None:
            nonlocal over
            over = True

        self.at(self._now + seconds, again)
        return stop

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        end = self._now + seconds
        while self._plans and self._plans[0][0] <= end:
            moment, _, do = heapq.heappop(self._plans)
            self._now = max(self._now, moment)
            do()
        self._now = max(self._now, end)
