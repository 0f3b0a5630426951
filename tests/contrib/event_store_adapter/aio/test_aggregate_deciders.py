"""The promises of deciders on aggregates, kept where an event loop waits: the tests of `journal.test_deciders`."""

from __future__ import annotations

from tests.contrib.event_store_adapter.test_deciders import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True

# It races in threads; `test_async_places` has the races of tasks.
del test_of_many_writers_none_loses_an_update  # noqa: F821
