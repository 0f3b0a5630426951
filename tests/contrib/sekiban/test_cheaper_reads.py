"""Cheaper reads cost half, and what they have not heard of is never taken for what is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import InvalidInput
from epochal.plan.ops import BatchGet, Delete, Get, Op, Query, Reply
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from tests.contrib.sekiban.world import World, event, query


@dataclass
class Replica:
    """Answers reads that are not strongly consistent from an earlier copy of the tables that `stale` says."""

    tables: MemoryTables
    earlier: MemoryTables
    stale: Callable[[Op], bool] = lambda _: True

    def execute(self, op: Op) -> Reply:
        lagging = isinstance(op, Get | BatchGet | Query) and not op.consistent and self.stale(op)
        return (self.earlier if lagging else self.tables).execute(op)


def cheap(world: World, replica: Replica | None = None) -> DcbEvents:
    store = replace(world.store(), consistent=False)
    if replica is None:
        return store
    return replace(store, driver=Driver(execute=replica.execute, meter=Meter()))


def units(world: World, read: Callable[[], object]) -> float:
    before = world.meter.units.read
    read()
    return world.meter.units.read - before


def test_single_events_and_listings_by_tag_cost_half() -> None:
    world = World()
    ids = [world.store().append([event("A", "t:1")]).events[0].id for _ in range(60)]
    strong, half = world.store(), cheap(world)

    for read in (
        lambda store: store.event(ids[0]),
        lambda store: list(TagListings(store=store).tagged("t:1")),
        lambda store: list(TagListings(store=store).entries("t:1")),
        lambda store: TagListings(store=store).latest("t:1"),
    ):
        assert units(world, lambda read=read: read(half)) == units(world, lambda read=read: read(strong)) / 2


def test_queries_and_their_positions_stay_strongly_consistent() -> None:
    world = World()
    world.store().append([event("A", "t:1")])
    asked: list[bool] = []
    world.before = lambda op: asked.append(op.consistent) if isinstance(op, BatchGet | Query) else None

    seen = cheap(world).read(query(("", "t:1")))
    cheap(world).append([event("A", "t:1")], fail_if=query(("", "t:1")), after=seen.position)

    assert asked
    assert all(asked)


def test_an_event_that_a_replica_has_not_heard_of_is_found() -> None:
    world = World()
    earlier = world.tables.copy()
    (written,) = world.store().append([event("A", "t:1")]).events
    behind = cheap(world, Replica(world.tables, earlier))

    assert behind.event(written.id) == written
    assert behind.event("00000000-0000-0000-0000-00000000dead") is None


def test_an_event_whose_entry_is_there_is_not_taken_for_expired() -> None:
    world = World()
    for _ in range(3):
        world.store().append([event("A", "t:1")])
    earlier = world.tables.copy()
    (last,) = world.store().append([event("A", "t:1")]).events
    replica = Replica(world.tables, earlier, stale=lambda op: op.table == "events")

    found = list(TagListings(store=cheap(world, replica)).tagged("t:1"))

    assert len(found) == 4
    assert found[-1] == last


def test_a_replica_that_lags_shortens_a_listing_at_its_end_alone() -> None:
    world = World()
    for _ in range(3):
        world.store().append([event("A", "t:1")])
    earlier = world.tables.copy()
    world.store().append([event("A", "t:1")])
    listings = TagListings(store=cheap(world, Replica(world.tables, earlier)))

    assert [entry.index for entry in listings.entries("t:1")] == [0, 1, 2]
    latest = listings.latest("t:1")
    assert latest is not None
    assert latest.index == 2


def test_an_entry_that_a_replica_lacks_between_others_is_asked_for_again() -> None:
    """A replica hears of a transaction's writes one by one, in no order that is promised."""
    world = World()
    for _ in range(5):
        world.store().append([event("A", "t:1")])
    torn = world.tables.copy()
    _forget(torn, index=2)
    listings = TagListings(store=cheap(world, Replica(world.tables, torn)))

    assert [entry.index for entry in listings.entries("t:1")] == [0, 1, 2, 3, 4]


def test_a_hole_between_two_pages_is_found_too() -> None:
    world = World()
    for _ in range(6):
        world.store().append([event("A", "t:1")])
    torn = world.tables.copy()
    _forget(torn, index=3)
    listings = TagListings(store=cheap(world, Replica(world.tables, torn)))

    assert [entry.index for entry in listings.entries("t:1", page=3)] == [0, 1, 2, 3, 4, 5]


def _forget(tables: MemoryTables, *, index: int) -> None:
    (gone,) = [item for item in tables.items("tags") if item.get("tagIndex") == {"N": str(index)}]
    tables.execute(Delete(table="tags", key={"pk": gone["pk"], "sk": gone["sk"]}))


@pytest.mark.parametrize("at_once", [0, 33])
def test_requests_at_once_are_as_many_as_a_client_has_connections(at_once: int) -> None:
    with pytest.raises(InvalidInput, match="reads_at_once"):
        replace(World().store(), reads_at_once=at_once)
