"""The promises of appends to aggregates, kept where an event loop waits: the tests of `journal.test_append`."""

from __future__ import annotations

from tests.contrib.event_store_adapter.test_append import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True

# They race in threads; `test_async_places` has the races of tasks.
del test_of_racers_with_one_lock_exactly_one_wins  # noqa: F821
del test_writers_that_take_any_version_lose_nothing  # noqa: F821
