"""The promises of a decision's key, kept where an event loop waits: the tests of `deciders.test_keys`."""

from __future__ import annotations

from tests.layouts.deciders.test_keys import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True
