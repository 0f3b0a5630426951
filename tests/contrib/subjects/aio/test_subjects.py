"""The promises of forgetting, kept where an event loop waits: the tests of `contrib.subjects`."""

from __future__ import annotations

from tests.contrib.subjects.test_forgetting import *  # noqa: F403  each of its tests is collected here, too
from tests.contrib.subjects.test_resurrection import *  # noqa: F403  likewise

AWAITED = True

# One delivers in threads of its own, and one asks nothing that is awaited.
del test_a_reaction_is_given_what_is_shredded_and_goes_on  # noqa: F821
del test_kms_wraps_keys_and_unwraps_them_for_their_subject_alone  # noqa: F821
