"""docs/guide/sql.md and the notebook beside it: commands print what the page says, and the cells run."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from epochal import Event
from epochal.cli import main as command_line
from tests.docs.console import examples
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide" / "sql.md"
NOTEBOOK = ROOT / "examples" / "notebook" / "events.ipynb"


@pytest.fixture
def carts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    terminal = Terminal()
    for number in range(3):
        opened = Event(type="Opened", timestamp="2026-01-02T03:00:00Z")
        paid = Event(type="Paid", data=b'{"total":%d}' % (10 + number), timestamp="2026-01-02T03:05:00Z")
        terminal.streams.append(f"Cart-{number}", [opened, paid])
    terminal.streams.append("Order-1", [Event(type="Sent"), Event(type="Delivered")])
    terminal.index()
    monkeypatch.setattr(command_line, "open_store", lambda _: terminal.store)
    monkeypatch.chdir(tmp_path)
    return terminal


def test_the_guide_to_sql_prints_what_it_says(carts: Terminal) -> None:
    listed = list(examples(GUIDE))
    assert len(listed) == 5
    for example in listed:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            command_line.main(example.arguments)
        assert example.printed(shown.getvalue()), f"{example.command} prints\n{shown.getvalue()}"


@pytest.mark.slow
def test_the_cells_of_the_notebook_run_in_their_order(carts: Terminal) -> None:
    carts.lines("export", "carts", "--category", "Cart")
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": __name__}
    shown = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            *before, last = re.split(r"\n(?=\S)(?![)\]}])", "".join(cell["source"]))
            where = f"{NOTEBOOK}#{number}"
            exec(compile("\n".join(before), where, "exec", dont_inherit=True), names)  # noqa: S102
            try:
                value = compile(last, where, "eval", dont_inherit=True)
            except SyntaxError:
                exec(compile(last, where, "exec", dont_inherit=True), names)  # noqa: S102
            else:
                shown.append(eval(value, names))  # noqa: S307
    totals, paid, open_for = shown
    assert [float(each) for each in totals["total"]] == [10, 11, 12]
    assert paid["total"].to_list() == [10, 11, 12]
    assert {each.total_seconds() for each in open_for} == {300}
