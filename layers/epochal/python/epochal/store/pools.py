"""Where calls run side by side: in threads, or as tasks of an event loop where `epochal.aio` runs the caller."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Final

POOL: Final[ContextVar[Callable[[int], Executor]]] = ContextVar("pool", default=ThreadPoolExecutor)
"""Makes what so many calls run in at once."""


def pool(at_once: int) -> Executor:
    """What up to `at_once` calls run in; a context, as executors are."""
    return POOL.get()(at_once)
