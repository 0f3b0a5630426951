"""Visiting every state that a small world can get into, each once; with the way that led to one that must not be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import pytest

S = TypeVar("S")
T = TypeVar("T")

Steps = Callable[[S], Iterator[tuple[str, S]]]
"""What may happen in a state, each with the state that it leads to."""


def each_of(worlds: Collection[Any], *, dear: Collection[Any]) -> pytest.MarkDecorator:
    """Parametrises a test by `world`; the dear ones, of many thousand states, are of `make proof` alone."""
    assert set(dear) < set(worlds)
    return pytest.mark.parametrize(
        "world",
        [pytest.param(each, marks=[pytest.mark.proof] if each in dear else []) for each in worlds],
        ids=lambda world: world.__name__,
    )


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
