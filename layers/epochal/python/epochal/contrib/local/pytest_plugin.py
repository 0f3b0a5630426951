"""A fixture for tests on what is deployed: `epochal_local` is a deployment of the project, one for the whole run.

Nothing is imported before a test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from epochal.contrib.local.deploy import LocalDeployment


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the project says what is deployed."""
    parser.addini(
        "epochal_app", "Command of the CDK application that `epochal_local` deploys; that of cdk.json"
    )


def pytest_configure(config: pytest.Config) -> None:
    """A mark for tests that `pytest -m deployed` chooses."""
    config.addinivalue_line("markers", "deployed: needs the project on the embedded AWS (Node)")


@pytest.fixture(scope="session")
def epochal_local(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalDeployment]:
    """The project, deployed to an embedded AWS: that of `epochal local up` where it runs, else one of this run.

    Processes that share the tests share it, so tests keep apart by the names of their streams.
    """
    from epochal.contrib.local.deploy import shared
    from epochal.contrib.local.programs import here

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which all of them have
    with shared(
        here(pytestconfig.rootpath), folder / "epochal", app=pytestconfig.getini("epochal_app")
    ) as found:
        yield found
