"""The contract of streams, kept by requests that an event loop carries: the tests are those of `test_streams`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from epochal.aio.stores import AsyncPlace
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.stores import open_streams
from tests.contract.places import Looped, Place
from tests.contract.test_streams import *  # noqa: F403  each of its tests is collected here, too
from tests.support.tables import make

_partitions = count()


@pytest.fixture(scope="module")
def looped(ddbl: Endpoint) -> Iterator[Looped]:
    """A store on DynamoDB Local that is asked through aiohttp, and the event loop that it belongs to."""
    table = make(ddbl.client("dynamodb"), TIPS)
    with asyncio.Runner() as runner:
        opened = AsyncPlace(endpoint=ddbl.url, region=ddbl.region)
        runner.run(opened.__aenter__())
        execute = open_streams(table, place=opened).driver.execute
        yield Looped(store="ddbl", execute=execute, table=table, partition="", runner=runner)
        runner.run(opened.__aexit__())


@pytest.fixture
def place(looped: Looped) -> Place:
    """A partition of its own."""
    return looped.at(f"Async-{next(_partitions)}")


@pytest.fixture
def on_ddbl(place: Place) -> Place:
    """The same: the loop carries those tests, too, that are for DynamoDB Local alone."""
    return place
