"""Checks of functions that callers hand in, and of what these return: their work must be done when they return.

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
    """Raise `InvalidInput` unless a value is a function that is neither async nor a generator.

    It is inspected, not called.

    Args:
        may_yield: generator functions are accepted, because the caller iterates over the result.
    """
    if not callable(function):
        raise InvalidInput(field, f"must be a function, not {type(function).__name__}")
    callables = _callables_of(function)
    if any(
        inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate)
        for candidate in callables
    ):
        raise InvalidInput(field, "must be a plain function, not an async one: nothing awaits it")
    if not may_yield and any(map(inspect.isgeneratorfunction, callables)):
        raise InvalidInput(field, "must be a plain function, not a generator: nothing iterates over it")


def must_take_one(function: Callable[..., object], field: str, what: str) -> None:
    """Raise `InvalidInput` if a function cannot be called with exactly one argument; it is not called."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of what is written in C it may be unknown
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise InvalidInput(field, f"is called with {what} and nothing else: {error}") from error


def is_async(function: object) -> bool:
    """Return whether a function is an `async def`, without calling it."""
    return any(map(inspect.iscoroutinefunction, _callables_of(function)))


def _callables_of(function: object) -> tuple[object, ...]:
    """Return the function without partials, and its `__call__` if it is an object with one."""
    while isinstance(function, functools.partial):
        function = function.func
    return function, getattr(type(function), "__call__", None)  # noqa: B004  # the method itself is asked for


def must_be_done(result: T, field: str, *, may_yield: bool = False) -> T:
    """Return a function's result; raise `InvalidInput` if it is a coroutine or generator that never ran.

    A coroutine or generator is closed first.
    """
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
    """Return the state that `evolve` returned; raise `InvalidInput` for None, unless states begin as None.

    A branch without a `return` would otherwise go on with, and store, an empty state.
    """
    if result is None and before is not None and initial() is not None:
        kind = getattr(event, "type", None) if isinstance(getattr(event, "type", None), str) else None
        raise InvalidInput(
            "evolve", f"must return a state, but returned None for {kind or type(event).__name__}"
        )
    return must_be_done(result, "evolve")


def must_be_events(result: Iterable[T] | None, field: str = "decide") -> Iterable[T]:
    """Return a decision's events; raise `InvalidInput` unless they are a sequence, a set or an iterator."""
    must_be_done(result, field, may_yield=True)
    # Of NamedTuples and Pydantic's models one alone can be iterated, too: over its fields.
    is_one = isinstance(result, str | bytes) or hasattr(result, "_fields")
    if is_one or not isinstance(result, Sequence | AbstractSet | Iterator):
        remedy = "return [] where there is nothing to do" if result is None else "put it into a list"
        raise InvalidInput(field, f"must return a list of events, not {type(result).__name__}: {remedy}")
    return result
