"""Functions that callers hand in must be plain ones: their work is done when they return.

Calling an `async def`, or a function that yields, runs none of it. Nobody here awaits or iterates what comes back, so
what such a function was to do would be left out in silence: an event would count as handled that nobody has looked at.
"""

from __future__ import annotations

import functools
import inspect
from types import CoroutineType, GeneratorType

from epochal.errors import InvalidInput


def must_be_plain(function: object, field: str, *, may_yield: bool = False) -> None:
    """Raise `InvalidInput` for what can be seen not to be plain, without calling it.

    Args:
        may_yield: what comes back is iterated, so that a function that yields is as good as one that returns a list.
    """
    while isinstance(function, functools.partial):
        function = function.func
    called = (function, getattr(type(function), "__call__", None))  # noqa: B004  # the method itself is asked for
    if any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in called):
        raise InvalidInput(field, "must be a plain function: nothing awaits an async one")
    if not may_yield and any(map(inspect.isgeneratorfunction, called)):
        raise InvalidInput(field, "must be a plain function: nothing runs one that yields")


def must_be_done(result: object, field: str, *, may_yield: bool = False) -> None:
    """Raise `InvalidInput` where a function has returned work that is still to be done, which is dropped."""
    if may_yield and isinstance(result, GeneratorType):
        return
    if not (inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return
    if isinstance(result, CoroutineType | GeneratorType):
        # One that has not begun would warn that it was never awaited; whoever reads this knows.
        result.close()
    raise InvalidInput(
        field, f"must be a plain function: it returned a {type(result).__name__}, which nothing runs"
    )
