"""Fixtures for every kind of test, and what holds for all of them.

- A folder tells what its tests need (`tests/support/kinds.py`), and each test is marked with it.
- Nothing reaches a real account: credentials, region and configuration files are made up before anything is imported;
  but for `make contract PLACE=aws`, which asks first.
- Tests of `core`, `surfaces`, `contrib`, `layouts`, `public`, `frozen` and `project` open no sockets.
- DynamoDB Local, the embedded AWS and its deployment start once per process, when the first test asks for them, and
  stop with it. A test is marked by what it asks for, so `-m "not deploy"` is enough to leave out what needs Node.
- Where several processes share the tests (`pytest -n 2`), a file stays in one of them, and so do folders that share
  what is dear to set up (`tests/support/sharing.py`). What is dear begins first, so that the processes end together.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from epochal.contrib.local import deploy, ministack, processes, remembered_deployment
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import KEY, Endpoint
from epochal.contrib.local.programs import Places
from epochal.dynamo import clients
from tests.support import contract_run, dynamodb_local
from tests.support import postgres as postgres_server
from tests.support.awaited import pytest_pyfunc_call
from tests.support.fixtures import no_queue_stays, one_thread, pure_tests_open_no_sockets, register_profiles
from tests.support.ids import refuse_ids_that_differ
from tests.support.kinds import KINDS, mark_by_folder
from tests.support.postgres import Postgres
from tests.support.proven import refuse_what_nobody_runs
from tests.support.sharing import ByGroup, from_the_last, turn
from tests.support.tables import Tables

ROOT = Path(__file__).resolve().parent.parent

__all__ = ["no_queue_stays", "one_thread", "pure_tests_open_no_sockets", "pytest_pyfunc_call"]
"""Fixtures and a hook that are made elsewhere."""

SESSION = clients._session  # noqa: SLF001  nobody else forgets it, and tests put others in its place
MARKS = {
    "ddbl": ("ddbl",),
    "ministack_server": ("embedded",),
    "deployment": ("deploy",),
    "postgres": ("postgres",),
}
"""What a test that uses a fixture is marked with."""


def _hide_the_users_settings() -> None:
    """At once: the conftest of a folder that the command line names may start CDK's engine, which takes them as they
    are then.
    """
    if contract_run.REGION:  # `make contract PLACE=aws`: the caller's own account is what is meant
        os.environ["AWS_DEFAULT_REGION"] = contract_run.REGION
        return
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
        # CDK's own look at templates takes as long as making them; `test_synthesis` has it, as every deployment does.
        CDK_VALIDATION="false",
        # CDK still runs on Node 20, past its end of life, and would say so before every run.
        JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION="20",
    )


_hide_the_users_settings()


def pytest_configure(config: pytest.Config) -> None:
    """Tell the kinds of tests and how much is tried.

    A shell that starts the tests in the background has them ignore Ctrl-C, and what they start inherits that.
    """
    register_profiles()
    for kind in KINDS:
        config.addinivalue_line("markers", f"{kind.name}: needs {kind.about}")
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is collected goes before the end, so looking for garbage among it is a fifth of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Go through a folder from its first file on, or from its last: in which order tests run, `turn` says."""
    report = yield
    if isinstance(collector, pytest.Directory) and from_the_last(collector.config):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it needs, and begin with what is dear."""
    for item in items:
        refuse_ids_that_differ(item)
        refuse_what_nobody_runs(item)
        for fixture in getattr(item, "fixturenames", ()):
            for mark in MARKS.get(fixture, ()):
                item.add_marker(mark)
        mark_by_folder(item)
    items.sort(key=lambda item: turn(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Which process runs what, where several share the tests."""
    return ByGroup(config, log)


@pytest.fixture(autouse=True)
def _no_client_keeps_the_account_of_a_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One session makes all clients of a process, and keeps the credentials that it met first."""
    yield
    # Asked before the patch is undone, which is why the patch is an argument.
    if os.environ.get("AWS_ACCESS_KEY_ID") != KEY and not contract_run.REGION:
        SESSION.cache_clear()


@pytest.fixture(scope="session")
def places() -> Places:
    """This checkout."""
    return Places(ROOT)


@pytest.fixture(scope="session")
def ddbl(places: Places) -> Iterator[Endpoint]:
    """DynamoDB Local, shared by the whole session: tests keep apart by the names of their tables."""
    if (given := contract_run.endpoint()) is not None:
        yield given
        return
    server = dynamodb_local.start(places)
    yield Endpoint(url=server.url)
    processes.stop(server)


@pytest.fixture
def ddbl_tables(ddbl: Endpoint) -> Iterator[Tables]:
    """Fresh tables on DynamoDB Local, gone after the test."""
    with Tables(ddbl) as tables:
        yield tables


@pytest.fixture(scope="session")
def postgres(places: Places) -> Iterator[Postgres]:
    """A PostgreSQL, shared by the whole session: tests keep apart by their databases."""
    server = postgres_server.start(places)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def ministack_server(places: Places) -> Iterator[processes.Server]:
    """The embedded AWS, with IAM enforced."""
    server = ministack.start(places)
    yield server
    processes.stop(server)


@pytest.fixture(scope="session")
def embedded(ministack_server: processes.Server) -> Endpoint:
    """How to reach the embedded AWS."""
    return ministack.endpoint(ministack_server)


@pytest.fixture
def embedded_tables(embedded: Endpoint) -> Iterator[Tables]:
    """Fresh tables on the embedded AWS, gone after the test."""
    with Tables(embedded) as tables:
        yield tables


@pytest.fixture(scope="session")
def deployment(places: Places, ministack_server: processes.Server) -> LocalDeployment:
    """This checkout, deployed to the embedded AWS: shared, so tests keep apart by the names of their streams.

    The demo's tests are the first, and deploy it as the demo does.
    """
    there = remembered_deployment.remembered(ministack_server)
    if there is None:
        return deploy.deploy(places, ministack_server)
    stores = deploy.stores_in(there.stacks, ministack_server.url)
    return LocalDeployment(endpoint=ministack.endpoint(ministack_server, there.home), stores=stores)
