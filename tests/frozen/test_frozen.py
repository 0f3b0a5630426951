"""The HTTP API, and the requests of every operation with their costs and bytes, are what they were."""

from __future__ import annotations

import difflib

import pytest

from tests.frozen import requests
from tests.frozen.__main__ import FILES, KEPT

RENEW = "if that is meant, and no request, unit or byte got worse: python -m tests.frozen"


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_nothing_has_changed_that_others_depend_on(name: str) -> None:
    kept = (KEPT / f"{name}.txt").read_text().splitlines()
    today = "\n".join(FILES[name]()).strip().splitlines()
    changed = "\n".join(difflib.unified_diff(kept, today, "kept", "today", n=1, lineterm=""))
    assert not changed, f"{changed}\n\n{RENEW}"


def test_every_file_that_is_kept_is_looked_at() -> None:
    assert {path.stem for path in KEPT.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", [*requests.NATIVE, *requests.OTHERS])
def test_every_operation_that_is_written_down_asks_the_tables(name: str) -> None:
    """An operation that fails before its first request would freeze nothing."""
    lines = (KEPT / f"requests-{name}.txt").read_text().splitlines()
    assert "no request" not in lines
    assert sum(line.startswith("# ") for line in lines) > 10
