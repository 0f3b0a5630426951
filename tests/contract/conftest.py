"""The three stores that keep the one contract: memory, AWS's DynamoDB Local, and the embedded AWS.

The first of the two servers is asked by the light carrier, the second by boto3's client.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from inspect import signature
from itertools import count
from typing import TYPE_CHECKING

import pytest

from epochal.aio.bridge import run
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.interpreter import carrier_interpreter, interpreter
from epochal.store.tagged import TaggedStore
from epochal.testing.memory import MemoryTables
from tests.contract.places import Looped, Place
from tests.contract.tagged import Opens, opens
from tests.support.contract_run import PREFIX, URL
from tests.support.tables import light, make

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TABLE = f"{PREFIX}contract-tips-{uuid.uuid4().hex[:8]}"
"""One name on all stores, and none that another process takes where they share a store."""

OF_STAND_INS = {
    "cared": "reads the stream of a table as soon as it is written to",
    "deployed": "likewise",
    "pipeline": "likewise",
    "source": "likewise",
    "streams_client": "likewise",
    "ministack_server": "is about the embedded AWS",
}
"""Fixtures of tests that `make contract` leaves out, and why."""

_partitions = count()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only stand-ins offer, in a run of `make contract`."""
    if not PREFIX:
        return
    # DynamoDB Local reckons transactions wrongly, which the embedded AWS is asked about.
    of = {*OF_STAND_INS, *({"on_embedded"} if URL else ())}
    left_out = [item for item in items if of & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test in the event loop of its place, where it has one."""
    place = pyfuncitem.funcargs.get("place")
    if not isinstance(place, Looped):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in signature(pyfuncitem.obj).parameters}
    place.runner.run(run(pyfuncitem.obj, **given))
    return True


@pytest.fixture(scope="session")
def local_place(ddbl: Endpoint) -> Iterator[Place]:
    carrier, table = light(ddbl), make(ddbl.client("dynamodb"), TIPS, TABLE)
    yield Place(store="ddbl", execute=carrier_interpreter(carrier), table=table, partition="")
    carrier.close()


@pytest.fixture(scope="session")
def embedded_place(request: pytest.FixtureRequest) -> Place:
    """The embedded AWS by boto3's client; in a run of `make contract`, that DynamoDB by boto3's client."""
    endpoint: Endpoint = request.getfixturevalue("ddbl" if PREFIX else "embedded")
    client: DynamoDBClient = endpoint.client("dynamodb")
    if PREFIX:
        made: Place = request.getfixturevalue("local_place")
        return replace(made, execute=interpreter(client))
    table = make(client, TIPS, TABLE)
    return Place(store="ministack", execute=interpreter(client), table=table, partition="")


@pytest.fixture(scope="session")
def memory_place() -> Place:
    tables = MemoryTables({TABLE: TIPS})
    return Place(store="memory", execute=tables.execute, table=TABLE, partition="")


@pytest.fixture(
    params=[
        "memory",
        pytest.param("ddbl", marks=pytest.mark.ddbl),
        pytest.param("ministack", marks=pytest.mark.embedded),
    ]
)
def place(request: pytest.FixtureRequest) -> Place:
    """A partition of its own on each of the three stores in turn."""
    names = {"memory": "memory_place", "ddbl": "local_place", "ministack": "embedded_place"}
    found: Place = request.getfixturevalue(names[request.param])
    return found.at(f"Contract-{next(_partitions)}")


@pytest.fixture
def on_ddbl(local_place: Place) -> Place:
    """A partition of its own on DynamoDB Local."""
    return local_place.at(f"Local-{next(_partitions)}")


@pytest.fixture
def on_embedded(embedded_place: Place) -> Place:
    """A partition of its own on the embedded AWS."""
    return embedded_place.at(f"Embedded-{next(_partitions)}")


LAYOUTS = ("dcb", "pages")
PLACES = ("memory", pytest.param("ddbl", marks=pytest.mark.ddbl))


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    """How tagged events are stored. A module of tests of one layout has a fixture of its own by this name."""
    found: str = request.param
    return found


@pytest.fixture(params=PLACES)
def opened(request: pytest.FixtureRequest, layout: str) -> Opens:
    """Makes stores of tagged events of either layout over tables of the test's own."""
    return opens(layout, None if request.param == "memory" else request.getfixturevalue("ddbl_tables"))


@pytest.fixture
def store(opened: Opens) -> TaggedStore:
    """A store of tagged events, of either layout."""
    return opened()
