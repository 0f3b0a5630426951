"""Mutants: the library with one of its rules taken out, so that it shows whether the seeds find out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


class Mutants(dict[str, tuple[Mutant, str]]):
    """By name, each with what the message of its violation matches."""

    def add(self, found: str = "") -> Callable[[Mutant], Mutant]:
        """Register a mutant, and how it is found out."""

        def register(change: Mutant) -> Mutant:
            self[change.__name__] = change, found
            return change

        return register

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
