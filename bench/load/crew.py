"""Threads that repeat a step each until they are told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self


class Crew:
    """Threads that work during a block. The first failure stops them all, and is raised by `check` and at the end."""

    def __init__(self, steps: Sequence[Callable[[], None]]) -> None:
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._steps = [0] * len(steps)
        self._threads = [
            threading.Thread(target=self._work, args=pair, daemon=True) for pair in enumerate(steps)
        ]

    @property
    def least(self) -> int:
        """Least number of steps that a worker has made."""
        return min(self._steps)

    def check(self) -> None:
        """Raise the first failure, if there is any."""
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if error is None:
            self.check()

    def _work(self, number: int, step: Callable[[], None]) -> None:
        try:
            while not self._over.is_set():
                step()
                self._steps[number] += 1
        except Exception as error:  # noqa: BLE001  it is raised again, in the thread that waits
            self._failure = self._failure or error
            self._over.set()
