"""Methods of the ordinary form of a class, awaited. Their arguments, types and docstrings are those of the original, so
that an asynchronous class names each and says nothing twice.

What is called is the method of that name of the object in the field `of`, which may be of a subclass.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from epochal.aio.bridge import each, run
from epochal.aio.writes import finished

P = ParamSpec("P")
T = TypeVar("T")


def reads(
    method: Callable[Concatenate[Any, P], T], *, of: str = "store"
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method that reads: it ends where its caller is cancelled."""

    @wraps(method)
    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        found: T = await run(getattr(getattr(self, of), method.__name__), *args, **kwargs)
        return found

    return awaited


def writes(
    method: Callable[Concatenate[Any, P], T], *, of: str = "store"
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method that writes: it goes on to its end where its caller is cancelled."""

    @wraps(method)
    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await finished(run(getattr(getattr(self, of), method.__name__), *args, **kwargs))

    return awaited


def iterates(
    method: Callable[Concatenate[Any, P], Iterator[T]], *, of: str = "store"
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """A method that yields: each is awaited when it is wanted."""

    @wraps(method)
    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        async for one in each(getattr(getattr(self, of), method.__name__), *args, **kwargs):
            yield one

    return awaited
