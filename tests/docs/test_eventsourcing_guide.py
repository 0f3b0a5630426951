"""docs/guide/eventsourcing.md: its code runs, and what it says of the library's own tests is so."""

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
CASES_SHIPPED = {
    "AggregateRecorderTestCase": (2, 2, 0),
    "ApplicationRecorderTestCase": (5, 5, 0),
    "NonInterleavingNotificationIDsBaseCase": (1, 1, 0),
    "TrackingRecorderTestCase": (2, 2, 0),
    "ProcessRecorderTestCase": (4, 4, 0),
    "InfrastructureFactoryTestCase": (9, 9, 0),
    "EventCountersViewTestCase": (1, 1, 0),
    "AggregateEventCountersProjectionTestCase": (2, 2, 0),
    "EventSourcedProjectionTestCase": (1, 1, 0),
    "ExampleApplicationTestCase": (1, 1, 0),
    "ApplicationTestCase": (12, 12, 0),
    "TaggedDecisionCountersProjectionTestCase": (2, 0, 2),
}
"""Test cases of the pinned version: how many tests each has, how many pass, how many are refused."""

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


def test_every_case_that_the_library_ships_is_known_with_its_tests() -> None:
    shipped = {
        name: case
        for module in (application, persistence, projection)
        for name, case in vars(module).items()
        if isinstance(case, type) and issubclass(case, TestCase) and asked_by(case) and name not in OF_CODECS
    }
    assert {name: tests for name, (tests, _, _) in CASES_SHIPPED.items()} == {
        name: len(asked_by(case)) for name, case in shipped.items()
    }
    assert all(tests == passed + refused for tests, passed, refused in CASES_SHIPPED.values())


def test_what_the_guide_says_to_pass_is_run_and_what_it_says_to_be_refused_is_not() -> None:
    run = {base.__name__ for case in CASES for base in case.__mro__ if base.__name__ in CASES_SHIPPED}
    assert run == {name for name, (_, passed, _) in CASES_SHIPPED.items() if passed}
    (refused,) = CASES_SHIPPED.keys() - run
    assert f"all pass but `{refused}`" in TEXT
