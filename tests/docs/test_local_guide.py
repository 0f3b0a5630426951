"""docs/guide/local.md: its tests pass, its commands and fixtures are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from epochal import extensions, pytest_plugin
from epochal.cli.main import epochal
from tests.docs.shell import commands

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "local.md"
TEXT = GUIDE.read_text("utf-8")


DEPLOYED = """
import pytest
from epochal.testing.stores import memory_streams


class InMemory:
    def open(self):
        return self

    streams = memory_streams()


@pytest.fixture
def epochal_local():
    return InMemory()
"""


def test_the_tests_that_it_shows_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = re.findall(r"^```python\n(# tests/.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    pytester.makeconftest(DEPLOYED)
    pytester.makepyfile(test_departures=first, test_deployed=second)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.runpytest_inprocess("-p", "epochal.pytest_plugin").assert_outcomes(passed=2)


def test_its_commands_are_those_there_are() -> None:
    told = [words[1:] for words in commands(GUIDE) if words[0] == "epochal"]
    assert len(told) > 4
    for words in told:
        command: click.Command = epochal
        rest = iter(words)
        while isinstance(command, click.Group):
            command = command.commands[next(rest)]
        with command.make_context(command.name, list(rest)):
            pass


def test_the_fixtures_that_it_lists_are_those_there_are() -> None:
    listed = re.findall(r"^- `(epochal_\w+)`:", TEXT, re.MULTILINE)
    modules = [pytest_plugin, *extensions.parts("fixtures")]
    there = {name for module in modules for name in vars(module) if name.startswith("epochal_")}
    assert sorted(listed) == sorted(there)
