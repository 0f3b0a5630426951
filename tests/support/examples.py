"""How many examples a property is tried with, and how many seeds: fewer in `make test`, all in `make proof`."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import settings

CHECK: Final = 20
TEST: Final = 25
"""Where a test does not say how many; hypothesis has a hundred, which `make proof` tries."""


def examples(number: int) -> settings:
    """Return settings for a number of examples: a fifth of them in `make test`, the minimum in `make check`."""
    few = {"check": CHECK, "test": max(CHECK, number // 5)}
    return settings(max_examples=few.get(settings.get_current_profile_name(), number))


def seeds(number: int, few: int) -> pytest.MarkDecorator:
    """Parametrize a test with a number of seeds; those from `few` on only run in `make proof`."""
    every = [pytest.param(seed, marks=pytest.mark.proof if seed >= few else ()) for seed in range(number)]
    return pytest.mark.parametrize("seed", every)
