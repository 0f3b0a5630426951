"""docs/guide/testing.md: the tests that it shows pass, and its fixtures are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from epochal import extensions, pytest_plugin

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "testing.md").read_text("utf-8")


@pytest.mark.slow
def test_the_tests_that_it_shows_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    files = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert TEXT.count("```python") == len(files) == 6
    for name, code in files:
        (pytester.path / name).write_text(code, "utf-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.runpytest("-p", "epochal.pytest_plugin", "-W", "error").assert_outcomes(passed=7)


def test_its_fixtures_are_those_that_there_are() -> None:
    listed = re.findall(r"^\| `(epochal_\w+)` \|", TEXT, re.MULTILINE)
    modules = [pytest_plugin, *extensions.parts("fixtures")]
    names = {name for module in modules for name in vars(module) if name.startswith("epochal_")}
    assert sorted(listed) == sorted(names)
