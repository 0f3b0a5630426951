"""Data that breaks the formats is an error with a name: never skipped, never passed on, never a loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.errors import CorruptData
from epochal.model.events import Event
from epochal.plan.values import Item, number, sequence, text
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.contrib.equinox.layout.items import STREAM, TABLE, calf, item, numbered, store, tip

READS: dict[str, Callable[[Streams], object]] = {
    "forward": lambda streams: list(streams.read(STREAM)),
    "backward": lambda streams: list(streams.read(STREAM, direction="backward")),
    "from the middle": lambda streams: list(streams.read(STREAM, start=3)),
    "a page": lambda streams: streams.page(STREAM, start=3, limit=2),
}

HOLES: dict[str, list[Item]] = {
    "a calf is missing": [calf(0, numbered(0, 2)), calf(5, numbered(5, 6))],
    "a calf is too short": [calf(0, numbered(0, 3)), calf(4, numbered(4, 6))],
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("calves", HOLES.values(), ids=HOLES)
def test_a_hole_that_no_pruning_explains_is_corrupt_whichever_way_it_is_come_upon(
    tables: MemoryTables, streams: Streams, calves: list[Item], read: Callable[[Streams], object]
) -> None:
    store(tables, tip(8, numbered(6, 8)), *calves)

    with pytest.raises(CorruptData, match=r"event \d is in no item"):
        read(streams)


def test_the_same_hole_is_none_where_the_low_water_mark_lies_above_it(
    tables: MemoryTables, streams: Streams
) -> None:
    store(tables, tip(8, numbered(6, 8), l=number(4)), calf(4, numbered(4, 6)))

    assert [event.index for event in streams.read(STREAM)] == [4, 5, 6, 7]


CONTRADICTIONS: dict[str, Item] = {
    "no n": {name: value for name, value in tip(2, numbered(0, 2)).items() if name != "n"},
    "n below the count": tip(1, numbered(0, 2)),
    "fewer types than events": {**tip(2, numbered(0, 2)), "c": sequence([text("E")])},
    "more types than events": {**tip(2, numbered(0, 2)), "c": sequence([text("E")] * 3)},
}


@pytest.mark.parametrize("broken", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_counts_of_a_tip_that_contradict_each_other_are_corrupt(
    tables: MemoryTables, streams: Streams, broken: Item
) -> None:
    store(tables, broken)

    for act in (
        streams.load,
        lambda name: list(streams.read(name)),
        lambda name: streams.append(name, [Event(type="E")]),
    ):
        with pytest.raises(CorruptData, match="has contradictory i, n, e and c"):
            act(STREAM)


def test_a_calf_that_is_not_where_its_counts_say_is_corrupt(tables: MemoryTables, streams: Streams) -> None:
    """Believed, it would give its events other indices than they have."""
    store(tables, tip(4), item(0, 4, numbered(1, 4)))

    with pytest.raises(CorruptData, match="has contradictory i, n, e and c"):
        list(streams.read(STREAM))


@pytest.mark.parametrize("mode", ["two-step", "transactional"])
def test_a_calf_that_reaches_beyond_the_tip_ends_an_append_instead_of_a_loop(
    tables: MemoryTables, mode: str
) -> None:
    store(tables, tip(2, numbered(0, 2)), calf(0, numbered(0, 3)))
    calving = Streams(
        driver=memory_tips(tables).driver, table=TABLE, layout=Tips(calving=Fixed(max_events=2, mode=mode))
    )

    with pytest.raises(CorruptData, match="reaches beyond the Tip"):
        calving.append(STREAM, [Event(type="E")])


@pytest.mark.parametrize("mode", ["two-step", "transactional"])
def test_a_calf_without_events_ends_an_append_instead_of_a_loop(tables: MemoryTables, mode: str) -> None:
    store(tables, tip(2, numbered(0, 2)), item(0, 0, []))
    calving = Streams(
        driver=memory_tips(tables).driver, table=TABLE, layout=Tips(calving=Fixed(max_events=2, mode=mode))
    )

    with pytest.raises(CorruptData, match="contains no events"):
        calving.append(STREAM, [Event(type="E")])


def test_a_body_under_an_unknown_encoding_is_named(tables: MemoryTables, streams: Streams) -> None:
    (event,) = numbered(0, 1)
    store(tables, tip(1, [{"M": {**event["M"], "D": number(99)}}]))

    with pytest.raises(CorruptData, match="unknown body encoding 99"):
        list(streams.read(STREAM))
