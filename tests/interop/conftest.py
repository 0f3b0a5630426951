"""The original JavaScript library and ours, on the same tables of DynamoDB Local."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from epochal.contrib.event_store_adapter.ids import AggregateTypes
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, JournalSite, KeyResolver
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.dynamo.interpreter import interpreter
from epochal.store.driver import Driver, Meter
from tests.interop.adapter import Adapter
from tests.support.tables import Tables

HERE = Path(__file__).resolve().parent
SHARDS = 8


@pytest.fixture(scope="session")
def adapter_package() -> Path:
    """The library from the npm registry, installed once, by the digests of its lock file."""
    if not (HERE / "node_modules" / ".package-lock.json").exists():
        npm = shutil.which("npm")
        assert npm is not None, "npm is missing: `make setup` says how to get it"
        subprocess.run([npm, "ci", "--ignore-scripts"], cwd=HERE, check=True, capture_output=True)
    return HERE


@pytest.fixture
def site(ddbl_tables: Tables) -> JournalSite:
    return JournalSite(
        journal=ddbl_tables.create(JOURNAL),
        snapshot=ddbl_tables.create(SNAPSHOT),
        keys=KeyResolver(shards=SHARDS),
        types=AggregateTypes(["user-account"]),
    )


@pytest.fixture
def ours(ddbl_tables: Tables, site: JournalSite) -> AggregateStore:
    driver = Driver(execute=interpreter(ddbl_tables.client), meter=Meter())
    return AggregateStore(driver=driver, site=site)


@pytest.fixture
def start_theirs(
    adapter_package: Path, ddbl_tables: Tables, site: JournalSite
) -> Iterator[Callable[[], Adapter]]:
    """Starts processes of the original library; they end with the test."""
    running: list[Adapter] = []

    def start() -> Adapter:
        running.append(
            Adapter(adapter_package, ddbl_tables.endpoint.url, site.journal, site.snapshot, SHARDS)
        )
        return running[-1]

    yield start
    for adapter in running:
        adapter.close()


@pytest.fixture
def theirs(start_theirs: Callable[[], Adapter]) -> Adapter:
    return start_theirs()
