"""Ways of doing the same, taken by turns.

DynamoDB Local and the machine are slow at one time and fast at another, so what counts is the middle of the ratios of
neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Generic, Protocol, TypeVar

ROUNDS = 3


class Timed(Protocol):
    """Figures of a way of doing something, of which the time is compared."""

    @property
    def seconds(self) -> float:
        """Wall-clock seconds."""


T = TypeVar("T", bound=Timed)


@dataclass(frozen=True, kw_only=True)
class Compared(Generic[T]):
    """Figures of each way, in several rounds."""

    rounds: tuple[Mapping[str, T], ...]

    def took(self, way: str) -> T:
        """Return a way's round with the median time."""
        return sorted((round_[way] for round_ in self.rounds), key=lambda took: took.seconds)[
            len(self.rounds) // 2
        ]

    def ratio(self, way: str, beside: str) -> float:
        """Return the speed of a way relative to another: the median of the rounds."""
        return median(round_[beside].seconds / round_[way].seconds for round_ in self.rounds)

    def best(self, way: str) -> T:
        """Return a way's fastest round, which other processes disturbed least."""
        return min((round_[way] for round_ in self.rounds), key=lambda took: took.seconds)

    def best_ratio(self, way: str, beside: str) -> float:
        """Return the speed of a way relative to another, each in its fastest round."""
        return self.best(beside).seconds / self.best(way).seconds


def by_turns(ways: Mapping[str, Callable[[], T]], rounds: int = ROUNDS) -> Compared[T]:
    """Run every way once per round."""
    return Compared(rounds=tuple({name: way() for name, way in ways.items()} for _ in range(rounds)))
