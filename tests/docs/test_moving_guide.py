"""docs/guide/moving.md: its commands print what it says, and its code runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from epochal import Event
from epochal.cli.main import epochal
from tests.docs.console import examples
from tests.support.terminal import Terminal

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "moving.md"
TEXT = GUIDE.read_text()


def test_the_guides_commands_print_what_it_says() -> None:
    terminal = Terminal(named="tips", layouts=("tips",))
    store = terminal.store
    for stream, count in (("Cart-1", 3), ("Order-1", 2)):
        terminal.streams.append(stream, [Event(type="Opened")] * count)
    for example in (listed := list(examples(GUIDE))):
        terminal.index()
        printed = CliRunner().invoke(epochal, example.arguments, obj=lambda: store).output
        assert example.printed(printed), f"{example.command} prints\n{printed}"
    assert len(listed) == 6


def test_the_guides_code_runs() -> None:
    names: dict[str, Any] = {"__name__": __name__}
    for block in re.finditer(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        first = TEXT.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], str(GUIDE), "exec", dont_inherit=True), names)  # noqa: S102
    assert names["told"] == ["Opened", "Paid"]
