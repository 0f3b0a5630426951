"""Fixtures and profiles of tests that need nothing: `tests/conftest.py` has them for all tests.

As a pytest plugin (`-p tests.support.fixtures`) it serves the tests of the core alone, in a tree that has no servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from epochal.store import queueing
from epochal.store.driver import POOL
from tests.support.awaited import pytest_pyfunc_call
from tests.support.examples import CHECK, TEST
from tests.support.inline import Inline
from tests.support.sockets import no_sockets

__all__ = ["pytest_pyfunc_call"]
"""A hook that is made elsewhere."""

TESTS: Final = Path(__file__).resolve().parent.parent
PURE: Final = tuple(
    TESTS / folder for folder in ("core", "surfaces", "contrib", "layouts", "public", "frozen", "project")
)
"""Folders whose tests open no sockets."""


def pytest_configure() -> None:
    """Register the profiles if this module is used as a plugin."""
    register_profiles()


def register_profiles() -> None:
    """Register how many examples hypothesis tries."""
    settings.register_profile("proof", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("check", settings.get_profile("proof"), max_examples=CHECK)
    settings.register_profile("test", settings.get_profile("proof"), max_examples=TEST)
    settings.load_profile("proof")  # where the command line names none; it is read after this


@pytest.fixture(autouse=True)
def pure_tests_open_no_sockets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent tests in the pure folders from opening sockets."""
    if any(map(request.path.is_relative_to, PURE)):
        no_sockets(monkeypatch)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run requests of a batch one after another, as starting threads takes longer than tables in memory."""
    pool = POOL.set(Inline)
    yield
    POOL.reset(pool)


@pytest.fixture
def no_queue_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a queue of callers is left behind; nobody in a queue is passed by within a minute."""
    monkeypatch.setattr(queueing, "STUCK_SECONDS", 60.0)
    queues: dict[object, object] = {}
    monkeypatch.setattr(queueing, "_QUEUES", queues)  # those of other tests may be left for good
    yield
    assert not queues, "a queue is left behind"
