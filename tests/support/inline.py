"""An executor without threads: what goes out side by side goes out one after the other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class Inline(Executor):
    """An executor that runs each call immediately in the caller's thread."""

    def __init__(self, _threads: int = 1) -> None:
        """Accept any number of threads, and create none."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # as executors do
            future.set_exception(error)
        return future
