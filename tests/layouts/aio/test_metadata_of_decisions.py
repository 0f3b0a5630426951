"""The promises of a decision's metadata, kept by an event loop: the tests of `store.test_metadata_of_decisions`."""

from __future__ import annotations

from tests.layouts.store.test_metadata_of_decisions import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True
