"""Whatever is missing from an index, or too much in it, `verify` says so; and says nothing of one that is right."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import pytest

from epochal.care.mender import Mender
from epochal.care.verify import Verifier
from epochal.contrib.equinox.port import tips_source
from epochal.index.checkpoints import tip_key
from epochal.plan.ops import Delete, Put
from epochal.plan.values import number
from epochal.store.driver import Driver, Meter
from tests.layouts.stores import ALICE, BOB, JOURNAL, Layouts
from tests.surfaces.care.damage import SMALL, Damaged
from tests.surfaces.care.vast import Vast


@pytest.fixture
def damaged() -> Damaged:
    world = Damaged()
    world.fill()
    return world


def test_nothing_is_said_of_an_index_that_is_right(damaged: Damaged) -> None:
    assert damaged.said() == []
    assert not damaged.naps


def test_nothing_is_said_of_an_index_before_its_first_event() -> None:
    world = Damaged()
    world.layouts.index()
    assert world.said() == []


def test_an_entry_deleted_from_a_chain_is_a_gap_in_each_of_its_streams(damaged: Damaged) -> None:
    damaged.delete_entry(0, 0, 1)
    assert damaged.said() == ["gap: tips Cart-1 0-2 at 2@0"]


def test_a_gap_whose_events_the_store_has_lost_is_not_taken_for_one_that_pruning_explains(
    damaged: Damaged,
) -> None:
    damaged.delete_entry(10_000, 1, 0)
    damaged.tables.execute(Delete(table="journal", key=JOURNAL.keys.key(BOB, 2)))
    assert f"gap: journal {BOB} 1-2 at 2@0" in damaged.said()


def test_a_lost_epoch_is_told_and_so_are_the_gaps_that_it_leaves(damaged: Damaged) -> None:
    damaged.delete_epoch(0, 1)
    said = damaged.said()
    assert "epoch lost: tips at 1@0" in said
    assert "gap: tips Cart-2 0-2 at 2@1" in said


def test_the_first_epoch_of_an_index_may_be_the_one_that_is_lost(damaged: Damaged) -> None:
    damaged.delete_epoch(0, 0)
    assert damaged.said()[0] == "epoch lost: tips at 0@0"


def test_the_loss_of_the_newest_epoch_shows_in_the_heads(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-7", "last")
    damaged.layouts.index()
    damaged.delete_epoch(0, damaged.last_epoch(0))
    assert damaged.said() == ["missing: tips Cart-7 0-1"]


def test_chains_are_walked_to_their_ends_without_the_series(damaged: Damaged) -> None:
    damaged.delete_series()
    sources = ["tips", "journal", "dcb"]
    assert damaged.said() == [f"unregistered: {name}" for name in sources]


def test_of_an_index_that_is_gone_everything_is_missing(damaged: Damaged) -> None:
    damaged.delete_index()
    said = damaged.said()
    assert sorted(line for line in said if line.startswith("missing: tips")) == [
        "missing: tips Cart-0 0-6",
        "missing: tips Cart-1 0-6",
        "missing: tips Cart-2 0-4",
    ]
    assert sorted(line for line in said if line.startswith("missing: journal")) == [
        "missing: journal user-account-alice-1 0-4",
        "missing: journal user-account-bob 0-4",
    ]
    assert "missing: dcb room:1 0-8" in said
    assert [line for line in said if line.startswith("unregistered")] == [
        "unregistered: tips",
        "unregistered: journal",
        "unregistered: dcb",
    ]


def test_a_lost_mark_of_a_stream_that_newer_epochs_have_forgotten_is_told(damaged: Damaged) -> None:
    damaged.delete_mark(20_000, "guest:0")
    assert damaged.said() == ["mark low: dcb guest:0 0-1"]


def test_a_mark_that_is_too_high_is_told_because_events_would_be_passed_over(damaged: Damaged) -> None:
    damaged.set_mark(20_000, "guest:0", 7)
    assert damaged.said() == ["mark high: dcb guest:0 1-7"]


def test_an_epoch_without_its_end_is_told_because_readers_would_stay_there(damaged: Damaged) -> None:
    damaged.reopen(0, 1)
    assert "epoch left open: tips at 1@2" in damaged.said()


def test_an_entry_that_is_none_is_told_with_its_place_and_the_walk_goes_on(damaged: Damaged) -> None:
    damaged.change_entry(0, 0, 0, b"no JSON")
    said = damaged.said()
    assert said[0] == "entry unreadable: tips at 0@0"
    assert "gap: tips Cart-0 0-2 at 1@1" in said


def test_an_entry_that_comes_twice_is_told(damaged: Damaged) -> None:
    damaged.change_entry(0, 0, 1, b'{"add":[{"p":"Cart-0","i":0,"c":["a0","b0"]}],"app":[]}')
    assert "backwards: tips Cart-0 0-2 at 0@1" in damaged.said()


def test_an_entry_of_another_partition_is_told() -> None:
    world = Damaged(Layouts(limits=SMALL, partitions=2))
    world.fill(4)
    stream = next(f"Cart-{n}" for n in range(10) if world.layouts.sources[0].partition_of(f"Cart-{n}") == 1)
    world.change_entry(0, 0, 0, json.dumps({"add": [{"p": stream, "i": 0, "c": ["x"]}]}).encode())
    assert f"misplaced: tips {stream} 0-1 at 0@0" in world.said()


def test_an_entry_behind_the_end_of_an_epoch_is_told(damaged: Damaged) -> None:
    damaged.change_type(0, 0, 0, "Closed")
    assert "epoch continued: tips at 0@1" in damaged.said()


def test_a_stream_whose_head_is_gone_is_an_orphan(damaged: Damaged) -> None:
    damaged.tables.execute(Delete(table="tips", key=tip_key("Cart-1")))
    assert damaged.said() == ["orphan: tips Cart-1 0-6"]


def test_a_head_that_has_less_than_the_index_is_told(damaged: Damaged) -> None:
    """As after a table was restored from a backup."""
    head = next(item for item in damaged.tables.items("tips") if item["p"]["S"] == "Cart-1")
    damaged.tables.execute(Put(table="tips", item={**head, "n": number(2), "a": number(2)}))
    assert damaged.said() == ["too far: tips Cart-1 2-6"]


def test_a_head_that_cannot_be_read_is_told_and_the_others_are_compared(damaged: Damaged) -> None:
    damaged.tables.execute(Put(table="tips", item=dict(tip_key("Broken-1"))))
    damaged.layouts.append("Cart-9", "late")
    said = damaged.said()
    assert said[0].startswith("head unreadable: tips {'p': {'S': 'Broken-1'}")
    assert said[1:] == ["missing: tips Cart-9 0-1"]


def test_what_another_library_appended_is_looked_for_in_the_journal(damaged: Damaged) -> None:
    damaged.layouts.persist_elsewhere(ALICE, "x", "y")
    assert damaged.said() == ["missing: journal user-account-alice-1 4-6"]
    damaged.layouts.index()
    assert damaged.said() == []


def test_events_that_the_journal_has_lost_leave_the_index_too_far(damaged: Damaged) -> None:
    damaged.layouts.persist_elsewhere(ALICE, "x", "y")
    damaged.layouts.index()
    damaged.tables.execute(Delete(table="journal", key=JOURNAL.keys.key(ALICE, 6)))
    assert damaged.said() == ["too far: journal user-account-alice-1 5-6"]


def test_what_was_pruned_before_it_was_indexed_is_not_missing(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-1", "c", "d")
    damaged.layouts.streams.prune("Cart-1", 8)
    assert damaged.said() == []
    damaged.layouts.append("Cart-1", "e")
    damaged.layouts.records("tips")[:-1]
    damaged.layouts.append("Cart-1", "f")
    damaged.layouts.index()
    assert ("Cart-1", 6, "c") not in damaged.layouts.feed("tips")
    assert damaged.said() == []


@pytest.mark.parametrize("pruned", range(5))
def test_a_stream_that_an_epoch_knows_by_a_removal_alone_needs_no_mark_before_the_next_but_one(
    pruned: int,
) -> None:
    damaged = Damaged()
    damaged.layouts.append("Cart-1", "a", "b")
    damaged.layouts.index()
    said = []
    for turn in range(8):
        if turn == pruned:
            damaged.layouts.streams.prune("Cart-1", 2)
        damaged.layouts.append("Cart-2", f"c{turn}")
        damaged.layouts.index()
        said += damaged.said()
    assert said == []


def test_what_is_only_late_is_not_missing(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-1", "late")
    verifier = damaged.verifier(settle=3.0)
    driver = replace(
        verifier.mender.driver, sleep=lambda seconds: damaged.naps.append(seconds) or damaged.layouts.index()
    )
    late = replace(verifier, mender=replace(verifier.mender, driver=driver))
    assert list(late.findings()) == []
    assert damaged.naps == [3.0]


@pytest.mark.slow
def test_an_index_of_more_streams_than_are_followed_at_once_is_judged_alike() -> None:
    world = Damaged()
    world.fill(24)
    world.delete_epoch(20_000, 1)
    world.delete_mark(20_000, "guest:20")
    world.layouts.append("Cart-9", "late")
    whole = world.said()
    assert len(whole) == 4
    for most in (1, 2, 5):
        assert sorted(world.said(streams=most)) == sorted(whole)


def test_segments_of_a_scan_that_are_read_at_once_bring_the_same(damaged: Damaged) -> None:
    damaged.delete_index()
    assert sorted(damaged.said(segments=4)) == sorted(damaged.said())


def test_what_was_looked_at_is_told_to_whoever_waits(damaged: Damaged) -> None:
    told: list[str] = []
    damaged.said(tell=told.append)
    assert "tips: partition 0, epoch 3" in told
    assert "tips: 3 heads" in told


@pytest.mark.proof
def test_memory_does_not_grow_with_the_streams_of_an_index() -> None:
    def peak(streams: int) -> int:
        driver = Driver(execute=Vast(streams).execute, meter=Meter())
        mender = Mender(driver=driver, index_table="index")
        verifier = Verifier(mender=mender, sources=(tips_source("tips"),), streams=500)
        tracemalloc.start()
        assert [each.kind for each in verifier.findings()] == ["unregistered"]
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few = peak(1_000)
    assert peak(3_000) < 1.3 * few
