"""Where calls run side by side, and how one waits for another: in threads, or as tasks of an event loop where
`epochal.aio` runs the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Final, Protocol

POOL: Final[ContextVar[Callable[[int], Executor]]] = ContextVar("pool", default=ThreadPoolExecutor)
"""Makes what so many calls run in at once."""


class Turn(Protocol):
    """What one caller waits for, and another says: an event of threads, or of tasks."""

    def wait(self) -> object:
        """Until it is set."""

    def set(self) -> None:
        """Let whoever waits go on."""

    def is_set(self) -> bool:
        """Whether it was."""


TURN: Final[ContextVar[Callable[[], Turn]]] = ContextVar("turn", default=threading.Event)
"""Makes what a caller waits for."""


def pool(at_once: int) -> Executor:
    """What up to `at_once` calls run in; a context, as executors are."""
    return POOL.get()(at_once)


def turn() -> Turn:
    """What the caller can wait for, not set."""
    return TURN.get()()
