"""Running what is written to block inside of an event loop, without blocking it.

A store asks for one request at a time, and waits for its answer before it goes on. Here it runs in a greenlet: where it
would wait, it hands an awaitable to the coroutine that runs it, which awaits that and brings the result. So there is
one store with one set of tests, and no second copy of it. SQLAlchemy's asynchronous engine works alike.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar, cast

from greenlet import getcurrent, greenlet

from epochal.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")


class _Bridge(greenlet):
    """Runs a blocking function; its parent is the coroutine that awaits for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.gr_context = copy_context()


async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that waits by `wait`, and await what it waits for."""
    bridge = _Bridge(function)
    answer = bridge.switch(*args, **kwargs)
    while not bridge.dead:
        try:
            found = await answer
        except BaseException:  # noqa: BLE001  whatever it is, it is the function's to handle, a cancellation too
            answer = bridge.throw(*sys.exc_info())
        else:
            answer = bridge.switch(found)
    return cast("T", answer)


def wait(awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable, within a function that `run` has called.

    Raises:
        InvalidInput: nobody would await it: a store of an `AsyncPlace` was called as if it were an ordinary one.
    """
    bridge = getcurrent()
    if not isinstance(bridge, _Bridge):
        if isinstance(awaitable, Coroutine):
            awaitable.close()
        raise InvalidInput(
            "store", "is asynchronous: call it through AsyncStreams, AsyncDeciders or AsyncTaggedEvents"
        )
    assert bridge.parent is not None  # noqa: S101  it was switched to
    return cast("T", bridge.parent.switch(awaitable))


def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Wait for a function that blocks, in a thread of the loop's pool."""
    return wait(asyncio.to_thread(function, *args, **kwargs))
