"""docs/guide/agents.md: its code runs, in the order it is written, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "agents.md"
TEXT = GUIDE.read_text("utf-8")


def test_the_guide_to_agents_runs_and_prints_what_it_says() -> None:
    names: dict[str, Any] = {"__name__": __name__}
    blocks = list(
        re.finditer(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", TEXT, re.MULTILINE | re.DOTALL)
    )
    assert len(blocks) == TEXT.count("```python")
    for block in blocks:
        first, printed = TEXT.count("\n", 0, block.start(1)), io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * first + block[1], str(GUIDE), "exec", dont_inherit=True), names)  # noqa: S102
        assert printed.getvalue() == (block[2] or "")
