"""docs/guide/local.md: its test passes, and its fixtures are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from epochal import pytest_plugin

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "local.md"
TEXT = GUIDE.read_text("utf-8")


def test_the_test_that_it_shows_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = re.findall(r"^```python\n(# tests/.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    pytester.makepyfile(shown)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.runpytest_inprocess("-p", "epochal.pytest_plugin").assert_outcomes(passed=1)


def test_the_fixtures_that_it_lists_are_those_there_are() -> None:
    listed = re.findall(r"^\| `(epochal_\w+)` \|", TEXT, re.MULTILINE)
    assert sorted(listed) == sorted(name for name in vars(pytest_plugin) if name.startswith("epochal_"))
