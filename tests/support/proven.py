"""A test that is left to `make proof` is in a file that `make proof` runs: elsewhere it would be run by nobody."""

from __future__ import annotations

from functools import cache

import pytest

from tests.proof import BESIDES, GUARANTEES, ROOT, promises


@cache
def proven() -> frozenset[str]:
    """The files that `make proof` runs, relative to the checkout."""
    return frozenset(path for each in (*promises(GUARANTEES.read_text()), *BESIDES) for path in each.tests)


def refuse_what_nobody_runs(item: pytest.Item) -> None:
    """Raises `pytest.UsageError` where a test is marked `proof`, in a file that no row of the proof names."""
    if item.get_closest_marker("proof") and str(item.path.relative_to(ROOT)) not in proven():
        raise pytest.UsageError(
            f"{item.nodeid} is left to `make proof`, which does not run its file: add it to a promise's tests in"
            " docs/reference/guarantees.md, or to REST in tests/proof.py"
        )
