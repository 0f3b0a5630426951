"""G6 and G7 on small worlds, without luck: everything that can happen to them, state by state.

Epochs of one entry roll over at every write, which is where all that is difficult happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from epochal.index.epochs import EpochLimits
from epochal.layout.changes import Span
from tests.simulation.exploring import each_of, is_found_out, left_out
from tests.simulation.index_explorer import Explorer
from tests.simulation.index_states import Budget
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.test_index_mutants import (
    a_gap_is_accepted,
    a_leaf_is_split_by_one_write_after_the_other,
    a_leaf_is_written_whatever_it_is_by_then,
    an_entry_is_written_whatever_the_epoch_holds_by_then,
    an_entry_tells_of_marks_that_were_not_written,
    closing_does_not_wait_for_marks_that_are_left,
    no_marks_are_written,
    the_previous_epoch_is_not_looked_at,
)

EVERY_ENTRY, EVERY_TWO = EpochLimits(entries=1), EpochLimits(entries=2)


def records(*texts: str) -> tuple[Span, ...]:
    """`"A1"` is event 1 of stream A."""
    return tuple(Span(text[0], int(text[1:]), (f"{text[0]}:{text[1:]}",)) for text in texts)


def again_while_others_roll_over() -> Explorer:
    return Explorer(
        shards=(records("A0"), records("F0", "G0", "H0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(again=1),
        batch=1,
    )


def a_crash_at_any_write() -> Explorer:
    return Explorer(
        shards=(records("A0", "A1"), records("F0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(crashes=1),
    )


def a_lost_answer() -> Explorer:
    return Explorer(
        shards=(records("A0", "A1"), records("F0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(lost=1),
        batch=1,
    )


def a_request_that_lands_late() -> Explorer:
    return Explorer(
        shards=(records("A0", "A1"), records("F0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(late=1),
        batch=1,
    )


def a_record_that_never_arrives() -> Explorer:
    return Explorer(
        shards=(records("A0", "A1", "A2"), records("F0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(drops=1),
        batch=1,
    )


def two_processes_on_one_shard() -> Explorer:
    return Explorer(
        shards=(records("A0", "A1"),), processes=(0, 0), limits=EVERY_ENTRY, budget=Budget(again=1)
    )


def processes_that_keep_what_they_hold() -> Explorer:
    return Explorer(
        shards=(records("A0", "A1"), records("F0", "G0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(again=1),
        batch=1,
        warm=True,
    )


def refused_ones_that_pause() -> Explorer:
    """They look again, and before every write from then on."""
    return replace(processes_that_keep_what_they_hold(), pausing=True)


def processes_that_die_in_their_rests() -> Explorer:
    """Others write on while one rests: what it has written is far behind when its batch comes again."""
    return Explorer(
        shards=(records("A0"), records("F0", "G0", "H0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(rests=1),
        batch=1,
        warm=True,
    )


def epochs_of_two_entries() -> Explorer:
    return Explorer(
        shards=(records("A0", "B0", "A1"), records("F0")),
        processes=(0, 1),
        limits=EVERY_TWO,
        budget=Budget(crashes=1),
        batch=1,
    )


def many_new_streams() -> Explorer:
    """An epoch forgets two streams at once, whose marks go out side by side."""
    return Explorer(
        shards=(records("A0", "B0"), records("F0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(crashes=1, again=1),
    )


def leaves_that_split() -> Explorer:
    """Marks go to leaves that one process splits while another is about to write them."""
    return replace(many_new_streams(), leaf=1)


def a_shard_that_splits() -> Explorer:
    """A batch of the parent that was done, and is delivered again, meets what its children are at."""
    return Explorer(
        shards=(records("A0", "B0"), records("A1"), records("B1")),
        parents=(None, 0, 0),
        processes=(0, 1, 2),
        limits=EVERY_ENTRY,
        budget=Budget(again=1),
        batch=2,
    )


def changes_that_come_twice_and_in_any_order() -> Explorer:
    """As Kinesis has them: a later one first, an earlier one again."""
    return Explorer(
        shards=(records("A1", "A0", "A1"), records("F0")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(crashes=1),
        batch=2,
    )


def changes_of_a_stream_in_two_shards() -> Explorer:
    """Two processes have those of one stream at once, neither in order; one of them is heard of too late."""
    return Explorer(
        shards=(records("A1", "F0", "A0"), records("A2", "A1")),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(again=1, crashes=1),
        batch=1,
    )


def two_partitions() -> Explorer:
    """They share nothing but the series, which both take further."""
    return Explorer(
        shards=(records("A0", "A1"), records("F0", "F1")),
        partitions=(0, 1),
        processes=(0, 1),
        limits=EVERY_ENTRY,
        budget=Budget(crashes=1),
        batch=1,
    )


WORLDS = (
    again_while_others_roll_over,
    a_crash_at_any_write,
    a_lost_answer,
    a_request_that_lands_late,
    a_record_that_never_arrives,
    two_processes_on_one_shard,
    processes_that_keep_what_they_hold,
    refused_ones_that_pause,
    processes_that_die_in_their_rests,
    epochs_of_two_entries,
    many_new_streams,
    leaves_that_split,
    a_shard_that_splits,
    changes_that_come_twice_and_in_any_order,
    changes_of_a_stream_in_two_shards,
    two_partitions,
)


DEAR = (
    again_while_others_roll_over,
    a_crash_at_any_write,
    a_request_that_lands_late,
    processes_that_keep_what_they_hold,
    refused_ones_that_pause,
    processes_that_die_in_their_rests,
    many_new_streams,
    leaves_that_split,
    a_record_that_never_arrives,
    epochs_of_two_entries,
    changes_of_a_stream_in_two_shards,
)


@each_of(WORLDS, dear=DEAR)
def test_nothing_that_can_happen_breaks_the_feed(world: Callable[[], Explorer]) -> None:
    assert world().explore() > 3_000, "a world in which hardly anything happens proves nothing"


@left_out(
    (no_marks_are_written, again_while_others_roll_over, "backwards"),
    (closing_does_not_wait_for_marks_that_are_left, epochs_of_two_entries, "."),
    (an_entry_tells_of_marks_that_were_not_written, many_new_streams, "."),
    (the_previous_epoch_is_not_looked_at, again_while_others_roll_over, "backwards"),
    (a_gap_is_accepted, a_record_that_never_arrives, "a gap"),
    (a_gap_is_accepted, changes_that_come_twice_and_in_any_order, "a gap"),
    (no_marks_are_written, changes_of_a_stream_in_two_shards, "backwards"),
    (an_entry_is_written_whatever_the_epoch_holds_by_then, two_processes_on_one_shard, "."),
    (no_marks_are_written, a_shard_that_splits, "backwards"),
    (a_leaf_is_written_whatever_it_is_by_then, a_request_that_lands_late, "lowered"),
    (a_leaf_is_split_by_one_write_after_the_other, leaves_that_split, "."),
    (the_previous_epoch_is_not_looked_at, two_partitions, "backwards"),
    (no_marks_are_written, processes_that_die_in_their_rests, "backwards"),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
