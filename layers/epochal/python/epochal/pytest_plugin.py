"""Fixtures for the tests of whoever uses Epochal: pytest finds them once the library is installed.

The stores of one test are one deployment in memory, and each test has its own: what is appended to `epochal_streams`
comes to the reactions that `epochal_feed` runs. Nothing is imported before a test asks for it.

Optional packages bring fixtures of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from epochal import extensions

if TYPE_CHECKING:
    from epochal.read_models.documents import ReadModels
    from epochal.store.streams import Streams
    from epochal.store.tagged_pages import TaggedEvents
    from epochal.testing.feeds import MemoryStore

pytest_plugins = [*extensions.places("fixtures")]


@pytest.fixture
def epochal_feed() -> MemoryStore:
    """A deployment in memory, with its feed: `epochal_feed.react(reaction)` runs a reaction until it has caught up."""
    from epochal.testing.feeds import MemoryStore

    return MemoryStore()


@pytest.fixture
def epochal_streams(epochal_feed: MemoryStore) -> Streams:
    """The streams of `epochal_feed`, as `open_streams` opens them on AWS."""
    return epochal_feed.streams


@pytest.fixture
def epochal_tagged_events(epochal_feed: MemoryStore) -> TaggedEvents:
    """The tagged events of `epochal_feed`, as `open_tagged_events` opens them on AWS."""
    return epochal_feed.tagged


@pytest.fixture
def epochal_read_models(epochal_feed: MemoryStore) -> ReadModels:
    """The read models of `epochal_feed`, as `open_read_models` opens them on AWS."""
    return epochal_feed.read_models
