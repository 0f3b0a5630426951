"""Tables shared with the original libraries: what they write last must never be misread or overwritten."""

from __future__ import annotations

import json

import pytest

from epochal.contrib.event_store_adapter.model import Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict
from epochal.contrib.event_store_adapter.port import appended
from epochal.errors import CorruptData
from epochal.layout.changes import Span, Touched
from epochal.plan.conditions import equals
from epochal.plan.ops import Done, Put, Set, Transact, Update
from epochal.plan.values import binary, number, text
from tests.contrib.event_store_adapter.world import ALICE, World, event, numbers, site


def foreign_append(world: World, version: int, seq_nr: int, state: dict[str, int] | None = None) -> None:
    """What event-store-adapter-js sends for `persistEvent`, or with `state` for `persistEventAndSnapshot`."""
    sets = [Set("version", number(version + 1)), Set("last_updated_at", number(481))]
    if state is not None:
        sets.append(Set("payload", binary(json.dumps({"type": "user-account", "data": state}).encode())))
    payload = json.dumps({"type": "Renamed", "data": {"number": seq_nr - 1}}).encode()
    journal = {
        **site().keys.key(ALICE, seq_nr),
        "aid": text(str(ALICE)),
        "seq_nr": number(seq_nr),
        "payload": binary(payload),
        "occurred_at": number(481),
    }
    head = Update(
        table="snapshot",
        key=site().keys.key(ALICE, 0),
        sets=tuple(sets),
        condition=equals("version", number(version)),
    )
    reply = world.tables.execute(Transact(writes=(head, Put(table="journal", item=journal))))
    assert isinstance(reply, Done)


@pytest.fixture
def world() -> World:
    found = World()
    found.store().append(ALICE, [event(0), event(1)], snapshot=b'{"seq_nr":2}')
    return found


def test_events_of_another_library_are_replayed_with_their_type_and_time(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3)
    (found,) = world.store().events_after(ALICE, 2)
    assert (found.seq_nr, found.type, found.data, found.occurred_at) == (3, "Renamed", b'{"number":2}', "481")


def test_a_snapshot_of_another_library_counts_by_the_number_inside_it(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3, state={"sequenceNumber": 3})
    replay = world.store().replay(ALICE)
    assert replay is not None
    assert (replay.snapshot.seq_nr, replay.events) == (3, ())
    assert replay.snapshot.lock == Lock(version=2, seq_nr=3)


def test_a_snapshot_that_does_not_say_its_number_is_refused_not_guessed(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3, state={"balance": 7})
    with pytest.raises(CorruptData, match="another library wrote its snapshot"):
        world.store().replay(ALICE)


def test_our_append_continues_after_theirs_without_hole_or_double(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3)
    foreign_append(world, version=2, seq_nr=4)
    answer = world.store().try_append(ALICE, [event(4)])
    assert answer == AggregateAppended(first=5, lock=Lock(version=4, seq_nr=5))
    assert numbers(world.store()) == [0, 1, 2, 3, 4]


def test_our_lock_from_before_their_append_is_a_conflict(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3)
    answer = world.store().try_append(ALICE, [event(9)], expected=Lock(version=1, seq_nr=2))
    assert answer == AggregateConflict(version=2)


def test_a_lock_learnt_from_their_head_is_good_for_an_append(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3)
    snapshot = world.store().latest_snapshot(ALICE)
    assert snapshot is not None
    answer = world.store().try_append(ALICE, [event(3)], expected=snapshot.lock)
    assert answer == AggregateAppended(first=4, lock=Lock(version=3, seq_nr=4))


def test_an_append_without_snapshot_after_their_snapshot_keeps_their_number(world: World) -> None:
    """Our old number must not be believed again: the payload is theirs, and has folded in event 3."""
    foreign_append(world, version=1, seq_nr=3, state={"seq_nr": 3})
    world.store().append(ALICE, [event(3)])
    replay = world.store().replay(ALICE)
    assert replay is not None
    assert replay.snapshot.seq_nr == 3
    assert [each.seq_nr for each in replay.events] == [4]


def test_a_snapshot_ahead_of_its_events_is_corruption(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3, state={"seq_nr": 9})
    with pytest.raises(CorruptData, match="ahead of its events"):
        world.store().replay(ALICE)


def test_the_head_tells_the_feed_what_the_latest_append_added(world: World) -> None:
    world.store().append(ALICE, [event(2, "A"), event(3, "B")])
    assert [appended(item) for item in world.tables.changes("snapshot")] == [
        Span(str(ALICE), 0, ("Renamed", "Renamed")),
        Span(str(ALICE), 2, ("A", "B")),
    ]


def test_a_head_that_another_library_wrote_tells_the_feed_nothing_false(world: World) -> None:
    foreign_append(world, version=1, seq_nr=3)
    assert appended(world.tables.changes("snapshot")[-1]) == Touched(stream=str(ALICE))


@pytest.mark.parametrize("table", ["journal", "snapshot"])
def test_what_a_newer_version_of_a_library_wrote_is_named_where_it_cannot_be_read(
    world: World, table: str
) -> None:
    world.store().append(ALICE, [event(2)])
    for item in list(world.tables.items(table)):
        newer = {**item, "payload": {"B": b"\x00\x01"}, "manifest": {"S": "Renamed"}}
        world.tables.execute(Put(table=table, item=newer))
    read = world.store().events_after if table == "journal" else world.store().replay
    with pytest.raises(CorruptData, match=r"it also has manifest, .*newer.*Rust 1\.3\.17, Go"):
        read(ALICE)


def test_an_attribute_that_is_unknown_hides_nothing_that_can_be_read(world: World) -> None:
    world.store().append(ALICE, [event(2)])
    for item in list(world.tables.items("journal")):
        world.tables.execute(Put(table="journal", item={**item, "manifest": {"S": "Renamed"}}))
    assert [each.seq_nr for each in world.store().events_after(ALICE)] == [1, 2, 3]
