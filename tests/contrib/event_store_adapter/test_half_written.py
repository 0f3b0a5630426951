"""An append that is being carried out may show in parts; tables restored to two moments look like it, and stay so."""

from __future__ import annotations

import pytest

from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT
from epochal.contrib.event_store_adapter.model import Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import CorruptData
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion
from epochal.plan.ops import Delete, Done, Get, Op, Put, Reply
from epochal.plan.values import Item, read_number
from epochal.store.driver import Driver, Meter
from tests.contrib.event_store_adapter.test_sharing import foreign_append
from tests.contrib.event_store_adapter.world import ALICE, World, event, numbers, site
from tests.simulation.gradual import Gradual

FEW = 40
"""Requests that no append here comes near, unless it never ends."""


@pytest.fixture
def world() -> World:
    found = World()
    found.store().append(ALICE, [event(0)], snapshot=b'{"n":0}')
    return found


def put_back(world: World, table: str, items: list[Item]) -> None:
    """Restore a table to what it was."""
    for item in list(world.tables.items(table)):
        key = {name: item[name] for name in ("pkey", "skey")}
        assert isinstance(world.tables.execute(Delete(table=table, key=key)), Done)
    for item in items:
        world.tables.execute(Put(table=table, item=item))


def bounded(world: World) -> AggregateStore:
    """A store that is caught where it never ends."""
    left = iter(range(FEW))

    def execute(op: Op) -> Reply:
        assert next(left, None) is not None, "it never ends"
        return world.execute(op)

    return AggregateStore(driver=Driver(execute=execute, meter=Meter(), sleep=lambda _: None), site=site())


@pytest.mark.parametrize("expected", [ANY, AtVersion(version=1), Lock(version=1, seq_nr=1)])
def test_an_append_to_a_head_older_than_its_journal_says_what_is_wrong(
    world: World, expected: object
) -> None:
    older = list(world.tables.items("snapshot"))
    world.store().append(ALICE, [event(1), event(2)])
    put_back(world, "snapshot", older)
    with pytest.raises(CorruptData, match="event 2 is in the journal, but its head is at 1.*restore both"):
        bounded(world).append(ALICE, [event(3)], expected=expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("expected", [ANY, NO_STREAM])
def test_so_does_a_first_append_to_a_journal_that_has_lost_its_head(world: World, expected: object) -> None:
    put_back(world, "snapshot", [])
    with pytest.raises(CorruptData, match="event 1 is in the journal, but its head is at 0"):
        bounded(world).append(ALICE, [event(1)], snapshot=b"{}", expected=expected)  # type: ignore[arg-type]


def test_an_event_further_on_than_the_next_is_named(world: World) -> None:
    older = list(world.tables.items("snapshot"))
    world.store().append(ALICE, [event(1), event(2)])
    put_back(world, "snapshot", older)
    put_back(
        world, "journal", [each for each in world.tables.items("journal") if read_number(each, "seq_nr") != 2]
    )
    with pytest.raises(CorruptData, match="event 3 is in the journal, but its head is at 1"):
        bounded(world).append(ALICE, [event(3), event(4)])


@pytest.fixture
def gradual() -> World:
    """Whose tables are given an aggregate, and then a rule of what shows late."""
    return World(tables=Gradual({"journal": JOURNAL, "snapshot": SNAPSHOT}))


def late(world: World, table: str) -> None:
    """From now on a transaction's items of this table show later than the others."""
    assert isinstance(world.tables, Gradual)
    world.tables.late = lambda write: write.table == table


def carried_out(world: World) -> None:
    assert isinstance(world.tables, Gradual)
    world.tables.settle()


def test_a_head_that_shows_before_its_events_is_replayed_with_them(gradual: World) -> None:
    gradual.store().append(ALICE, [event(0)], snapshot=b'{"n":0}')
    late(gradual, "journal")
    gradual.store().append(ALICE, [event(1), event(2)])
    assert numbers(gradual.store()) == [0, 1, 2]


@pytest.mark.parametrize("table", ["journal", "snapshot"])
def test_an_append_that_meets_half_of_another_waits_for_the_rest(gradual: World, table: str) -> None:
    lock = gradual.store().append(ALICE, [event(0)], snapshot=b'{"n":0}').lock  # type: ignore[union-attr]
    late(gradual, table)
    gradual.store().append(ALICE, [event(1)])
    assert bounded(gradual).try_append(ALICE, [event(9)], expected=lock) == AggregateConflict(version=2)
    gradual.store().append(ALICE, [event(2)])
    assert bounded(gradual).try_append(ALICE, [event(3)]) == AggregateAppended(
        first=4, lock=Lock(version=4, seq_nr=4)
    )
    carried_out(gradual)
    assert numbers(gradual.store()) == [0, 1, 2, 3]


def test_events_of_another_library_that_show_late_are_waited_for_too(gradual: World) -> None:
    gradual.store().append(ALICE, [event(0)], snapshot=b'{"n":0}')
    late(gradual, "journal")
    foreign_append(gradual, version=1, seq_nr=2)
    assert bounded(gradual).try_append(ALICE, [event(2)]) == AggregateAppended(
        first=3, lock=Lock(version=3, seq_nr=3)
    )
    assert numbers(gradual.store()) == [0, 1, 2]


def test_a_lock_beneath_another_librarys_write_counts_its_event_though_that_shows_late(
    gradual: World,
) -> None:
    gradual.store().append(ALICE, [event(0)], snapshot=b'{"n":0}')
    late(gradual, "journal")
    foreign_append(gradual, version=1, seq_nr=2)
    assert gradual.store().lock(ALICE) == Lock(version=2, seq_nr=2)


def test_our_own_append_is_recognised_by_an_event_that_shows_late(gradual: World) -> None:
    """Its answer was lost, and another has appended since, while the event was still to come."""
    gradual.store().append(ALICE, [event(0)], snapshot=b'{"n":0}')
    late(gradual, "journal")
    tables = gradual.tables
    assert isinstance(tables, Gradual)

    def another() -> None:
        tables.late = None
        reply = tables.execute(Get(table="snapshot", key=site().keys.key(ALICE, 0)))
        assert read_number(reply.item, "version") == 2
        foreign = World(tables=tables)
        foreign.store().append(ALICE, [event(2)])

    gradual.lose_next_append(another)
    assert bounded(gradual).try_append(ALICE, [event(1)]) == AggregateAppended(
        first=2, lock=Lock(version=2, seq_nr=2)
    )
    assert numbers(gradual.store()) == [0, 1, 2]
