"""docs/guide/aggregates.md: its code runs, in the order it is written, and its figures add up."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "aggregates.md"


def test_the_guide_to_aggregates_runs_from_top_to_bottom() -> None:
    text = GUIDE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 3
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        first = text.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], str(GUIDE), "exec", dont_inherit=True), names)  # noqa: S102


def test_the_table_of_costs_adds_up() -> None:
    rows = re.findall(
        r"^\| [^|]+ \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) \|$", GUIDE.read_text(), re.MULTILINE
    )
    assert [int(tables) + int(indexes) for tables, indexes, _, _ in rows] == [int(row[2]) for row in rows]
    assert len(rows) == 3
