"""Seeds in ranges, each a test: `make test` plays the first range, `make check` a part of it, `make proof` all."""

from __future__ import annotations

from itertools import pairwise

import pytest


def ranges(size: int, count: int, *, check: bool = True) -> pytest.MarkDecorator:
    """Parametrises a test by `seeds`: `count` ranges of a size, all but the first for `make proof` alone.

    The first tenth of the first is part of `make check`, if so wished.
    """
    bounds = [n * size for n in range(count + 1)]
    if check:
        bounds.insert(1, size // 10)
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(range(start, stop), marks=_marks(start, size, check=check), id=f"{start}")
            for start, stop in pairwise(bounds)
        ],
    )


def _marks(start: int, size: int, *, check: bool) -> list[pytest.MarkDecorator]:
    if start == 0 and check:
        return [pytest.mark.slice]
    return [pytest.mark.proof] if start >= size else []
