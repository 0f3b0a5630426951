"""The examples run, print what they say they print, and are typed as strictly as the library."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples" / "deciders").glob("*.py") if path.stem != "__init__")


def promised(path: Path) -> str:
    """What stands under "Prints:" in an example's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text()), clean=False) or ""
    return textwrap.dedent(docstring.partition("Prints:\n")[2]).strip()


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_promises(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = promised(path)
    assert expected
    runpy.run_module(f"examples.deciders.{path.stem}", run_name="__main__")
    assert capsys.readouterr().out.strip() == expected


@pytest.mark.slow
def test_the_examples_are_strictly_typed() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(ROOT / "examples" / "deciders")]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.stdout == ""
    assert checked.returncode == 0
