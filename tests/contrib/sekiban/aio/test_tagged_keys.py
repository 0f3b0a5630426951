"""The promises of a decision's key, kept where an event loop waits: the tests of `dcb.test_keys`."""

from __future__ import annotations

from tests.contrib.sekiban.test_keys import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True
