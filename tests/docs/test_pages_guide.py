"""docs/guide/pages.md: its code runs, in the order it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "pages.md"
TEXT = GUIDE.read_text()


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the code of the guide leaves defined."""
    found: dict[str, Any] = {"__name__": __name__}
    for block in re.finditer(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        first = TEXT.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], str(GUIDE), "exec", dont_inherit=True), found)  # noqa: S102
    return found


def test_the_guide_to_pages_runs_from_top_to_bottom(names: dict[str, Any]) -> None:
    assert names["state"].version == 2
