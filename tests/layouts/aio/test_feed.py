"""The promises of the feed, kept where an event loop waits: those tests of `feed.test_reader` that take little."""

# ruff: noqa: F401  each of them is collected here, too

from __future__ import annotations

from tests.layouts.feed.test_reader import (
    test_a_category_is_what_precedes_the_first_hyphen,
    test_a_checkpoint_taken_before_the_epoch_closed_goes_on_in_the_next,
    test_a_page_at_the_tail_waits_as_long_as_asked_and_ends_empty,
    test_a_page_ends_its_waiting_as_soon_as_something_comes,
    test_a_page_ends_with_the_entry_that_reaches_the_limit,
    test_a_reader_at_the_end_of_a_closed_epoch_waits_in_the_next_and_misses_nothing,
    test_events_come_with_their_data_from_the_store,
    test_events_pruned_since_come_without_data_and_are_not_called_omitted,
    test_following_gives_what_is_there_then_what_comes,
    test_from_the_beginning_everything_comes_in_the_order_of_each_stream,
    test_partitions_together_hold_every_event_once,
    test_waiting_crosses_into_an_epoch_that_begins_meanwhile,
)

AWAITED = True
