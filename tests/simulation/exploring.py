"""Visiting every state that a small world can get into, each once; with the way that led to one that must not be."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import pytest

from epochal.plan.ops import Refusal, Reply

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


class Past(NamedTuple):
    """A process, and the replies it has been sent, by their numbers; `lost` if its request may have been applied."""

    who: int
    replies: tuple[int, ...] = ()
    lost: bool = False


class Numbering(ABC):
    """An explorer of processes that are generators: it tells replies, and all else that recurs, by their numbers."""

    __slots__ = ()
    replies: list[Reply]
    numbers: dict[str, int]

    @abstractmethod
    def _same(self, past: Past) -> Past:
        """The first past found that led to the same state of the generator, whatever it was told before."""

    def _told(self, past: Past, number: int) -> Past:
        reply = self.replies[number]
        if past.lost and isinstance(reply, Refusal):
            marked = replace(reply, ambiguous=True)
            number = self._number(repr(marked), self.replies, marked)
        return self._same(past._replace(replies=(*past.replies, number), lost=False))

    def _number(self, key: str, values: list[T], value: T) -> int:
        digest = hashlib.sha256(f"{id(values)} {key}".encode()).hexdigest()
        if digest not in self.numbers:
            self.numbers[digest] = len(values)
            values.append(value)
        return self.numbers[digest]
