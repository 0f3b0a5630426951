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
    """Add the option with which a project names the application to deploy."""
    parser.addini(
        "epochal_app",
        "Command of the CDK application that `epochal_local` deploys; by default the one in cdk.json",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of tests that `pytest -m deployed` selects."""
    config.addinivalue_line("markers", "deployed: needs the project on the embedded AWS (Node)")


@pytest.fixture(scope="session")
def epochal_local(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalDeployment]:
    """Yield the project's deployment on an embedded AWS, which the whole test run shares.

    It is the deployment of `epochal local up` where that runs, else one of this run. Processes of the run share it, so
    tests must use streams of different names.
    """
    from epochal.contrib.local.deploy import shared
    from epochal.contrib.local.programs import here

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which all workers share
    with shared(
        here(pytestconfig.rootpath), folder / "epochal", app=pytestconfig.getini("epochal_app")
    ) as deployment:
        yield deployment
