"""Functions that callers hand in must be plain ones: their work is done when they return.

Calling an `async def`, or a function that yields, runs none of it. The library does not await or iterate the result, so
its work would be left out in silence: an event would count as handled that was never looked at.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TypeVar

from epochal.errors import InvalidInput

T = TypeVar("T")


def must_be_plain(function: object, field: str, *, may_yield: bool = False) -> None:
    """Raise `InvalidInput` for what is no function, or can be seen not to be plain, without calling it.

    Args:
        may_yield: what comes back is iterated, so that a function that yields is as good as one that returns a list.
    """
    if not callable(function):
        raise InvalidInput(field, f"must be a function, not {type(function).__name__}")
    called = _called(function)
    if any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in called):
        raise InvalidInput(field, "must be a plain function: nothing awaits an async one")
    if not may_yield and any(map(inspect.isgeneratorfunction, called)):
        raise InvalidInput(field, "must be a plain function: nothing runs one that yields")


def must_take_one(function: Callable[..., object], field: str, what: str) -> None:
    """Raise `InvalidInput` for a function that can be seen not to take one argument, without calling it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of what is written in C it may be unknown
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise InvalidInput(field, f"is called with {what} and nothing else: {error}") from error


def is_async(function: object) -> bool:
    """Whether a function can be seen to be an `async def`, without calling it."""
    return any(map(inspect.iscoroutinefunction, _called(function)))


def _called(function: object) -> tuple[object, ...]:
    """The function itself, and its `__call__` where it is an object with one."""
    while isinstance(function, functools.partial):
        function = function.func
    return function, getattr(type(function), "__call__", None)  # noqa: B004  # the method itself is asked for


def must_be_done(result: T, field: str, *, may_yield: bool = False) -> T:
    """What a function has returned; raises `InvalidInput` for a coroutine or a generator, which is dropped."""
    kind = type(result)
    # Asked of each event that is folded: `inspect` takes ten times as long.
    if not hasattr(kind, "__await__") and kind is not GeneratorType and kind is not AsyncGeneratorType:
        return result
    if may_yield and kind is GeneratorType:
        return result
    if isinstance(result, CoroutineType | GeneratorType):
        # One that has not begun would warn that it was never awaited, which the error says already.
        result.close()
    raise InvalidInput(
        field, f"must be a plain function: it returned a {type(result).__name__}, which nothing runs"
    )


def must_be_state(result: T, before: object, initial: Callable[[], object], event: object) -> T:
    """The state that `evolve` returned; raises `InvalidInput` for None, unless states begin as None.

    A branch without a `return` would go on, and be stored, as a state of nothing.
    """
    if result is None and before is not None and initial() is not None:
        kind = getattr(event, "type", None) if isinstance(getattr(event, "type", None), str) else None
        raise InvalidInput(
            "evolve", f"must return a state, and returned None for {kind or type(event).__name__}"
        )
    return must_be_done(result, "evolve")


def must_be_events(result: Iterable[T] | None, field: str = "decide") -> Iterable[T]:
    """The events that a decision returned; raises `InvalidInput` for a single event, for None, and for anything else
    that is no list.
    """
    must_be_done(result, field, may_yield=True)
    # Of NamedTuples and Pydantic's models one alone can be iterated, too: over its fields.
    is_one = isinstance(result, str | bytes) or hasattr(result, "_fields")
    if is_one or not isinstance(result, Sequence | AbstractSet | Iterator):
        wanted = "return [] where there is nothing to do" if result is None else "put it into a list"
        raise InvalidInput(field, f"must return a list of events, not {type(result).__name__}: {wanted}")
    return result
