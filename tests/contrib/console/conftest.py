"""A console on a store in memory, as a browser calls it."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.testing.feeds import MemoryFeed
from epochal.testing.stores import MemoryBucket, memory_settings


@pytest.fixture
def feed() -> MemoryFeed:
    return MemoryFeed()


@pytest.fixture
def opened(feed: MemoryFeed) -> Deployment:
    return Deployment(settings=memory_settings(), driver=feed.reader.driver, bucket=MemoryBucket())


@pytest.fixture
def browser(opened: Deployment) -> FlaskClient:
    return application(opened, "epochal-test").test_client()
