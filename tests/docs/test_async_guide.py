"""docs/guide/async.md, events.md and tracing.md: their code runs, in the order it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"


@pytest.mark.parametrize(("page", "least"), [("async.md", 6), ("events.md", 7), ("tracing.md", 3)])
def test_the_guide_runs_from_top_to_bottom(page: str, least: int) -> None:
    text = (GUIDE / page).read_text("utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= least
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        first = text.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], page, "exec", dont_inherit=True), names)  # noqa: S102
