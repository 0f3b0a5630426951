"""The promises of reading aggregates, kept where an event loop waits: the tests of `journal.test_reading`."""

from __future__ import annotations

from tests.contrib.event_store_adapter.test_reading import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True
