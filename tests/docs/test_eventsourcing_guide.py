"""docs/guide/eventsourcing.md: its code runs, and what it says of the library's own tests is so."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from unittest import TestCase

import pytest
from eventsourcing.dcb import tests
from eventsourcing.tests import application, persistence, projection

from tests.support.eventsourcing_cases import CASES

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "eventsourcing.md"
TEXT = GUIDE.read_text("utf-8")
CASES_SHIPPED = {
    "AggregateRecorderTestCase": 2,
    "ApplicationRecorderTestCase": 5,
    "NonInterleavingNotificationIDsBaseCase": 1,
    "TrackingRecorderTestCase": 2,
    "ProcessRecorderTestCase": 4,
    "InfrastructureFactoryTestCase": 9,
    "EventCountersViewTestCase": 1,
    "AggregateEventCountersProjectionTestCase": 2,
    "EventSourcedProjectionTestCase": 1,
    "ExampleApplicationTestCase": 1,
    "ApplicationTestCase": 12,
    "TaggedDecisionCountersProjectionTestCase": 2,
    "DCBRecorderTestCase": 2,
}
"""Test cases of the pinned version, and how many tests each has."""

OF_CODECS = {"TranscoderTestCase"}
"""What a persistence module has no part in."""


def asked_by(case: type[TestCase]) -> set[str]:
    return {name for name in dir(case) if name.startswith(("test", "optional_test", "_test"))}


def test_the_guide_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    page = ModuleType("kennel_of_the_guide")  # the library looks up an aggregate's module by its name
    monkeypatch.setitem(sys.modules, page.__name__, page)
    for block in re.finditer(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        exec(compile(block[1], str(GUIDE), "exec", dont_inherit=True), vars(page))  # noqa: S102  the page is ours
    assert page.found.tricks == ["roll over"]


def test_every_case_that_the_library_ships_is_known_with_its_tests() -> None:
    shipped = {
        name: case
        for module in (application, persistence, projection, tests)
        for name, case in vars(module).items()
        if isinstance(case, type) and issubclass(case, TestCase) and asked_by(case) and name not in OF_CODECS
    }
    assert {name: len(asked_by(case)) for name, case in shipped.items()} == CASES_SHIPPED


def test_what_the_guide_says_to_pass_is_run() -> None:
    run = {base.__name__ for case in CASES for base in case.__mro__ if base.__name__ in CASES_SHIPPED}
    assert run == CASES_SHIPPED.keys()
    assert "all pass" in TEXT
