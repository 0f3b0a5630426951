"""docs/guide/reactions.md: its code runs, in the order it is written, and its options are those there are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from epochal import reaction

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "reactions.md"


@pytest.mark.slow
def test_the_guide_to_reactions_runs_from_top_to_bottom(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 3
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        first = text.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], str(GUIDE), "exec", dont_inherit=True), names)  # noqa: S102
    engine = names["engine"]
    assert isinstance(engine, Engine)
    engine.dispose()


def test_the_arguments_described_are_the_arguments_there_are() -> None:
    described = re.findall(r"^\| `([a-z_]+)` \|", GUIDE.read_text().partition("\n### ")[0], re.MULTILINE)
    assert described == list(inspect.signature(reaction).parameters)
