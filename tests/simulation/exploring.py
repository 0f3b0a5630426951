"""Visiting every state that a small world can get into, each once; with the way that led to one that must not be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

Steps = Callable[[S], Iterator[tuple[str, S]]]
"""What may happen in a state, each with the state that it leads to."""


def explore(first: S, steps: Steps[S], check: Callable[[S], None] = lambda _: None) -> int:
    """Visit every state; how many there are. A failed assertion is told with the way that led to it."""
    came_from: dict[S, tuple[S, str] | None] = {first: None}
    queue = [first]
    while queue:
        state = queue.pop()
        try:
            check(state)
            for what, following in steps(state):
                if following not in came_from:
                    came_from[following] = state, what
                    queue.append(following)
        except AssertionError as failure:
            told: list[str] = []
            before = came_from[state]
            while before is not None:
                state, what = before
                told.append(f"  {what}")
                before = came_from[state]
            raise AssertionError("\n".join([str(failure), *reversed(told)])) from failure
    return len(came_from)


def put(values: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """With another value in one place."""
    return (*values[:place], value, *values[place + 1 :])
