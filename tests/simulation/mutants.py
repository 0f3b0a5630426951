"""Mutants: the library with one of its rules taken out, so that it shows whether the seeds find out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


class Mutants(dict[str, tuple[Mutant, str]]):
    """By name, each with what the message of its violation matches."""

    def __init__(self) -> None:
        super().__init__()
        self.dear = set[str]()
        self.begin = dict[str, int]()

    def add(self, found: str = "", *, dear: bool = False, begin: int = 0) -> Callable[[Mutant], Mutant]:
        """Register a mutant, how it is found out, and whether that takes more seeds than `make test` has time for.

        Seeds are played from `begin` on, which found it out when this was written, and then those before.
        """

        def register(change: Mutant) -> Mutant:
            self[change.__name__], self.begin[change.__name__] = (change, found), begin
            if dear:
                self.dear.add(change.__name__)
            return change

        return register

    def names(self) -> list[Any]:
        """What a test is parametrised with: every name, those that are dear for `make proof` alone."""
        return [pytest.param(name, marks=[pytest.mark.proof] if name in self.dear else []) for name in self]

    def find_out(self, name: str, patch: Patch, play: Callable[[int], object], seeds: int) -> None:
        """Fails unless one of the seeds finds the mutant out."""
        change, found = self[name]
        change(patch)
        with pytest.raises(AssertionError, match=rf"^seed \d+: .*({found})"):
            play_all(play, seeds, self.begin[name])


def play_all(play: Callable[[int], object], seeds: int, begin: int = 0) -> None:
    """Plays each seed, from one on and then those before; raises at the first that fails."""
    for seed in (*range(begin, seeds), *range(begin)):
        play(seed)
