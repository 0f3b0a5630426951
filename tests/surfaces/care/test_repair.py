"""What can be mended in place is; what cannot is left as it was, and a rebuild is recommended."""

from __future__ import annotations

import pytest

from epochal.care.repair import Repairer
from epochal.plan.ops import Delete, Op, Put, Update
from tests.layouts.stores import ALICE, BOB, JOURNAL
from tests.surfaces.care.damage import Damaged, told

ALL = {
    "tips": {"Cart-0": 6, "Cart-1": 6, "Cart-2": 4},
    "journal": {str(ALICE): 4, str(BOB): 4},
    "dcb": {"room:1": 8, **{f"guest:{n}": 1 for n in range(8)}},
}
"""How many events each stream has."""


@pytest.fixture
def damaged() -> Damaged:
    world = Damaged()
    world.fill()
    return world


def repair(world: Damaged) -> list[str]:
    """What was done, in a few words."""
    done = Repairer(world.verifier()).repair()
    return [f"{told(each.finding)} {'mended' if each.mended else each.why}" for each in done]


def fed(world: Damaged) -> dict[str, dict[str, int]]:
    """How many events of each stream the feed has, each once and in order."""
    found: dict[str, dict[str, int]] = {}
    for source in ALL:
        reached = found.setdefault(source, {})
        for stream, index, _ in world.layouts.feed(source):
            assert index == reached.get(stream, 0)
            reached[stream] = index + 1
    return found


def writes(ops: list[Op]) -> list[Op]:
    return [op for op in ops if isinstance(op, Put | Update | Delete)]


def test_an_index_that_is_right_is_not_written_to(damaged: Damaged) -> None:
    damaged.layouts.ops.clear()
    assert repair(damaged) == []
    assert writes(damaged.layouts.ops) == []


def test_what_no_stream_record_told_is_indexed_from_the_heads(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-1", "late", "later")
    damaged.layouts.append("Cart-9", "new")
    damaged.layouts.persist(BOB, "late")
    damaged.layouts.persist_elsewhere(ALICE, "late")
    damaged.layouts.tag("late", "room:1")
    assert sorted(repair(damaged)) == [
        "missing: dcb room:1 8-9 mended",
        "missing: journal user-account-alice-1 4-5 mended",
        "missing: journal user-account-bob 4-5 mended",
        "missing: tips Cart-1 6-8 mended",
        "missing: tips Cart-9 0-1 mended",
    ]
    assert damaged.said() == []
    assert fed(damaged)["tips"] == {"Cart-0": 6, "Cart-1": 8, "Cart-2": 4, "Cart-9": 1}


def test_an_index_that_is_gone_is_made_again(damaged: Damaged) -> None:
    damaged.delete_index()
    assert all(line.endswith("mended") for line in repair(damaged))
    assert damaged.said() == []
    assert fed(damaged) == ALL


def test_lost_marks_are_raised_before_anything_is_taken_for_missing(damaged: Damaged) -> None:
    """Without its mark a stream seems new, and would be indexed again from its beginning."""
    damaged.delete_mark(20_000, "guest:0")
    damaged.layouts.tag("late", "guest:0")
    assert repair(damaged) == ["mark low: dcb guest:0 0-1 mended", "missing: dcb guest:0 1-2 mended"]
    assert fed(damaged)["dcb"]["guest:0"] == 2
    assert damaged.said() == []


def test_the_numbers_of_partitions_are_put_on_record_again(damaged: Damaged) -> None:
    damaged.delete_series()
    repair(damaged)
    assert damaged.said() == []
    damaged.layouts.append("Cart-1", "more")
    damaged.layouts.index()
    assert fed(damaged)["tips"]["Cart-1"] == 7


def test_a_gap_inside_a_chain_is_left_because_readers_may_have_passed_it(damaged: Damaged) -> None:
    damaged.delete_entry(0, 0, 1)
    before = damaged.layouts.feed("tips")
    assert repair(damaged) == ["gap: tips Cart-1 0-2 at 2@0 rebuild"]
    assert damaged.layouts.feed("tips") == before


def test_nothing_is_written_to_a_chain_whose_epochs_are_broken_and_the_others_are_mended(
    damaged: Damaged,
) -> None:
    damaged.delete_epoch(0, 1)
    damaged.layouts.append("Cart-1", "late")
    damaged.layouts.persist(BOB, "late")
    damaged.layouts.ops.clear()
    done = repair(damaged)
    assert "missing: tips Cart-1 6-7 rebuild" in done
    assert "missing: journal user-account-bob 4-5 mended" in done
    assert not [op for op in writes(damaged.layouts.ops) if "$AppendsEpoch-0_" in str(op)]


def test_lost_leaves_of_marks_stop_their_partition_and_are_put_back(damaged: Damaged) -> None:
    damaged.delete_marks(20_000, "guest:0")
    assert any(line.startswith("mark low: dcb guest:0") for line in damaged.said())
    done = repair(damaged)
    assert done
    assert all(line.endswith("mended") for line in done)
    assert damaged.said() == []


def test_marks_of_a_partition_whose_epochs_are_broken_are_left_alone_too(damaged: Damaged) -> None:
    damaged.delete_mark(20_000, "guest:0")
    damaged.delete_epoch(20_000, 2)
    damaged.layouts.ops.clear()
    done = repair(damaged)
    assert done[0] == "epoch lost: dcb at 2@0 rebuild"
    (mark,) = (line for line in done if line.startswith("mark low: dcb guest:0"))
    assert mark.endswith("rebuild")
    assert writes(damaged.layouts.ops) == []


def test_a_stream_whose_store_has_lost_events_is_left_with_the_cause(damaged: Damaged) -> None:
    damaged.layouts.persist(BOB, "x")
    damaged.layouts.persist(BOB, "y")
    damaged.layouts.append("Cart-1", "late")
    damaged.tables.execute(Delete(table="journal", key=JOURNAL.keys.key(BOB, 5)))
    assert sorted(repair(damaged)) == [
        "missing: journal user-account-bob 4-6 user-account-bob: event 5 is missing from the journal",
        "missing: tips Cart-1 6-7 mended",
    ]


def test_an_epoch_that_cannot_be_read_is_told_and_the_other_partitions_are_mended(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-0", "last")
    damaged.layouts.index()
    newest = damaged.last_epoch(0)
    damaged.spoil(0, newest)
    damaged.layouts.append("Cart-1", "late")
    damaged.layouts.persist(BOB, "late")
    done = repair(damaged)
    assert done[0].startswith(f"epoch unreadable: tips at {newest}@0")
    assert "missing: tips Cart-1 6-7 rebuild" in done
    assert "missing: journal user-account-bob 4-5 mended" in done
