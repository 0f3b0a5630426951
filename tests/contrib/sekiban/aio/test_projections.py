"""The promises of states of projections, kept where an event loop waits: the tests of `dcb.test_projections`."""

from __future__ import annotations

from tests.contrib.sekiban.test_projections import *  # noqa: F403  each of its tests is collected here, too

AWAITED = True

# They measure memory, which is the ordinary store's: seconds, for nothing more.
del test_a_state_of_forty_megabytes_is_not_held_in_memory  # noqa: F821
del test_a_state_that_no_compression_shortens_is_not_held_in_memory_either  # noqa: F821
