"""Checks of what a caller hands in.

Type checkers find a wrong kind before a program runs. Without one, or at a prompt, the caller gets the field and the
rule, not an `AttributeError` from the depths or, worse, an answer: a text is a sequence of letters, and an unknown
expectation is equal to no stream. So values check themselves when they are made, and stores check their arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Final, TypeVar

from epochal.errors import InvalidInput

MAX_WHOLE: Final = 2**53 - 1
"""The greatest whole number that every reader of JSON reads exactly; nothing counted here comes near it."""

_LONGEST_SHOWN: Final = 10**20
"""Integers from here on are not written out in error messages."""


def must_be(kind: type | tuple[type, ...], value: object, field: str, rule: str) -> None:
    """Raise `InvalidInput` unless `value` is of the kind; the rule is what follows "must be"."""
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be {rule}, not {type(value).__name__}")


def must_be_whole(value: object, field: str, least: int = 0, most: int = MAX_WHOLE) -> None:
    """Raise `InvalidInput` unless `value` is an integer within bounds; True and 1.0 are not."""
    if isinstance(value, bool):
        raise InvalidInput(field, "must be a number, not bool")
    must_be(int, value, field, "a number")
    if isinstance(value, int) and value < least:
        raise InvalidInput(field, f"must be at least {least:,}, got {_shown(value)}")
    if isinstance(value, int) and value > most:
        raise InvalidInput(field, f"must be at most {most:,}, got {_shown(value)}")


def _shown(number: int) -> str:
    """Format an integer for an error message; Python refuses to format one of thousands of digits."""
    return f"{number:,}" if abs(number) < _LONGEST_SHOWN else "a number of more than 20 digits"


def must_be_seconds(value: object, field: str) -> None:
    """Raise `InvalidInput` unless `value` is a number of seconds; NaN is not."""
    if isinstance(value, bool) or value != value:  # noqa: PLR0124  only NaN is not equal to itself
        raise InvalidInput(field, f"must be seconds, not {value}")
    must_be((int, float), value, field, "seconds")


def must_be_numbers(values: Collection[int], field: str) -> tuple[int, ...]:
    """Return distinct integers as a tuple; raise `InvalidInput` unless they are a collection of such."""
    if isinstance(values, str | bytes):
        raise InvalidInput(field, f"must be a list of numbers, not {type(values).__name__}")
    must_be(Collection, values, field, "a list of numbers")
    for number in values:
        must_be_whole(number, field)
    if len({*values}) < len(values):
        raise InvalidInput(field, "must not contain a number twice")
    return tuple(values)


def must_be_list(kind: type, values: object, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a sequence of the kind; a single text is not one."""
    rule = "a list" if kind is object else f"a list of {kind.__name__}"
    if isinstance(values, str | bytes):
        raise InvalidInput(field, f"must be {rule}, not {type(values).__name__}")
    must_be(Sequence, values, field, rule)
    if isinstance(values, Sequence):
        for position, item in enumerate(values):
            must_be(kind, item, f"{field}[{position}]", f"{kind.__name__}")


def must_be_texts(values: Sequence[str], longest: int, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a list of storable texts of 1 to `longest` bytes each."""
    must_be_list(str, values, field)
    for text in values:
        must_be_text(text, longest, field)


def must_be_names(values: object, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a collection of texts; a single text is not one."""
    if isinstance(values, str | bytes):
        raise InvalidInput(field, "must be a list of names, not one name")
    must_be(Collection, values, field, "a list of names")
    if isinstance(values, Collection):
        for name in values:
            must_be(str, name, field, "a list of names")


def must_be_text(value: object, longest: int, field: str) -> None:
    """Raise `InvalidInput` unless `value` is text that UTF-8 can store, of 1 to `longest` bytes."""
    must_be(str, value, field, "text")
    try:
        size = len(str(value).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(field, "must be text that UTF-8 can hold, without lone surrogates") from error
    if not 0 < size <= longest:
        raise InvalidInput(field, f"must be 1 to {longest:,} bytes, got {size:,}")


# Functions that callers hand in must be plain ones: their work is done when they return.
#
# Calling an `async def`, or a function that yields, runs none of it. The library does not await or iterate the
# result, so its work would be left out in silence: an event would count as handled that was never looked at.

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
    """Return the events of a decision; raise `InvalidInput` for None, a single event or another non-list."""
    must_be_done(result, field, may_yield=True)
    # Of NamedTuples and Pydantic's models one alone can be iterated, too: over its fields.
    is_one = isinstance(result, str | bytes) or hasattr(result, "_fields")
    if is_one or not isinstance(result, Sequence | AbstractSet | Iterator):
        remedy = "return [] where there is nothing to do" if result is None else "put it into a list"
        raise InvalidInput(field, f"must return a list of events, not {type(result).__name__}: {remedy}")
    return result
