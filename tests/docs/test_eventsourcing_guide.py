"""docs/guide/eventsourcing.md: its code runs, and its table is of the cases that are run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from unittest import TestCase

import pytest
from eventsourcing.tests import application, persistence, projection

from tests.support.eventsourcing_cases import CASES

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "eventsourcing.md"
TEXT = GUIDE.read_text("utf-8")
ROWS = {
    name: [int(each) for each in figures.split("|")]
    for name, figures in re.findall(r"^\| `(\w+Case)` \|([\d |]+)\|$", TEXT, re.MULTILINE)
}
OF_CODECS = {"TranscoderTestCase"}
"""What a persistence module has no part in."""


def asked_by(case: type[TestCase]) -> set[str]:
    return {name for name in dir(case) if name.startswith(("test", "optional_test"))}


def test_the_guide_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    page = ModuleType("kennel_of_the_guide")  # the library looks up an aggregate's module by its name
    monkeypatch.setitem(sys.modules, page.__name__, page)
    for block in re.finditer(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        exec(compile(block[1], str(GUIDE), "exec", dont_inherit=True), vars(page))  # noqa: S102  the page is ours
    assert page.found.tricks == ["roll over"]


def test_the_table_has_every_case_that_the_library_ships_with_its_tests() -> None:
    shipped = {
        name: case
        for module in (application, persistence, projection)
        for name, case in vars(module).items()
        if isinstance(case, type) and issubclass(case, TestCase) and asked_by(case) and name not in OF_CODECS
    }
    assert {name: figures[0] for name, figures in ROWS.items()} == {
        name: len(asked_by(case)) for name, case in shipped.items()
    }
    assert all(tests == passed + refused and not failed for tests, passed, refused, failed in ROWS.values())


def test_what_it_says_to_pass_is_run_and_what_it_says_to_be_refused_is_not() -> None:
    run = {base.__name__ for case in CASES for base in case.__mro__ if base.__name__ in ROWS}
    assert run == {name for name, (_, passed, _, _) in ROWS.items() if passed}
