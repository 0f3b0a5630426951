"""An event loop in its own thread, on which `async def` handlers run while the delivering threads wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any


class EventLoop:
    """Runs coroutines on a loop in another thread until it is closed.

    Args:
        within: context that is entered on the loop first, and left when it is closed. What entering it raises is
            raised.
    """

    def __init__(self, within: AbstractAsyncContextManager[Any] | None) -> None:
        """Start a thread with a loop, and wait until it has entered `within`; raise what that raises."""
        self._within = within or nullcontext()
        self._begun: Future[asyncio.AbstractEventLoop] = Future()
        self._ended: Future[None] = Future()
        self._over = asyncio.Event()
        # A process that exits does not wait for this thread: unfinished deliveries are repeated later.
        threading.Thread(target=self._run, daemon=True).start()
        self._loop = self._begun.result()

    def run(self, handler: Coroutine[Any, Any, object]) -> None:
        """Run a handler on the loop and wait for it; raise what it raises.

        The handler sees the caller's context variables.
        """
        exit_ = asyncio.run_coroutine_threadsafe(_catch_exit(handler), self._loop).result()
        if exit_ is not None:
            raise exit_

    def close(self) -> None:
        """End the loop; raise what leaving `within` raises."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._ended.result()

    def _run(self) -> None:
        """Run the loop in this thread, and pass its end or its error to whoever waits."""
        try:
            asyncio.run(self._run_until_closed())
        except BaseException as error:  # noqa: BLE001  it is raised to whoever waits
            future = self._ended if self._begun.done() else self._begun
            future.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _run_until_closed(self) -> None:
        """Enter the context, and wait until the loop is closed."""
        async with self._within:
            self._begun.set_result(asyncio.get_running_loop())
            await self._over.wait()


async def _catch_exit(handler: Coroutine[Any, Any, object]) -> BaseException | None:
    """Await a handler; return the `SystemExit` or `KeyboardInterrupt` that it raises, else None.

    Raised here it would end the loop for all handlers.
    """
    try:
        await handler
    except (SystemExit, KeyboardInterrupt) as exit_:
        return exit_
    return None
