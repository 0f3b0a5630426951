"""The three stores that keep the one contract: memory, AWS's DynamoDB Local, and the embedded AWS.

The first of the two servers is asked by the light carrier, the second by boto3's client.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from itertools import count
from typing import TYPE_CHECKING

import pytest

from epochal.aio.bridge import run
from epochal.dynamo.interpreter import interpreter, performed
from epochal.dynamo.tables import create_table
from epochal.layout.tips.tables import TIPS
from epochal.local.endpoint import Endpoint
from epochal.store.tagged_store import TaggedStore
from epochal.testing.memory import MemoryTables
from tests.contract.places import Looped, Place
from tests.contract.tagged import Opens, opens
from tests.support.tables import light

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TABLE = "contract-tips"

_partitions = count()


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
    _create(ddbl)
    carrier = light(ddbl)
    yield Place(store="ddbl", execute=performed(carrier), table=TABLE, partition="")
    carrier.close()


@pytest.fixture(scope="session")
def embedded_place(embedded: Endpoint) -> Place:
    return Place(store="ministack", execute=interpreter(_create(embedded)), table=TABLE, partition="")


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


def _create(endpoint: Endpoint) -> DynamoDBClient:
    client: DynamoDBClient = endpoint.client("dynamodb")
    create_table(client, TABLE, TIPS)
    return client
