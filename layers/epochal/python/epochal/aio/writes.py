"""Writes that are cancelled: what became of them is found out before the cancellation goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class WriteCancelled(Exception):
    """A write was cancelled while it was under way: the cause of the `CancelledError`, which `cancelled_write` finds.

    Attributes:
        known: whether its end is. False where it was cancelled again before that, or with all tasks of its loop: it may
            have been applied.
        outcome: what the write answered all the same, or the error that it raised: a `ConflictError` says that
            nothing was written. None where that is not known; some writes answer None.
    """

    def __init__(self, outcome: object = None, *, known: bool) -> None:
        super().__init__("cancelled while a write was under way")
        self.outcome = outcome
        self.known = known


def cancelled_write(error: BaseException) -> WriteCancelled | None:
    """The write that a `CancelledError`, or a `TimeoutError` made of one, has cancelled; None where there was none."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, WriteCancelled):
        cause = cause.__cause__
    return cause


async def finished(write: Coroutine[Any, Any, T]) -> T:
    """A write's answer. Where the caller is cancelled, the write goes on to its end, and then the cancellation does.

    That takes as long as the request under way, and its retries as long as the store's patience.

    Raises:
        CancelledError: caused by a `WriteCancelled`. It is no class of its own, which `asyncio.timeout` would not know.
    """
    task = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        raise cancelled from await _end_of(task)


async def _end_of(task: asyncio.Future[T]) -> WriteCancelled:
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.add_done_callback(look_at_error)
        return WriteCancelled(known=False)
    if task.cancelled():
        return WriteCancelled(known=False)
    error = task.exception()
    return WriteCancelled(task.result() if error is None else error, known=True)


def look_at_error(task: asyncio.Future[T]) -> None:
    """Look at an error that nobody waits for any more; asyncio would complain of it."""
    if not task.cancelled():
        task.exception()
