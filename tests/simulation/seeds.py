"""Seeds in ranges, each a test: `make test` plays half of the first, `make check` a part of that, `make proof` all."""

from __future__ import annotations

from itertools import pairwise

import pytest


def ranges(size: int, count: int, *, check: bool = True) -> pytest.MarkDecorator:
    """Parametrises a test by `seeds`: `count` ranges of a size, of which half of the first is not the proof's alone.

    The first tenth of the first is part of `make check`, if so wished; else the first is whole.
    """
    half = size // 2 if check else size
    bounds = [n * size for n in range(count + 1)]
    if check:
        bounds[1:1] = [size // 10, half]
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(range(start, stop), marks=_marks(start, half, check=check), id=f"{start}")
            for start, stop in pairwise(bounds)
        ],
    )


def _marks(start: int, half: int, *, check: bool) -> list[pytest.MarkDecorator]:
    if start == 0 and check:
        return [pytest.mark.slice]
    return [pytest.mark.proof] if start >= half else []
