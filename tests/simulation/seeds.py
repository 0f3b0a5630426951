"""Seeds in ranges, each of which is a test: `make check` plays the first, `make proof` the last too."""

from __future__ import annotations

from itertools import pairwise

import pytest

PROOF = 4
"""How many times as many seeds as `make test` plays `make proof` plays, where a test does not say it."""


def ranges(size: int, count: int, *, proof: int = PROOF, check: bool = True) -> pytest.MarkDecorator:
    """Parametrises a test by `seeds`: `count` ranges of a size, and `proof` times as many for `make proof`.

    The first fifth of the first is part of `make check`, if so wished.
    """
    bounds = [n * size for n in range(proof * count + 1)]
    if check:
        bounds.insert(1, size // 5)
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(range(start, stop), marks=_marks(start, size * count, check=check), id=f"{start}")
            for start, stop in pairwise(bounds)
        ],
    )


def _marks(start: int, proof: int, *, check: bool) -> list[pytest.MarkDecorator]:
    if start == 0 and check:
        return [pytest.mark.slice]
    return [pytest.mark.proof] if start >= proof else []
