"""The guides' code runs, in the order it is written, and prints what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guide"


@pytest.mark.parametrize(("name", "least"), [("async", 4), ("deciders", 6), ("events", 6)])
def test_the_guide_runs_from_top_to_bottom(name: str, least: int, capsys: pytest.CaptureFixture[str]) -> None:
    guide = GUIDES / f"{name}.md"
    text = guide.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= least
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        first = text.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], str(guide), "exec", dont_inherit=True), names)  # noqa: S102
    printed = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == "".join(printed)
