"""An event loop in a thread of its own, on which `async def` handlers run while those who deliver wait in theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any


class EventLoop:
    """Runs coroutines until it is closed.

    Args:
        within: entered on the loop before anything else, and left when it is closed; what entering it raises is raised.
    """

    def __init__(self, within: AbstractAsyncContextManager[Any] | None) -> None:
        self._within = within or nullcontext()
        self._begun: Future[asyncio.AbstractEventLoop] = Future()
        self._ended: Future[None] = Future()
        self._over = asyncio.Event()
        # A process that ends does not wait for it: what was being handled comes again.
        threading.Thread(target=self._run, daemon=True).start()
        self._loop = self._begun.result()

    def run(self, handler: Coroutine[Any, Any, object]) -> None:
        """Wait for a handler, which sees the caller's context variables; raises what it raises."""
        exit_ = asyncio.run_coroutine_threadsafe(_catch_exit(handler), self._loop).result()
        if exit_ is not None:
            raise exit_

    def close(self) -> None:
        """End the loop; raises what leaving `within` does."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._ended.result()

    def _run(self) -> None:
        try:
            asyncio.run(self._run_until_closed())
        except BaseException as error:  # noqa: BLE001  it is raised to whoever waits
            future = self._ended if self._begun.done() else self._begun
            future.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _run_until_closed(self) -> None:
        async with self._within:
            self._begun.set_result(asyncio.get_running_loop())
            await self._over.wait()


async def _catch_exit(handler: Coroutine[Any, Any, object]) -> BaseException | None:
    """A handler that ends the process does so in the thread that waits for it; here it would end the loop of all."""
    try:
        await handler
    except (SystemExit, KeyboardInterrupt) as exit_:
        return exit_
    return None
