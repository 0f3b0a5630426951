"""docs/guide/cli.md: its examples, run in their order on one store, print what it says; its options exist."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from epochal.cli import main as command_line
from epochal.cli.main import epochal
from epochal.cli.target import TableSize
from tests.docs.console import examples
from tests.support.terminal import Terminal
from tests.surfaces.cli.test_main import LEAVES

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "cli.md"

SIZES = [
    TableSize(name="epochal-dev-tips", items=1, bytes=384),
    TableSize(name="epochal-dev-index", items=2, bytes=571),
]


def test_the_guides_examples_print_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    store = replace(terminal.store, sizes=lambda: SIZES)
    monkeypatch.setattr(command_line, "open_store", lambda _: store)
    monkeypatch.chdir(GUIDE.parents[2])
    monkeypatch.setattr(sys, "path", [*sys.path])
    listed = list(examples(GUIDE))
    assert len(listed) > 8
    for example in listed:
        shown = io.StringIO()
        with (
            contextlib.redirect_stdout(shown),
            contextlib.redirect_stderr(shown),
            contextlib.suppress(SystemExit),
        ):
            command_line.main(example.arguments)
        terminal.index()
        assert example.printed(shown.getvalue()), f"{example.command} prints\n{shown.getvalue()}"


def test_the_guide_names_no_option_that_no_command_has() -> None:
    parameters = [each for _, command in LEAVES for each in command.params]
    options = {name for each in parameters for name in (*each.opts, *each.secondary_opts)}
    prose = re.sub(r"^```.*?^```$", "", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = {
        name for code in re.findall(r"`([^`]+)`", prose) for name in re.findall(r"(?<!\S)--[\w-]+", code)
    }
    assert len(named) > 30
    assert named <= options | STORE_OPTIONS | {"--help"}


STORE_OPTIONS = {name for parameter in epochal.params for name in parameter.opts}
"""Those that stand before a command."""
