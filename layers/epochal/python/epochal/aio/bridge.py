"""Runs blocking code inside an event loop without blocking the loop.

A store asks for one request at a time, and waits for its answer before it goes on. Here it runs in a greenlet: where it
would wait, it hands an awaitable to the coroutine that runs it, which awaits that and brings the result. So there is
one store with one set of tests, and no second copy of it. SQLAlchemy's asynchronous engine works alike.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor, Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from epochal.errors import InvalidInput, brought_by
from epochal.store.answers import REFUSALS
from epochal.store.driver import POOL, TURN

with brought_by("async", "asynchronous stores", "greenlet"):
    from greenlet import getcurrent, greenlet

P = ParamSpec("P")
T = TypeVar("T")

_END: Final = object()


class _Bridge(greenlet):
    """Runs a blocking function in a greenlet; its parent is the coroutine that awaits for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Prepare the function to run in a copy of the context in which pools are tasks of the loop."""
        super().__init__(function)
        self.context = copy_context()
        self.context.run(POOL.set, _Tasks)
        self.context.run(TURN.set, _Turn)
        self.gr_context = self.context


async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking method of a store of an `AsyncPlace`, await its requests, and return its result.

    `await run(listings_of(store).tags, "course")` returns what the method returns, or raises what it raises.

    Args:
        function: blocking method.
        args, kwargs: arguments that it is called with.
    """
    bridge = _Bridge(function)
    try:
        answer = bridge.switch(*args, **kwargs)
        while not bridge.dead:
            try:
                result = await answer
            except BaseException:  # noqa: BLE001  whatever it is, it is the function's to handle, a cancellation too
                answer = bridge.throw(*sys.exc_info())
            else:
                answer = bridge.switch(result)
    finally:
        REFUSALS.set(bridge.context.get(REFUSALS, ()))
    return cast("T", answer)


async def each(function: Callable[P, Iterator[T]], *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
    """Call a blocking method that returns an iterator; yield its results, each awaited when it is wanted.

    Args:
        function: blocking method that returns an iterator.
        args, kwargs: arguments that it is called with.
    """
    result = await run(function, *args, **kwargs)
    try:
        while (one := await run(next, result, _END)) is not _END:
            yield cast("T", one)
    finally:
        if isinstance(result, Generator):
            await run(result.close)


def wait(awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable in a function that `run` has called, and return its result; raise elsewhere.

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
    """Wait for a blocking function that runs in a thread of the loop's pool."""
    return wait(asyncio.to_thread(function, *args, **kwargs))


def in_threads(service: T) -> T:
    """Wrap a service so that each of its calls, and each step of an iteration, runs in a thread.

    Args:
        service: service with blocking methods.
    """
    return cast("T", _InThreads(service))


class _InThreads:
    """Forwards method calls to a service in threads."""

    def __init__(self, service: object) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return partial(_called, getattr(self._service, name))


def _called(method: Callable[..., T], *args: Any) -> T:
    """Call a method in a thread; iterate in threads if it returns an iterator."""
    result = in_thread(method, *args)
    return cast("T", _taken(result)) if isinstance(result, Iterator) else result


def _taken(items: Iterator[T]) -> Iterator[T]:
    """Iterate over an iterator, taking each step in a thread."""
    while (one := in_thread(next, items, _END)) is not _END:
        yield cast("T", one)


class _Tasks(Executor):
    """An executor of the event loop for stores that expect a pool of threads: each call runs in a task.

    Stores read in it, and nothing else: calls that nobody has waited for when it is shut down are cancelled.
    """

    def __init__(self, at_once: int) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._tasks: list[asyncio.Task[Any]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call in a task, and return a future for its result."""

        async def call() -> T:
            async with self._room:
                return await run(fn, *args, **kwargs)

        task = asyncio.create_task(call())
        task.add_done_callback(look_at_error)
        self._tasks.append(task)
        return _Awaited(task)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002  of the protocol
        """Cancel the tasks that are not done."""
        for task in self._tasks:
            task.cancel()


class _Awaited(Future[T]):
    """The future of a task, whose result is waited for through the bridge."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        super().__init__()
        self._task = task

    def result(self, timeout: float | None = None) -> T:  # noqa: ARG002  nobody asks for it
        return wait(self._task)

    def cancel(self) -> bool:
        return self._task.cancel()


class _Turn:
    """An event that a task waits for, with the interface of a thread's."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def wait(self, timeout: float | None = None) -> object:
        with suppress(TimeoutError):
            wait(asyncio.wait_for(self._event.wait(), timeout))
        return self.is_set()

    def set(self) -> None:
        if not self._loop.is_closed():  # otherwise no task of it will ever go on
            self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()


# Writes that are cancelled: what became of them is found out before the cancellation goes on.


class WriteCancelled(Exception):
    """A write whose task was cancelled while it was under way. It causes the `CancelledError`: see `cancelled_write`.

    Attributes:
        known: whether it is known what became of the write. False if a second cancellation, or that of all tasks of the
            loop, came before it ended: it may have been applied.
        outcome: what the write returned in spite of the cancellation, or the error that it raised: a `ConflictError`
            says that nothing was written. None if `known` is False, or if the write returns None.
    """

    def __init__(self, outcome: object = None, *, known: bool) -> None:
        super().__init__("cancelled while a write was under way")
        self.outcome = outcome
        self.known = known


def cancelled_write(error: BaseException) -> WriteCancelled | None:
    """Return the `WriteCancelled` that caused an error, such as a `CancelledError`; None if there is none.

    Args:
        error: error that was caught, such as a `TimeoutError` of `asyncio.timeout`.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, WriteCancelled):
        cause = cause.__cause__
    return cause


async def finished(write: Coroutine[Any, Any, T]) -> T:
    """Await a write; if the caller is cancelled, finish the write first, then cancel with its outcome.

    That takes as long as the request under way, and its retries as long as the store's patience.

    Raises:
        CancelledError: caused by a `WriteCancelled`. It is no class of its own, which `asyncio.timeout` would not know.
    """
    context = copy_context()
    task = asyncio.get_running_loop().create_task(write, context=context)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        raise cancelled from await _end_of(task)
    finally:
        REFUSALS.set(context.get(REFUSALS, ()))


async def _end_of(task: asyncio.Future[T]) -> WriteCancelled:
    """Wait for the end of a cancelled write, and return its outcome as far as it is known."""
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
    """Retrieve an error that nobody waits for any more, of which asyncio would complain."""
    if not task.cancelled():
        task.exception()


# Methods of the ordinary form of a class, awaited. Their arguments, types and docstrings are those of the original, so
# that an asynchronous class names each and says nothing twice.
#
# What is called is the method of that name of the object in the field `of`, which may be of a subclass.


def reads(
    method: Callable[Concatenate[Any, P], T], *, of: str = "store"
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Build the asynchronous form of a method that reads: it stops if its caller is cancelled."""

    @wraps(method)
    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await run(getattr(getattr(self, of), method.__name__), *args, **kwargs)
        return result

    return awaited


def writes(
    method: Callable[Concatenate[Any, P], T], *, of: str = "store"
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Build the asynchronous form of a method that writes: it finishes even if its caller is cancelled."""

    @wraps(method)
    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await finished(run(getattr(getattr(self, of), method.__name__), *args, **kwargs))

    return awaited


def written(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Build the asynchronous form of a function that writes: it finishes even if its caller is cancelled."""

    @wraps(function)
    async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
        return await finished(run(function, *args, **kwargs))

    return awaited


def iterates(
    method: Callable[Concatenate[Any, P], Iterator[T]], *, of: str = "store"
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """Build the asynchronous form of a generator method: each result is awaited when it is wanted."""

    @wraps(method)
    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        async for one in each(getattr(getattr(self, of), method.__name__), *args, **kwargs):
            yield one

    return awaited
