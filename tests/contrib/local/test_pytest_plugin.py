"""The mark of tests on what is deployed."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the plugins of whoever runs these tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_tests_may_be_marked_as_deployed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.deployed\ndef test_it(): ...\n")
    ran = pytester.runpytest_inprocess("-p", "epochal.pytest_plugin", "--strict-markers", "-m", "deployed")
    ran.assert_outcomes(passed=1)
