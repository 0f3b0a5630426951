"""The promises of read models, kept where an event loop waits: the tests of `read_models`."""

from __future__ import annotations

from tests.core.read_models.test_asked import *  # noqa: F403  each of its tests is collected here, too
from tests.core.read_models.test_documents import *  # noqa: F403  likewise

AWAITED = True
