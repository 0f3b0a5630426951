"""The auditor: a bit of every table at a time; what the index lacks is indexed, whatever else is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epochal.care.audit_cursor import AuditCursor, read_cursor
from epochal.care.auditor import Audit, Auditor
from epochal.errors import Unavailable
from epochal.index.checkpoints import Checkpoint, tip_key
from epochal.plan.ops import Delete, Op, Put, Reply, Scan, Update
from epochal.store.driver import Driver, Meter
from tests.layouts.stores import BOB, JOURNAL
from tests.surfaces.care.damage import Damaged


@pytest.fixture
def damaged() -> Damaged:
    world = Damaged()
    world.fill()
    return world


def auditor(world: Damaged, **options: Any) -> Auditor:
    return Auditor(mender=world.mender, sources=world.layouts.sources, **options)


def audit(world: Damaged, **options: Any) -> Audit:
    return auditor(world, **options).audit(60)


def paged(world: Damaged, items: int) -> Auditor:
    """An auditor whose pages hold so few items, and who may read one of each table."""

    def execute(op: Op) -> Reply:
        return world.layouts.execute(replace(op, limit=items) if isinstance(op, Scan) else op)

    mender = replace(world.mender, driver=Driver(execute=execute, meter=Meter(), sleep=world.naps.append))
    return Auditor(mender=mender, sources=world.layouts.sources, pages=3)


def test_every_head_is_checked_and_nothing_is_written_to_an_index_that_is_right(damaged: Damaged) -> None:
    found = audit(damaged)
    assert found == Audit(checked=3 + 2 + 9, ended=["tips", "journal", "dcb"])
    assert damaged.naps == []


def test_what_no_record_told_is_found_and_healed(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-1", "late", "later")
    damaged.layouts.append("Cart-9", "new")
    damaged.layouts.persist_elsewhere(BOB, "late")
    damaged.layouts.tag("late", "room:1")
    found = audit(damaged)
    assert (found.missing, found.healed, found.troubles) == (4, 5, [])
    assert damaged.naps == [5.0]
    assert damaged.said() == []
    assert audit(damaged).missing == 0


def test_what_was_only_late_is_neither_counted_nor_healed(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-1", "late")
    mender = replace(
        damaged.mender, driver=replace(damaged.mender.driver, sleep=lambda _: damaged.layouts.index())
    )
    found = replace(auditor(damaged), mender=mender).audit(60)
    assert (found.missing, found.healed) == (0, 0)


def test_an_invocation_reads_some_pages_and_the_next_one_goes_on_there(damaged: Damaged) -> None:
    """Also in another process, and one head after the other is looked at."""
    damaged.delete_index()
    checked: list[int] = []
    ended: list[str] = []
    for _ in range(40):
        found = paged(damaged, 1).audit(60)
        checked.append(found.checked)
        ended += found.ended
        assert found.checked <= 3
        if {"tips", "journal", "dcb"} <= set(ended):
            break
    assert damaged.said(settle=0) == [f"unregistered: {name}" for name in ("tips", "journal", "dcb")]
    assert len(checked) > 10


def test_a_pass_that_has_ended_begins_anew_and_says_when_it_ended(damaged: Damaged) -> None:
    audit(damaged)
    cursor = damaged.driver.run(read_cursor("index", 0))
    assert cursor.after is None
    assert cursor.ended
    assert cursor.heads == 0
    paged(damaged, 1).audit(60)
    cursor = damaged.driver.run(read_cursor("index", 0))
    assert cursor.after is not None
    assert cursor.ended


def test_a_table_is_not_scanned_twice_in_one_invocation(damaged: Damaged) -> None:
    damaged.layouts.ops.clear()
    audit(damaged, pages=1_000)
    assert sum(isinstance(op, Scan) for op in damaged.layouts.ops) == 3


def test_no_page_is_begun_when_the_time_is_over(damaged: Damaged) -> None:
    assert auditor(damaged).audit(0).checked == 0


def test_cursors_move_on_only_after_what_was_found_is_mended(damaged: Damaged) -> None:
    damaged.layouts.append("Cart-1", "late")

    def dies_before_it_mends(op: Op) -> Reply:
        if isinstance(op, Put | Update) and "$AppendsEpoch" in str(op):
            raise RuntimeError("the process has died")
        return damaged.layouts.execute(op)

    driver = Driver(execute=dies_before_it_mends, meter=Meter(), sleep=damaged.naps.append)
    with pytest.raises(RuntimeError):
        replace(auditor(damaged), mender=replace(damaged.mender, driver=driver)).audit(60)
    assert damaged.driver.run(read_cursor("index", 0)) == AuditCursor()
    assert audit(damaged).healed == 1


def test_heads_and_stores_and_epochs_that_are_corrupt_are_told_and_stop_nothing(damaged: Damaged) -> None:
    damaged.tables.execute(Put(table="tips", item=dict(tip_key("Broken-1"))))
    damaged.layouts.persist(BOB, "x")
    damaged.layouts.persist(BOB, "y")
    damaged.tables.execute(Delete(table="journal", key=JOURNAL.keys.key(BOB, 5)))
    damaged.layouts.append("Cart-1", "late")
    found = audit(damaged)
    assert found.healed == 1
    broken, bob = sorted(found.troubles, reverse=True)
    assert broken.startswith("tips: the head {'p': {'S': 'Broken-1'}")
    assert bob == "journal 10000 user-account-bob: user-account-bob: event 5 is missing from the journal"


def test_a_partition_whose_newest_epoch_cannot_be_read_does_not_keep_the_others_waiting(
    damaged: Damaged,
) -> None:
    damaged.layouts.append("Cart-0", "last")
    damaged.layouts.index()
    damaged.spoil(0, damaged.last_epoch(0))
    damaged.layouts.append("Cart-1", "late")
    damaged.layouts.persist(BOB, "late")
    found = audit(damaged)
    assert found.healed == 1
    assert found.troubles[0].startswith("tips 0: $AppendsEpoch-0_")


def test_reactions_are_told_of_what_was_missing_and_of_nothing_else(damaged: Damaged) -> None:
    told: list[dict[int, Checkpoint]] = []
    looking = Auditor(
        mender=replace(damaged.mender, publish=lambda at: told.append(dict(at))),
        sources=damaged.layouts.sources,
    )
    looking.audit(60)
    assert told == []
    damaged.layouts.append("Cart-1", "late")
    looking.audit(60)
    assert [[*each] for each in told] == [[0]]


def test_a_topic_that_is_out_is_a_trouble_and_the_index_is_mended(damaged: Damaged) -> None:
    def publish(_: object) -> None:
        raise Unavailable("the topic is out")

    damaged.layouts.append("Cart-1", "late")
    mender = replace(damaged.mender, publish=publish)
    found = Auditor(mender=mender, sources=damaged.layouts.sources).audit(60)
    assert (found.healed, len(found.troubles)) == (1, 3)
    assert audit(damaged).missing == 0
