"""The tutorial, done: its project is written, what it quotes is there, what it adds is added, and the tests pass."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guide" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n# (in|to) (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Terminal().documents("new", "shop")
    return tmp_path / "shop"


def last_line(shop: Path) -> str:
    """The last line that pytest says in the project."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "epochal.pytest_plugin", "-W", "error"],
        cwd=shop,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout.strip().splitlines()[-1]


def name_of(node: ast.stmt) -> str | None:
    """What a statement of a module defines, or the module that it imports from."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.ImportFrom(module=module):
            return f"from {module}"
    return None


def first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min((each.lineno for each in decorators), default=node.lineno)


def replaced(source: str, new: str) -> str:
    """A module in which statements take the place of those of their names; others stand before the next that does."""
    ours, theirs = source.splitlines(), new.splitlines()
    places = {name: node for node in ast.parse(source).body if (name := name_of(node)) is not None}
    at, edits = len(ours), []
    for node in reversed(ast.parse(new).body):
        lines = theirs[first_line(node) - 1 : node.end_lineno]
        old = places.get(name_of(node) or "")
        if old is None:
            edits.append((at, at, [*lines, "", ""]))
        else:
            at = first_line(old) - 1
            edits.append((at, old.end_lineno or at, lines))
    for start, end, lines in edits:
        ours[start:end] = lines
    return "\n".join(ours) + "\n"


def test_what_it_shows_of_the_project_is_in_the_project(shop: Path) -> None:
    shown = [(file, code) for kind, file, code in BLOCKS if kind == "in"]
    assert len(shown) == 4
    for file, code in shown:
        assert code in (shop / file).read_text(), f"{file} has not\n{code}"


def test_it_installs_what_its_commands_need_as_other_pages_and_the_project_do(shop: Path) -> None:
    pages = ["README.md", "docs/guide/local.md", "docs/guide/tutorial.md"]
    places = [*(ROOT / page for page in pages), shop / "requirements.txt"]
    lists = {extras for place in places for extras in re.findall(r"\[(cdk,.*pytest)\]", place.read_text())}
    assert lists == {"cdk,cli,console,lambda,local,pytest"}
    assert "`epochal console`" in TEXT


@pytest.mark.slow
def test_what_it_adds_makes_the_tests_pass_that_it_adds_first(shop: Path) -> None:
    assert "6 passed" in last_line(shop)
    added = [(file, code) for kind, file, code in BLOCKS if kind == "to"]
    *added, (later, its_test), (process, its_code) = added
    assert [file for file, _ in added] == ["tests/test_orders.py", "service/orders.py", "service/board.py"]
    (first, test), *rest = added
    path = shop / first
    path.write_text(path.read_text() + "\n\n" + test)
    assert "error" in last_line(shop)
    for file, code in rest:
        path = shop / file
        path.write_text(replaced(path.read_text(), code))
    assert "7 passed" in last_line(shop)
    (shop / later).write_text(its_test)
    assert "error" in last_line(shop)
    (shop / process).write_text(its_code)
    assert "8 passed" in last_line(shop)
