"""An append that is being carried out may show in parts: what a read does not find of it, it waits for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.contrib.sekiban.entries import LOOKS
from epochal.contrib.sekiban.items import EVENTS, TAGS
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import CorruptData
from epochal.model.events import Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.ops import Delete, Put, TransactGet, TransactionWrite
from tests.contrib.sekiban.world import World, event, query
from tests.simulation.gradual import Gradual

COURSE = query(("", "course:1"))

ONE, OTHER = (f"00000000-0000-4000-9000-00000000000{number}" for number in (1, 2))

Late = Callable[[TransactionWrite], bool]


def events(write: TransactionWrite) -> bool:
    return write.table == "events"


def entries(write: TransactionWrite) -> bool:
    return write.table == "tags" and "tagIndex" in getattr(write, "item", {})


def heads(write: TransactionWrite) -> bool:
    return write.table == "tags" and not entries(write)


@pytest.fixture
def world() -> World:
    """With an event, and from then on tables of which a test says what shows late."""
    found = World(tables=Gradual({"events": EVENTS, "tags": TAGS}))
    found.store().append([event("Opened", "course:1")])
    return found


def showing(world: World, late: Late | None) -> None:
    assert isinstance(world.tables, Gradual)
    world.tables.late = late


def kinds(found: tuple[Recorded, ...]) -> list[str]:
    return [each.type for each in found]


def at_once(store: DcbEvents) -> list[str]:
    return kinds(store.read(COURSE).events)


def by_pages(store: DcbEvents) -> list[str]:
    page = store.page(COURSE, takes=lambda _: True)
    assert page.rest is None
    return kinds(page.events)


@pytest.mark.parametrize("read", [at_once, by_pages])
@pytest.mark.parametrize("late", [events, entries])
def test_a_read_has_all_that_the_heads_it_found_count(
    world: World, read: Callable[[DcbEvents], list[str]], late: Late
) -> None:
    showing(world, late)
    world.store().append([event("Renamed", "course:1")])
    assert read(world.store()) == ["Opened", "Renamed"]


@pytest.mark.parametrize("late", [events, entries, heads])
def test_nobody_appends_on_what_a_read_has_not_shown_him(world: World, late: Late) -> None:
    showing(world, late)
    world.store().append([event("Renamed", "course:1")])
    seen = world.store().read(COURSE)
    outcome = world.store().try_append([event("Closed", "course:1")], fail_if=COURSE, after=seen.position)
    assert isinstance(outcome, Appended) is (kinds(seen.events) == ["Opened", "Renamed"])


@pytest.mark.parametrize("takes", [None, lambda _: True])
def test_a_match_that_shows_late_is_a_conflict(
    world: World, takes: Callable[[Recorded], bool] | None
) -> None:
    position = world.store().read(COURSE).position
    showing(world, events)
    world.store().append([event("Renamed", "course:1")])
    outcome = world.store().try_append(
        [event("Closed", "course:1")], fail_if=COURSE, after=position, takes=takes
    )
    assert isinstance(outcome, Conflict)
    assert kinds(outcome.events) == ["Renamed"]


def test_an_append_of_which_half_is_there_was_made(world: World) -> None:
    mine = [event("Renamed", "course:1", id_=ONE), event("Closed", "course:1", id_=OTHER)]
    showing(world, lambda write: events(write) and write.item["eventId"]["S"] == OTHER)  # type: ignore[union-attr]
    world.store().append(mine)
    again = world.store().try_append(mine)
    assert isinstance(again, Appended)
    assert again.replayed
    assert kinds(again.events) == ["Renamed", "Closed"]


@pytest.mark.parametrize("late", [heads, entries])
def test_who_is_told_that_his_append_was_made_finds_it(world: World, late: Late) -> None:
    mine = [event("Renamed", "course:1", id_=ONE)]
    showing(world, late)
    world.store().append(mine)
    again = world.store().try_append(mine)
    assert isinstance(again, Appended)
    assert again.replayed
    assert at_once(world.store()) == ["Opened", "Renamed"]


def test_an_event_that_has_expired_is_asked_for_once_more_and_left_out(world: World) -> None:
    (item,) = world.tables.items("events")
    world.tables.execute(Delete(table="events", key={name: item[name] for name in ("pk", "sk")}))
    asked: list[type] = []
    world.before = lambda op: asked.append(type(op))
    assert at_once(world.store()) == by_pages(world.store()) == []
    assert asked.count(TransactGet) == 2


def test_an_id_is_good_for_one_append_as_long_as_its_event_is_there(world: World) -> None:
    mine = [event("Renamed", "course:1", id_=ONE)]
    first, again = world.store().append(mine), world.store().append(mine)
    assert (again.replayed, again.events) == (True, first.events)

    item = next(item for item in world.tables.items("events") if item["eventId"]["S"] == ONE)
    world.tables.execute(Delete(table="events", key={name: item[name] for name in ("pk", "sk")}))
    after = world.store().append(mine)

    assert not after.replayed
    assert after.events[0].place > first.events[0].place


@pytest.mark.parametrize("read", [at_once, by_pages])
def test_an_entry_that_is_lost_is_told_after_some_looks(
    world: World, read: Callable[[DcbEvents], list[str]]
) -> None:
    (entry,) = (item for item in world.tables.items("tags") if "tagIndex" in item)
    world.tables.execute(Delete(table="tags", key={name: entry[name] for name in ("pk", "sk")}))
    asked: list[object] = []
    world.before = asked.append
    with pytest.raises(CorruptData, match="its head counts 1 events, but its entries differ"):
        read(world.store())
    assert len(asked) == 1 + LOOKS


@pytest.mark.parametrize("lacking", ["n", "last"])
def test_a_head_that_no_append_could_have_left_is_told_and_not_tried_for_ever(
    world: World, lacking: str
) -> None:
    (head,) = (item for item in world.tables.items("tags") if "tagIndex" not in item)
    world.tables.execute(Put(table="tags", item={name: head[name] for name in head if name != lacking}))
    left = iter(range(10))
    world.before = lambda _: next(left)
    with pytest.raises(CorruptData, match="'course:1': its head, with .* events, .* contradicts itself"):
        world.store().append([event("Renamed", "course:1")])
