"""CONTRIBUTING.md: its examples run, and what it names is there."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from epochal import plugins

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ADDED = [name for name in SECTIONS if name.startswith("Add a")]


def examples(section: str) -> list[str]:
    """Its blocks of Python; those within a list are indented."""
    blocks = re.findall(r"^( *)```python\n(.*?)^\1```$", SECTIONS[section], re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(code) for _, code in blocks]


def test_it_tells_how_to_add_a_setting_an_operation_a_layout_and_a_promise() -> None:
    words = " ".join(ADDED)
    assert [word for word in ("setting", "operation", "layout", "promise") if word not in words] == []


@pytest.mark.parametrize("section", ADDED)
def test_its_examples_run_and_claim_something(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "LAYOUTS", plugins.LAYOUTS)  # the page registers one of its own
    page = ModuleType("contributing")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    assert examples(section)
    for code in examples(section):
        assert "assert " in code
        exec(compile(code, f"CONTRIBUTING.md, {section}", "exec"), vars(page))  # noqa: S102  the page is ours


def test_the_make_targets_in_it_exist() -> None:
    named = set(re.findall(r"`make (\w+)`", PAGE))
    there = set(re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {"test", "proof"} <= named <= there


def test_the_files_and_folders_that_it_names_exist() -> None:
    named = re.findall(r"`((?:layers|stacks|lambdas|tests|docs|bench)/[\w./-]+)`", PAGE)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_folder_of_tests_is_in_it() -> None:
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    listed = SECTIONS["Where things are"].partition("Folders of `tests`")[2]
    assert folders == set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^- (.*?):", listed, re.MULTILINE))))
