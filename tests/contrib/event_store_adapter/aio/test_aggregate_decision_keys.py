"""The promises of a decision's key, kept where an event loop waits: the tests of `journal.test_decision_keys`."""

from __future__ import annotations

from tests.contrib.event_store_adapter.test_decision_keys import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True
