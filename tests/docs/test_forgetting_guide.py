"""docs/guide/forgetting.md: its code runs, in the order it is written."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "forgetting.md"


def test_the_guide_to_forgetting_runs_from_top_to_bottom() -> None:
    text = GUIDE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) == 4
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        first = text.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], str(GUIDE), "exec", dont_inherit=True), names)  # noqa: S102
