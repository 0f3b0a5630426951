"""Imports into pages: resumable from anywhere, every event once, with its id, its time and its place in the history."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from epochal.errors import InvalidInput
from epochal.model.bodies import Body
from epochal.model.events import Event
from epochal.plan.ops import Op, Reply, Transact
from epochal.store.listings import listings_of
from epochal.store.tagged_importer import Imported, ImportedEvent, TaggedImporter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables, memory_tagged_events


class Killed(Exception):
    """The process ends here."""


def history(count: int, *, size: int = 10, apart: int = 1) -> list[ImportedEvent]:
    """Events of one tag that all have, and of one of three; `apart` of them at each second of a minute."""
    return [
        ImportedEvent(
            event=Event(
                type=f"T{nth % 2}",
                data=bytes([nth % 256]) * size,
                meta=b"{}" if nth % 2 else b"",
                tags=("all:1", f"some:{nth % 3}"),
                id=str(uuid.UUID(int=nth + 1)),
            ),
            timestamp=f"1997-05-23T21:20:{nth // apart % 60:02}.1234567+00:00",
        )
        for nth in range(count)
    ]


def stored(tables: MemoryTables) -> list[tuple[str, str, str, Body]]:
    found = listings_of(memory_tagged_events(tables)).tagged("all:1")
    return [(each.id, each.type, each.timestamp, each.data) for each in found]


def expected(events: list[ImportedEvent]) -> list[tuple[str | None, str, str, Body]]:
    return [(each.event.id, each.event.type, each.timestamp, each.event.data) for each in events]


@pytest.mark.parametrize(("count", "size", "apart"), [(150, 10, 1), (150, 10, 150), (12, 60_000, 3)])
def test_a_history_is_imported_whole_with_its_ids_and_times(count: int, size: int, apart: int) -> None:
    tables = memory_tables()
    events = sorted(history(count, size=size, apart=apart), key=lambda each: each.timestamp)
    heard: list[Imported] = []
    done = TaggedImporter(store=memory_tagged_events(tables)).run(events, progress=heard.append)
    assert done == heard[-1] == Imported(read=count, written=count, renumbered=count)
    assert len(heard) > 1
    assert stored(tables) == expected(events)
    assert TaggedImporter(store=memory_tagged_events(tables)).run(events) == Imported(read=count, found=count)


def test_an_import_that_follows_later_events_keeps_its_times_all_the_same() -> None:
    tables = memory_tables()
    memory_tagged_events(tables).append([Event(type="Late", tags=("all:1",))])
    events = history(40)
    TaggedImporter(store=memory_tagged_events(tables)).run(events)
    assert stored(tables)[1:] == expected(events)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("answered", [True, False])
def test_whatever_ends_a_run_the_next_one_writes_what_is_missing(at: int, *, answered: bool) -> None:
    tables = memory_tables()
    events = history(150)
    left = iter(range(at))

    def dying(op: Op) -> Reply:
        if isinstance(op, Transact) and next(left, None) is None:
            if answered:
                tables.execute(op)
            raise Killed
        return tables.execute(op)

    store = memory_tagged_events(tables)
    killed = replace(store, driver=replace(store.driver, execute=dying))
    if at < 2:
        with pytest.raises(Killed):
            TaggedImporter(store=killed).run(events)
    done = TaggedImporter(store=memory_tagged_events(tables)).run(events)
    assert done.read == 150
    assert stored(tables) == expected(events)


def test_an_id_that_stands_twice_in_a_history_is_imported_once() -> None:
    tables = memory_tables()
    first, second = history(2)
    done = TaggedImporter(store=memory_tagged_events(tables)).run([first, first, second, first])
    assert (done.read, done.written, done.found) == (4, 2, 2)
    assert stored(tables) == expected([first, second])


def test_an_id_that_is_there_with_other_contents_is_named_by_its_place() -> None:
    store = memory_tagged_events()
    events = history(3)
    TaggedImporter(store=store).run(events)
    for changed in (
        ImportedEvent(event=events[1].event, timestamp="1998-01-01T00:00:00Z"),
        ImportedEvent(event=Event(type="Other", id=events[1].event.id), timestamp=events[1].timestamp),
    ):
        with pytest.raises(InvalidInput, match=r"history\[1\]: the id .* belongs to another event"):
            TaggedImporter(store=store).run([events[0], changed])
