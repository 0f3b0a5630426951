"""Events copied to an archive before they are pruned, and read through to it afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, product
from random import Random

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.errors import InvalidInput
from epochal.index.checkpoints import calf_key
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event, Recorded
from epochal.plan.ops import Execute, Get, Op, Query, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, MemoryTables
from tests.contrib.equinox.layout.items import STREAM
from tests.support.stream_layouts import LAYOUTS

EVENTS = 20


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables({"live": TIPS, "archive": TIPS})


def over(tables: MemoryTables, execute: Execute | None = None) -> Streams:
    driver = Driver(execute=execute or tables.execute, meter=Meter(), sleep=lambda _: None)
    archive = Streams(driver=driver, table="archive", layout=Tips())
    return Streams(
        driver=driver,
        table="live",
        archive=archive,
        layout=Tips(calving=Fixed(max_events=3, mode="two-step")),
    )


@pytest.fixture
def live(tables: MemoryTables) -> Streams:
    """A stream of which each event's body is its index."""
    streams = over(tables)
    for index in range(EVENTS):
        streams.append(STREAM, [Event(type="E", data=b"%d" % index)])
    return streams


def test_an_archive_holds_streams_as_the_table_does(tables: MemoryTables) -> None:
    class Others(Tips):
        name = "others"

    streams = over(tables)
    assert streams.archive is not None
    with pytest.raises(InvalidInput, match="archive"):
        replace(streams, archive=replace(streams.archive, layout=Others()))


def bodies(events: Iterable[Recorded]) -> list[int]:
    return [int(event.data) for event in events]


@pytest.mark.parametrize("pruned", [1, 3, 10, EVENTS])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_read_goes_through_to_the_archive_where_the_table_was_pruned(
    live: Streams, pruned: int, direction: Direction
) -> None:
    before = list(live.read(STREAM, direction=direction))
    assert live.copy_to_archive(STREAM, pruned) == pruned
    live.prune(STREAM, pruned)

    assert list(live.read(STREAM, direction=direction)) == before
    for start in range(EVENTS):
        for limit in (1, 4):
            ahead = before[start:] if direction == "forward" else before[EVENTS - 1 - start :]
            assert list(live.read(STREAM, start=start, limit=limit, direction=direction)) == ahead[:limit]
            assert (
                list(live.page(STREAM, start=start, limit=limit, direction=direction).events) == ahead[:limit]
            )


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("requests", range(4))
def test_what_is_pruned_while_a_stream_is_read_is_read_from_the_archive(
    tables: MemoryTables, layout: AnyStreamLayout, direction: Direction, requests: int
) -> None:
    """Only the page itself tells that it has been pruned in part since its stream's head was read."""
    archive = replace(over(tables), table="archive", layout=layout, archive=None)
    other = replace(archive, table="live", archive=archive)
    luck = Random(1)
    for _ in range(90):
        other.append(STREAM, [Event(type="E", data=luck.randbytes(300))])
    before = list(other.read(STREAM, direction=direction))
    assert len(before) == 90
    for pruned in range(2, 90, 4):
        left = iter([False] * requests + [True])

        def meanwhile(op: Op, pruned: int = pruned, left: Iterator[bool] = left) -> Reply:
            if next(left, False):
                other.archive_and_prune(STREAM, pruned)
            return tables.execute(op)

        driver = replace(other.driver, execute=meanwhile)
        reading = replace(other, driver=driver, archive=replace(archive, driver=driver))
        assert list(reading.read(STREAM, direction=direction)) == before


def test_pages_join_across_the_boundary(live: Streams) -> None:
    live.copy_to_archive(STREAM, 10)
    live.prune(STREAM, 10)
    for direction in ("forward", "backward"):
        found: list[int] = []
        at: int | None = None
        while True:
            page = live.page(STREAM, start=at, limit=3, direction=direction)
            found += bodies(page.events)
            at = page.next
            if at is None:
                break
        assert sorted(found) == list(range(EVENTS))


def test_copying_again_copies_only_what_is_missing(live: Streams) -> None:
    assert live.copy_to_archive(STREAM, 5) == 5
    assert live.copy_to_archive(STREAM, 5) == 5
    assert live.copy_to_archive(STREAM, 12) == 12
    assert live.archive is not None
    assert bodies(live.archive.read(STREAM)) == list(range(12))


def test_copies_are_equal_to_the_byte_append_ids_included(live: Streams) -> None:
    live.copy_to_archive(STREAM, EVENTS)

    assert live.archive is not None
    assert list(live.archive.read(STREAM)) == list(live.read(STREAM))


@pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST, Fault.THROTTLED])
def test_copying_is_done_once_whichever_request_goes_wrong(
    tables: MemoryTables, live: Streams, fault: Fault
) -> None:
    for at in count():
        copy = tables.copy()
        faults = Faults(copy.execute, {at: fault})
        streams = over(copy, faults.execute)

        assert streams.copy_to_archive(STREAM, 17) == 17
        assert streams.archive is not None
        assert bodies(streams.archive.read(STREAM)) == list(range(17))
        if faults.requests <= at:
            break


def test_what_was_pruned_unarchived_cannot_be_archived_and_says_so(live: Streams) -> None:
    live.prune(STREAM, 5, unarchived=True)

    with pytest.raises(InvalidInput, match="events 0 to 4 were pruned, but never archived"):
        live.copy_to_archive(STREAM, 10)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("first", [0, 2, 9])
def test_what_another_archives_and_prunes_meanwhile_is_not_said_to_be_lost(layout: str, first: int) -> None:
    tables = MemoryTables({"live": TIPS, "archive": TIPS})

    def laid_out(streams: Streams) -> Streams:
        chosen = LAYOUTS[layout]
        archive = streams.archive and replace(streams.archive, layout=chosen)
        return replace(streams, layout=chosen, archive=archive)

    other = laid_out(over(tables))
    for _ in range(EVENTS):
        other.append(STREAM, [Event(type="E", data=bytes(900))])
    other.archive_and_prune(STREAM, first)
    waiting = [EVENTS - 1]

    def meanwhile(op: Op) -> Reply:
        if isinstance(op, Get | Query) and op.table == "live" and waiting:
            other.archive_and_prune(STREAM, waiting.pop())
        return tables.execute(op)

    pruned = laid_out(over(tables, meanwhile)).archive_and_prune(STREAM, EVENTS)

    assert not waiting
    assert pruned is not None
    assert pruned.low_water == EVENTS
    assert len(list(other.read(STREAM))) == EVENTS


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("new", [0, 2, 5])
def test_a_table_that_was_restored_beside_a_later_archive_loses_nothing_to_a_prune(
    tables: MemoryTables, layout: AnyStreamLayout, new: int
) -> None:
    """The archive has events of the stream that the restored table has lost, where others are now."""
    archive = replace(over(tables), table="archive", layout=layout, archive=None)
    streams = replace(archive, table="live", archive=archive)
    for _ in range(5):
        streams.append(STREAM, [Event(type="Kept")])
    restored = tables.copy()
    for _ in range(3):
        streams.append(STREAM, [Event(type="Lost")])
    streams.archive_and_prune(STREAM, 8)

    def execute(op: Op) -> Reply:
        return (restored if getattr(op, "table", "") == "live" else tables).execute(op)

    streams = over(tables, execute)
    assert streams.archive is not None
    streams = replace(streams, layout=layout, archive=replace(streams.archive, layout=layout))
    for _ in range(new):
        streams.append(STREAM, [Event(type="New")])
    for act, below in product((streams.archive_and_prune, streams.prune), (5, 7, 9)):
        with pytest.raises(InvalidInput, match="archive: differs in event 7 of Flight-1, as after a restore"):
            act(STREAM, below)
    assert [each.type for each in streams.read(STREAM)] == ["Kept"] * 5 + ["New"] * new


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_tables_that_were_restored_to_one_moment_go_on_archiving(
    tables: MemoryTables, layout: AnyStreamLayout
) -> None:
    archive = replace(over(tables), table="archive", layout=layout, archive=None)
    streams = replace(archive, table="live", archive=archive)
    streams.append(STREAM, [Event(type="E", tags=("a:1",) if layout.name == "pages" else ())] * 5)
    streams.archive_and_prune(STREAM, 5)
    restored = over(tables.copy())
    streams = replace(streams, driver=restored.driver, archive=replace(archive, driver=restored.driver))
    streams.append(STREAM, [Event(type="New")] * 3)
    found = streams.archive_and_prune(STREAM, 8)
    assert found is not None
    assert found.low_water == 8
    assert len(list(streams.read(STREAM))) == 8


@pytest.mark.timeout(20)
def test_a_stream_that_was_deleted_from_the_archive_is_neither_copied_there_for_ever_nor_pruned(
    tables: MemoryTables, live: Streams
) -> None:
    assert live.archive is not None
    live.copy_to_archive(STREAM, 10)
    live.archive.delete(STREAM)
    before = list(tables.items("live"))

    for act in (live.copy_to_archive, live.archive_and_prune):
        for beyond in (5, 15):
            with pytest.raises(
                InvalidInput,
                match="archive: contains Flight-1 as a deleted stream, and takes no more of its events",
            ):
                act(STREAM, beyond)
    with pytest.raises(InvalidInput, match="the archive has only the events below 0"):
        live.prune(STREAM, 5)
    assert list(tables.items("live")) == before


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("gone", [1, 3, 5, None])
def test_an_archive_that_has_been_pruned_itself_takes_what_follows(
    tables: MemoryTables, layout: AnyStreamLayout, gone: int | None
) -> None:
    archive = replace(over(tables), table="archive", layout=layout, archive=None)
    streams = replace(archive, table="live", archive=archive)
    streams.append(STREAM, [Event(type="E")] * 3)
    streams.append(STREAM, [Event(type="E")] * 2)
    streams.copy_to_archive(STREAM, 5)
    if gone is None:
        archive.delete(STREAM, leave_open=True)
    else:
        archive.prune(STREAM, gone)

    streams.append(STREAM, [Event(type="E")] * 3)

    assert streams.copy_to_archive(STREAM, 8) == 8
    assert [each.index for each in archive.read(STREAM)] == list(range(5 if gone is None else gone, 8))


def test_copying_needs_an_archive(live: Streams) -> None:
    with pytest.raises(InvalidInput, match="archive"):
        replace(live, archive=None).copy_to_archive(STREAM, 5)


def test_a_stream_that_does_not_exist_is_archived_as_nothing(tables: MemoryTables) -> None:
    live = over(tables)

    assert live.copy_to_archive("Nothing-1", 5) == 0
    assert tables.execute(Get(table="archive", key=calf_key("Nothing-1", 0))).item is None
