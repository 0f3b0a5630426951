"""docs/guide/counters.md: its code runs, in the order it is written."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "counters.md").read_text("utf-8")


def test_the_guide_runs_from_top_to_bottom() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        exec(compile(block, "counters.md", "exec", dont_inherit=True), names)  # noqa: S102
