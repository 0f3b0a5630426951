"""Large unfolds that stay are left on a full page, which the later ones name."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from epochal.errors import CorruptData
from epochal.model.events import Event, Unfold
from epochal.pages.items import STREAMS, Page, page_key, read_page
from epochal.pages.layout import Pages
from epochal.plan.ops import Delete, Op, Reply, Update
from epochal.plan.values import binary
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables

STREAM = "Cart-1"
STATE = random.Random(1).randbytes(4096)
"""Which no compression shortens."""


class World:
    """A store in memory, and the pages of one stream."""

    def __init__(self) -> None:
        self.tables = MemoryTables({"streams": STREAMS})
        self.meter = Meter()
        self.streams = Streams(
            driver=Driver(execute=self.tables.execute, meter=self.meter), table="streams", layout=Pages()
        )

    def grow(self, appends: int, unfold: bytes | None = None) -> None:
        for number in range(appends):
            unfolds = [Unfold(type="State", data=unfold)] if unfold is not None and not number else None
            self.streams.append(STREAM, [Event(type="Happened", data=b"x" * 300)], unfolds=unfolds)

    @property
    def pages(self) -> list[Page]:
        return sorted(map(read_page, self.tables.items("streams")), key=lambda page: page.index)

    @property
    def state(self) -> list[bytes]:
        state = self.streams.load(STREAM)
        assert state is not None
        return [unfold.data for unfold in state.unfolds]

    @property
    def holding(self) -> list[int]:
        """The pages that have unfolds of their own."""
        return [page.index for page in self.pages if page.unfolds and page.unfolds_at is None]


@pytest.fixture
def world() -> World:
    world = World()
    world.grow(12, STATE)
    return world


@pytest.mark.parametrize(("events", "appends", "requests"), [(True, 0, 1), (False, 0, 2), (True, 60, 2)])
def test_a_load_has_them_by_one_request_more_unless_their_page_comes_along(
    world: World, events: bool, appends: int, requests: int
) -> None:
    world.grow(appends)
    state = world.streams.load(STREAM, events=events)

    assert state is not None
    assert ([each.data for each in state.unfolds], [each.version for each in state.unfolds]) == ([STATE], [1])
    assert state.capacity.requests == requests


def test_one_page_has_them_and_all_after_it_name_that(world: World) -> None:
    first, *later = world.pages

    assert (first.full, world.holding) == (True, [0])
    assert later
    assert {page.unfolds for page in later} == {bytes((4, 0))}


def test_many_pages_later_all_name_the_one_that_has_them() -> None:
    world, noise = World(), random.Random(2)
    world.grow(1, STATE)
    while len(world.pages) < 5:
        world.streams.append(STREAM, [Event(type="Happened", data=noise.randbytes(3_000))])
    assert world.holding == [0]
    assert {page.unfolds for page in world.pages[1:]} == {bytes((4, 0))}
    assert world.state == [STATE]


def test_small_ones_go_along_from_page_to_page() -> None:
    world = World()
    world.grow(20, STATE[:600])

    assert len(world.pages) > 1
    assert world.state == [STATE[:600]]
    assert {page.unfolds_at for page in world.pages} == {None}


def test_what_replaces_them_is_what_is_loaded(world: World) -> None:
    world.grow(4, b"small")
    assert world.state == [b"small"]

    world.grow(4, STATE[::-1])
    assert world.state == [STATE[::-1]]
    assert world.pages[-1].unfolds_at


def test_none_instead_of_them_are_none(world: World) -> None:
    world.streams.append(STREAM, [Event(type="Happened")], unfolds=[])

    assert world.state == []


def test_a_prune_spares_them_until_others_count(world: World) -> None:
    world.streams.prune(STREAM, 10)

    assert (world.state, world.pages[0].frames) == ([STATE], ())
    assert [each.index for each in world.streams.read(STREAM)] == [10, 11]

    world.grow(1, b"small")
    world.streams.prune(STREAM, 10)
    assert (world.state, world.pages[0].unfolds) == ([b"small"], b"")


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 1, 9, 30, 50])
@pytest.mark.parametrize("after", [0, 1, 12, 40])
def test_what_a_prune_has_spared_on_whichever_page_goes_once_others_count(before: int, after: int) -> None:
    """Whoever is forgotten is forgotten on all pages, also where the page was the last one, or pruned before."""
    world = World()
    world.grow(before)
    world.grow(1, STATE)
    world.grow(after)
    world.streams.prune(STREAM, 100)
    assert world.state == [STATE]

    world.grow(1, b"small")
    world.grow(30)
    world.streams.prune(STREAM, 200)

    assert world.state == [b"small"]
    assert not any(page.unfolds for page in world.pages[:-1])


@pytest.mark.parametrize("appends", [1, 12, 21, 22, 23, 30, 44, 60])
def test_a_stream_that_was_pruned_to_its_end_grows_and_is_pruned_again(appends: int) -> None:
    world = World()
    world.grow(appends)
    for version in range(appends, appends + 36, 12):
        world.streams.prune(STREAM, version)
        assert list(world.streams.read(STREAM)) == []
        world.grow(12)
        world.streams.prune(STREAM, version + 10)
        assert [each.index for each in world.streams.read(STREAM)] == [version + 10, version + 11]


@pytest.mark.parametrize("leave_open", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
def test_what_a_prune_has_spared_goes_with_the_stream(world: World, replaced: bool, leave_open: bool) -> None:
    world.streams.prune(STREAM, 12)
    if replaced:
        world.grow(1, b"small")

    world.streams.delete(STREAM, leave_open=leave_open)

    assert not any(page.unfolds for page in world.pages)


def test_unfolds_that_are_on_no_page_are_corruption(world: World) -> None:
    world.tables.execute(Update(table="streams", key=page_key(STREAM, 0), sets=(), removes=("u",)))

    with pytest.raises(CorruptData, match="page 0 lacks its unfolds"):
        world.streams.load(STREAM)


def test_a_stream_that_is_taken_out_of_the_table_during_a_load_is_corruption(world: World) -> None:
    items = world.tables.items("streams")
    asked = 0

    def emptied(op: Op) -> Reply:
        nonlocal asked
        asked += 1
        if asked == 2:
            for item in items:
                world.tables.execute(Delete(table="streams", key={"p": item["p"], "i": item["i"]}))
        return world.tables.execute(op)

    streams = replace(world.streams, driver=Driver(execute=emptied, meter=Meter()))
    with pytest.raises(CorruptData, match="page 0 lacks its unfolds"):
        streams.load(STREAM, events=False)


@pytest.mark.parametrize("name", ["04", "040000", "048000", "040c"])
def test_a_page_names_one_before_it_in_one_form_only(world: World, name: str) -> None:
    last = next(
        item for item in world.tables.items("streams") if item["i"]["N"] == str(world.pages[-1].index)
    )

    with pytest.raises(CorruptData):
        read_page({**last, "u": binary(bytes.fromhex(name))})
