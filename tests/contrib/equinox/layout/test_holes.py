"""Events that are gone are told: a read is contiguous, or says what it lacks, whoever pruned, whenever, and however it
is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count, pairwise

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.errors import CorruptData, EventsPruned, InvalidInput
from epochal.index.checkpoints import calf_key
from epochal.model.events import Event, Recorded
from epochal.plan.ops import Delete, Execute, Op, Put, Query, Reply
from epochal.plan.values import Item, number
from epochal.store.driver import Driver, Meter
from epochal.store.reading import Direction, Hole, StreamPage
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.contrib.equinox.layout.items import STREAM, TABLE, calf, numbered, tip

EVENTS = 12

ARCHIVE = "archive"

Pruner = Callable[[MemoryTables, int], Callable[[], object]]

BOTH: list[Direction] = ["forward", "backward"]


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables({TABLE: TIPS, ARCHIVE: TIPS})


def over(tables: MemoryTables, execute: Execute | None = None) -> Streams:
    driver = Driver(execute=execute or tables.execute, meter=Meter(), sleep=lambda _: None)
    return Streams(driver=driver, table=TABLE, layout=Tips(calving=Fixed(max_events=2, mode="two-step")))


def archived(streams: Streams) -> Streams:
    return replace(streams, archive=replace(streams, table=ARCHIVE))


def written(streams: Streams) -> Streams:
    """Twelve events, each of which has its index for a body; ten of them in calves of two."""
    for index in range(EVENTS):
        streams.append(STREAM, [Event(type="E", data=b"%d" % index)])
    return streams


def store(tables: MemoryTables, *items: Item, table: str = TABLE) -> None:
    for item in items:
        tables.execute(Put(table=table, item=item))


def indices(events: Iterable[Recorded]) -> list[int]:
    return [event.index for event in events]


def read(streams: Streams, direction: Direction) -> tuple[list[int], EventsPruned | None]:
    """The indices that were read, and what the reader was told then."""
    found: list[int] = []
    try:
        found.extend(event.index for event in streams.read(STREAM, direction=direction))
    except EventsPruned as pruned:
        return found, pruned
    return found, None


def pages(streams: Streams, direction: Direction, limit: int = 3) -> Iterator[StreamPage]:
    at: int | None = None
    for number_ in count():
        assert number_ < 50
        page = streams.page(STREAM, start=at, limit=limit, direction=direction)
        yield page
        at = page.next
        if at is None:
            return


def told(found: list[StreamPage]) -> set[int]:
    """Every index that pages gave, or said to be gone."""
    gone = {index for page in found if page.hole for index in range(page.hole.first, page.hole.end)}
    there = {event.index for page in found for event in page.events}
    assert not gone & there
    return gone | there


# ------------------------------------------------------------------------------- between the archive and what is there


@pytest.fixture
def torn(tables: MemoryTables) -> Streams:
    """A stream of which 0 to 2 are archived, 3 to 6 pruned unarchived, and 7 to 11 there."""
    streams = archived(written(over(tables)))
    streams.copy_to_archive(STREAM, 3)
    streams.prune(STREAM, 7, unarchived=True)
    return streams


@pytest.mark.parametrize("direction", BOTH)
def test_a_read_is_told_of_what_was_pruned_unarchived_where_it_comes_to_it(
    torn: Streams, direction: Direction
) -> None:
    found, pruned = read(torn, direction)

    assert pruned is not None
    assert (pruned.stream, pruned.needed, pruned.low_water) == (STREAM, 3, 7)
    assert found == ([0, 1, 2] if direction == "forward" else [11, 10, 9, 8, 7])


def test_a_read_that_begins_in_a_hole_is_told_and_one_that_does_not_come_to_it_is_not(torn: Streams) -> None:
    with pytest.raises(EventsPruned, match="from 5 on are needed, those below 7 are pruned"):
        list(torn.read(STREAM, start=5))

    assert indices(torn.read(STREAM, start=7)) == [7, 8, 9, 10, 11]
    assert indices(torn.read(STREAM, limit=3)) == [0, 1, 2]
    assert indices(torn.read(STREAM, start=2, direction="backward")) == [2, 1, 0]


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_pages_end_at_a_hole_and_the_next_one_names_it(
    torn: Streams, direction: Direction, limit: int
) -> None:
    found = list(pages(torn, direction, limit))

    assert [page.hole for page in found if page.hole] == [Hole(first=3, end=7)]
    assert told(found) == set(range(EVENTS))
    for page in found:
        there = sorted(event.index for event in page.events)
        assert there == list(range(there[0], there[0] + len(there)))


def test_where_nothing_was_archived_a_store_with_an_archive_says_so_and_one_without_begins_later(
    tables: MemoryTables,
) -> None:
    streams = written(over(tables))
    streams.prune(STREAM, 7)

    with pytest.raises(EventsPruned, match="from 0 on are needed, those below 7 are pruned"):
        list(archived(streams).read(STREAM))
    assert indices(streams.read(STREAM)) == [7, 8, 9, 10, 11]
    assert indices(streams.read(STREAM, direction="backward")) == [11, 10, 9, 8, 7]
    page = streams.page(STREAM)
    assert (page.hole, page.low_water, page.events[0].index) == (Hole(first=0, end=7), 7, 7)


@pytest.mark.parametrize("direction", BOTH)
def test_a_read_that_is_asked_to_begin_at_an_event_that_is_gone_is_told(
    tables: MemoryTables, direction: Direction
) -> None:
    streams = written(over(tables))
    streams.prune(STREAM, 7)

    for start in range(7):
        with pytest.raises(EventsPruned, match="those below") as told_of:
            list(streams.read(STREAM, start=start, limit=1, direction=direction))
        assert told_of.value.low_water == (7 if direction == "forward" else start + 1)
    assert indices(streams.read(STREAM, start=7, direction=direction))[0] == 7


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_pages_that_go_backward_name_what_is_gone_of_the_beginning(tables: MemoryTables, limit: int) -> None:
    streams = written(over(tables))
    streams.prune(STREAM, 7)

    found = list(pages(streams, "backward", limit))

    assert told(found) == set(range(EVENTS))
    assert [page.hole for page in found if page.hole] == [Hole(first=0, end=7)]
    assert found[-1].events, "no page more for it"


# --------------------------------------------------------------------------------------------- pruning what is archived


def test_what_is_not_archived_is_not_pruned_unless_asked_for(tables: MemoryTables) -> None:
    streams = archived(written(over(tables)))
    streams.copy_to_archive(STREAM, 5)
    before = list(tables.items(TABLE))

    for beyond in (6, EVENTS, 1_000):
        with pytest.raises(InvalidInput, match="before: the archive has only the events below 5"):
            streams.prune(STREAM, beyond)
    assert list(tables.items(TABLE)) == before

    streams.prune(STREAM, 5)
    assert indices(streams.read(STREAM)) == list(range(EVENTS))
    pruned = streams.prune(STREAM, 6, unarchived=True)
    assert pruned is not None
    assert pruned.low_water == 6


def test_all_of_a_stream_that_is_archived_may_be_pruned_and_what_comes_meanwhile_stays(
    tables: MemoryTables,
) -> None:
    streams = archived(written(over(tables)))
    streams.copy_to_archive(STREAM, EVENTS)
    seen = 0

    def appending(op: Op) -> Reply:
        nonlocal seen
        reply = tables.execute(op)
        seen += 1
        if seen == 2:
            over(tables).append(STREAM, [Event(type="E", data=b"12")])
        return reply

    slow = archived(over(tables, appending))

    pruned = slow.prune(STREAM, 1_000)

    assert pruned is not None
    assert pruned.low_water == EVENTS
    assert indices(streams.read(STREAM)) == list(range(EVENTS + 1))


def test_pruning_a_stream_that_does_not_exist_needs_no_archive(tables: MemoryTables) -> None:
    assert archived(over(tables)).prune("Nothing-1", 5) is None


# ------------------------------------------------------------------------------------------------------------ deletion


@pytest.mark.parametrize("direction", BOTH)
def test_a_stream_that_was_deleted_has_no_events_though_its_archive_has(
    tables: MemoryTables, direction: Direction
) -> None:
    streams = archived(written(over(tables)))
    streams.copy_to_archive(STREAM, EVENTS)
    streams.delete(STREAM)

    assert list(streams.read(STREAM, direction=direction)) == []
    page = streams.page(STREAM, direction=direction)
    assert (page.events, page.next, page.hole, page.deleted) == ((), None, None, True)
    assert streams.archive is not None
    assert len(list(streams.archive.read(STREAM))) == EVENTS


def test_a_stream_that_was_emptied_and_stays_open_goes_on_with_its_archive(tables: MemoryTables) -> None:
    streams = archived(written(over(tables)))
    streams.copy_to_archive(STREAM, EVENTS)
    streams.delete(STREAM, leave_open=True)
    streams.append(STREAM, [Event(type="E")])

    assert indices(streams.read(STREAM)) == list(range(EVENTS + 1))


# --------------------------------------------------------------------------------------- a prune that overtakes a read


def interrupted(tables: MemoryTables, after: int, act: Callable[[], object]) -> Streams:
    """A store that gets an item a request, and whose stream something happens to after so many."""
    left = after

    def perform(op: Op) -> Reply:
        nonlocal left
        reply = tables.execute(replace(op, limit=1) if isinstance(op, Query) else op)
        left -= 1
        if left == 0:
            act()
        return reply

    return over(tables, perform)


def pruner(tables: MemoryTables, before: int) -> Callable[[], object]:
    return lambda: over(tables).prune(STREAM, before)


def equinox(tables: MemoryTables, before: int) -> Callable[[], object]:
    """Calves go, oldest first."""

    def prune() -> None:
        for base in range(0, before, 2):
            tables.execute(Delete(table=TABLE, key=calf_key(STREAM, base)))

    return prune


PRUNERS = pytest.mark.parametrize("prune", [pruner, equinox], ids=["ours", "Equinox"])


@pytest.mark.slow
@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("before", [2, 4, 8, 10])
@pytest.mark.parametrize("direction", BOTH)
@PRUNERS
def test_a_read_that_a_prune_overtakes_has_no_hole_or_an_error(
    tables: MemoryTables, prune: Pruner, direction: Direction, before: int, after: int
) -> None:
    written(over(tables))

    found, pruned = read(interrupted(tables, after, prune(tables, before)), direction)

    if pruned is not None:
        assert direction == "forward"
        assert (pruned.needed, pruned.low_water) == (found[-1] + 1, before)
    else:
        assert max(found) == 11
        assert min(found) <= before
    assert all(abs(one - other) == 1 for one, other in pairwise(found))


@PRUNERS
def test_a_read_that_has_begun_below_a_prune_is_told(tables: MemoryTables, prune: Pruner) -> None:
    """So that the test above proves something."""
    written(over(tables))

    found, pruned = read(interrupted(tables, 3, prune(tables, 8)), "forward")

    assert found == [0, 1, 2, 3]
    assert pruned is not None
    assert "from 4 on are needed, those below 8 are pruned" in str(pruned)


def test_a_read_whose_stream_is_emptied_under_it_is_told(tables: MemoryTables) -> None:
    written(over(tables))
    with pytest.raises(EventsPruned, match="from 4 on are needed, those below 12 are pruned"):
        list(interrupted(tables, 3, lambda: over(tables).delete(STREAM)).read(STREAM))


@pytest.mark.slow
@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("before", [2, 4, 8, 10])
@pytest.mark.parametrize("direction", BOTH)
@PRUNERS
def test_pages_that_a_prune_overtakes_tell_what_is_gone(
    tables: MemoryTables, prune: Pruner, direction: Direction, before: int, after: int
) -> None:
    written(over(tables))

    found = list(pages(interrupted(tables, after, prune(tables, before)), direction, limit=100))

    assert told(found) == set(range(EVENTS))


@pytest.mark.slow
@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("direction", BOTH)
@PRUNERS
def test_a_read_that_a_prune_overtakes_goes_on_with_the_archive(
    tables: MemoryTables, prune: Pruner, direction: Direction, after: int
) -> None:
    archived(written(over(tables))).copy_to_archive(STREAM, 8)
    streams = interrupted(tables, after, prune(tables, 8))

    found = indices(archived(streams).read(STREAM, direction=direction))

    assert sorted(found) == list(range(EVENTS))


# ------------------------------------------------------------------------------------------------- pruned by Equinox

TRIMMED: dict[str, tuple[int, list[Item]]] = {
    "calves deleted": (4, [calf(4, numbered(4, 6)), calf(6, numbered(6, 8)), tip(10, numbered(8, 10))]),
    "all calves deleted": (8, [tip(10, numbered(8, 10))]),
    # What its latest write appended is said as before.
    "the Tip trimmed": (9, [tip(10, numbered(9, 10), a=number(2))]),
    "the Tip emptied": (10, [tip(10, a=number(2))]),
    "trimmed, and appended to since": (9, [tip(12, numbered(9, 12), a=number(2))]),
    "trimmed, and calved since": (9, [calf(9, numbered(9, 12)), tip(13, numbered(12, 13))]),
    "after a prune of ours": (6, [calf(6, numbered(6, 8)), tip(10, numbered(8, 10), l=number(3))]),
    "its Tip without an etag": (4, [calf(4, numbered(4, 8)), {**tip(9, numbered(8, 9)), "a": number(1)}]),
}
"""Its pruner deletes calves, oldest first, then cuts events off the Tip under a new etag, and leaves no mark."""


@pytest.mark.parametrize(("first", "items"), TRIMMED.values(), ids=TRIMMED)
def test_a_stream_that_equinox_pruned_begins_with_the_first_event_there_is(
    tables: MemoryTables, first: int, items: list[Item]
) -> None:
    store(tables, *items)
    streams = over(tables)
    end = int(items[-1]["n"]["N"])

    assert [int(event.data) for event in streams.read(STREAM)] == list(range(first, end))
    assert indices(streams.read(STREAM, direction="backward")) == list(range(first, end))[::-1]
    for start in range(end):
        wanted = list(range(max(start, first), end))
        for direction in BOTH:
            if start < first:
                with pytest.raises(EventsPruned):
                    list(streams.read(STREAM, start=start, direction=direction))
        if start >= first:
            assert indices(streams.read(STREAM, start=start)) == wanted
            backward = streams.read(STREAM, start=start, direction="backward")
            assert indices(backward) == list(range(first, start + 1))[::-1]
        page = streams.page(STREAM, start=start)
        assert indices(page.events) == wanted
        assert page.hole == (Hole(first=start, end=first) if start < first else None)
        if start < first:
            assert page.low_water == first


@pytest.mark.parametrize(("first", "items"), TRIMMED.values(), ids=TRIMMED)
@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_it_tell_what_is_gone(
    tables: MemoryTables, first: int, items: list[Item], direction: Direction, limit: int
) -> None:
    store(tables, *items)

    found = list(pages(over(tables), direction, limit))

    assert told(found) == set(range(int(items[-1]["n"]["N"])))
    assert [page.hole for page in found if page.hole] == [Hole(first=0, end=first)]


@pytest.mark.parametrize(("first", "items"), TRIMMED.values(), ids=TRIMMED)
@pytest.mark.parametrize("direction", BOTH)
def test_its_archive_is_read_first(
    tables: MemoryTables, first: int, items: list[Item], direction: Direction
) -> None:
    store(tables, *items)
    store(tables, tip(first, numbered(0, first)), table=ARCHIVE)
    streams = archived(over(tables))
    end = int(items[-1]["n"]["N"])

    found = [int(event.data) for event in streams.read(STREAM, direction=direction)]

    assert sorted(found) == list(range(end))
    assert told(list(pages(streams, direction))) == set(range(end))


@pytest.mark.parametrize(("first", "items"), TRIMMED.values(), ids=TRIMMED)
@pytest.mark.parametrize("direction", BOTH)
def test_what_its_archive_lacks_is_told(
    tables: MemoryTables, first: int, items: list[Item], direction: Direction
) -> None:
    store(tables, *items)
    store(tables, tip(2, numbered(0, 2)), table=ARCHIVE)
    streams = archived(over(tables))

    with pytest.raises(EventsPruned, match=f"from 2 on are needed, those below {first} are pruned"):
        list(streams.read(STREAM, direction=direction))
    found = list(pages(streams, direction))
    assert [page.hole for page in found if page.hole] == [Hole(first=2, end=first)]


def test_what_equinox_pruned_unarchived_cannot_be_archived_and_says_so(tables: MemoryTables) -> None:
    store(tables, *TRIMMED["calves deleted"][1])

    with pytest.raises(InvalidInput, match="events 0 to 3 were pruned, but never archived"):
        archived(over(tables)).copy_to_archive(STREAM, 8)


MIDDLE: dict[str, list[Item]] = {
    "between calves": [calf(2, numbered(2, 4)), calf(6, numbered(6, 8)), tip(10, numbered(8, 10))],
    "below the Tip": [calf(2, numbered(2, 4)), tip(10, numbered(8, 10))],
    "above a mark of ours": [calf(2, numbered(2, 4)), tip(10, numbered(8, 10), l=number(3))],
}


@pytest.mark.parametrize("items", MIDDLE.values(), ids=MIDDLE)
@pytest.mark.parametrize("direction", BOTH)
def test_a_hole_above_events_that_are_there_is_corruption_and_no_pruning(
    tables: MemoryTables, items: list[Item], direction: Direction
) -> None:
    """Whoever prunes deletes the oldest first."""
    store(tables, *items)

    with pytest.raises(CorruptData, match=r"event \d is in no item"):
        list(over(tables).read(STREAM, direction=direction))


def test_calves_below_a_mark_of_ours_do_not_make_a_middle_of_a_beginning(tables: MemoryTables) -> None:
    """Pruned by us to 4, though a calf is still to be deleted; then pruned by Equinox to 6."""
    store(tables, calf(0, numbered(0, 2)), calf(6, numbered(6, 8)), tip(10, numbered(8, 10), l=number(4)))

    assert indices(over(tables).read(STREAM)) == [6, 7, 8, 9]
