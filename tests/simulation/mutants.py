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

    def add(self, found: str = "", *, dear: bool = False) -> Callable[[Mutant], Mutant]:
        """Register a mutant, how it is found out, and whether that takes more seeds than `make test` has time for."""

        def register(change: Mutant) -> Mutant:
            self[change.__name__] = change, found
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
            play_all(play, seeds)


def play_all(play: Callable[[int], object], seeds: int) -> None:
    """Plays each seed; raises at the first that fails."""
    for seed in range(seeds):
        play(seed)
