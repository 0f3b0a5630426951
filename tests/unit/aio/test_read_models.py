"""The promises of read models, kept where an event loop waits: the tests of `reactions.test_read_models`."""

from __future__ import annotations

from tests.unit.reactions.test_read_models import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True
