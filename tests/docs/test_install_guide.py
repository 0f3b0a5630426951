"""docs/guide/install.md: its example runs, and it describes every extra."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guide" / "install.md").read_text("utf-8")


def test_its_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    exec(compile(code, "install.md", "exec", dont_inherit=True), {"__name__": __name__})  # noqa: S102
    output = re.findall(r"^```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[-1]
    assert capsys.readouterr().out == output


def test_it_describes_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", TEXT, re.MULTILINE)
    described = {extra for row in rows for extra in re.findall(r"\w+", row)}
    assert described == project["optional-dependencies"].keys()
    assert project["requires-python"] == ">=3.11"
