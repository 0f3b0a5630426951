"""Seeds in ranges, each of which is a test: the first is what `make check` plays, the last are `make proof`'s."""

from __future__ import annotations

import pytest

PROOF = 4
"""How many times as many seeds as `make test` plays `make proof` plays."""


def ranges(size: int, count: int) -> pytest.MarkDecorator:
    """Parametrises a test by `seeds`: `count` ranges of a size, and more of them for `make proof`."""
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(range(n * size, (n + 1) * size), marks=_marks(n, count), id=f"{n * size}")
            for n in range(PROOF * count)
        ],
    )


def _marks(number: int, count: int) -> list[pytest.MarkDecorator]:
    if number == 0:
        return [pytest.mark.slice]
    return [pytest.mark.proof] if number >= count else []
