"""Running what is written to block inside of an event loop, without blocking it.

A store asks for one request at a time, and waits for its answer before it goes on. Here it runs in a greenlet: where it
would wait, it hands an awaitable to the coroutine that runs it, which awaits that and brings the result. So there is
one store with one set of tests, and no second copy of it. SQLAlchemy's asynchronous engine works alike.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar, cast

from epochal.aio.writes import look_at_error
from epochal.errors import InvalidInput
from epochal.extras import brought_by
from epochal.store.pools import POOL, TURN

with brought_by("async", "asynchronous stores", "greenlet"):
    from greenlet import getcurrent, greenlet

P = ParamSpec("P")
T = TypeVar("T")

_END: Final = object()


class _Bridge(greenlet):
    """Runs a blocking function; its parent is the coroutine that awaits for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        context = copy_context()
        context.run(POOL.set, _Tasks)
        context.run(TURN.set, _Turn)
        self.gr_context = context


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


async def each(function: Callable[P, Iterator[T]], *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
    """What a function that waits by `wait` yields, each awaited when it is wanted."""
    found = await run(function, *args, **kwargs)
    try:
        while (one := await run(next, found, _END)) is not _END:
            yield cast("T", one)
    finally:
        if isinstance(found, Generator):
            await run(found.close)


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


def in_threads(service: T) -> T:
    """The same service, each of its calls in a thread, and each step of what a call iterates."""
    return cast("T", _InThreads(service))


class _InThreads:
    def __init__(self, service: object) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return partial(_called, getattr(self._service, name))


def _called(method: Callable[..., T], *args: Any) -> T:
    found = in_thread(method, *args)
    return cast("T", _taken(found)) if isinstance(found, Iterator) else found


def _taken(found: Iterator[T]) -> Iterator[T]:
    while (one := in_thread(next, found, _END)) is not _END:
        yield cast("T", one)


class _Tasks(Executor):
    """What a pool of threads is to a store that blocks: up to so many calls at a time, each in a task.

    Stores read in it, and nothing else: calls that nobody has waited for when it is shut down are cancelled.
    """

    def __init__(self, at_once: int) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._tasks: list[asyncio.Task[Any]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin a call; what is returned is waited for by `result()` alone."""

        async def call() -> T:
            async with self._room:
                return await run(fn, *args, **kwargs)

        task = asyncio.create_task(call())
        task.add_done_callback(look_at_error)
        self._tasks.append(task)
        return _Awaited(task)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002  of the protocol
        """Cancel what is not done."""
        for task in self._tasks:
            task.cancel()


class _Awaited(Future[T]):
    def __init__(self, task: asyncio.Task[T]) -> None:
        super().__init__()
        self._task = task

    def result(self, timeout: float | None = None) -> T:  # noqa: ARG002  nobody asks for it
        return wait(self._task)

    def cancel(self) -> bool:
        return self._task.cancel()


class _Turn:
    """What a task waits for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wait(self) -> object:
        return wait(self._event.wait())

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()
