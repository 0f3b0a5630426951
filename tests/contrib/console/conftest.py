"""A console on a store in memory, as a browser calls it."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBucket, memory_settings


@pytest.fixture
def feed() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def opened(feed: MemoryStore) -> Deployment:
    return Deployment(settings=memory_settings(), driver=feed.feed.driver, bucket=MemoryBucket())


@pytest.fixture
def browser(opened: Deployment) -> FlaskClient:
    return application(opened, "epochal-test").test_client()
