"""Seeds in ranges, each of which is a test: the first is what `make check` plays, the last are `make proof`'s."""

from __future__ import annotations

import pytest

PROOF = 4
"""How many times as many seeds as `make test` plays `make proof` plays."""


def ranges(size: int, count: int, *, check: bool = True) -> pytest.MarkDecorator:
    """Parametrises a test by `seeds`: `count` ranges of a size, and more of them for `make proof`.

    The first is part of `make check`, if so wished.
    """
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(
                range(n * size, (n + 1) * size), marks=_marks(n, count, check=check), id=f"{n * size}"
            )
            for n in range(PROOF * count)
        ],
    )


def _marks(number: int, count: int, *, check: bool) -> list[pytest.MarkDecorator]:
    if number == 0 and check:
        return [pytest.mark.slice]
    return [pytest.mark.proof] if number >= count else []
