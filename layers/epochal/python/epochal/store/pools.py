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
    """Something that one caller waits for until another sets it: an event of threads, or of tasks."""

    def wait(self) -> object:
        """Until it is set."""

    def set(self) -> None:
        """Let whoever waits go on."""

    def is_set(self) -> bool:
        """Whether it was."""


TURN: Final[ContextVar[Callable[[], Turn]]] = ContextVar("turn", default=threading.Event)
"""Makes what a caller waits for."""


def pool(at_once: int) -> Executor:
    """An executor that runs up to `at_once` calls at the same time."""
    return POOL.get()(at_once)


def turn() -> Turn:
    """A new `Turn`, which is not set."""
    return TURN.get()()
