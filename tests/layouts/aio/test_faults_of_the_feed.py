"""The promises of events that cannot be read, kept where an event loop waits: the tests of `feed.test_faults`."""

from __future__ import annotations

from tests.layouts.feed.test_faults import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True
