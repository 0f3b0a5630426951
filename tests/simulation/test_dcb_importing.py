"""Imports beside writers with conditions: killed anywhere and run again, a history arrives once, whole and in order."""

from __future__ import annotations

import random
import uuid

from epochal.contrib.sekiban.opening import DcbImporter
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import Unavailable
from epochal.model.events import Event
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.tags import Query
from epochal.plan.ops import Execute
from epochal.store.tagged_importer import ImportedEvent
from epochal.testing.memory import Faults
from tests.simulation.dcb_history import Attempt, History, Known, check_tables
from tests.simulation.dcb_simulation import TAGS, TYPES
from tests.simulation.dcb_world import World, piecemeal, query
from tests.simulation.histories import schedule
from tests.simulation.scheduler import Body, Process, mortal, run
from tests.simulation.seeds import ranges
from tests.simulation.world import NOON

SIZE, COUNT = 10, 4
EVENTS = 90
QUERIES = (query(("T", "a:1")), query(("", "a:1 b:1"), ("U", "a:2")))


def history(luck: random.Random) -> list[ImportedEvent]:
    """Events of the year before, in order, of all tags."""
    began = from_unix_nanoseconds(NOON - 365 * 24 * 3600 * 10**9)
    return [
        ImportedEvent(
            event=Event(
                type=luck.choice(TYPES),
                data=b"{}",
                tags=tuple(luck.sample(TAGS, luck.choice((0, 1, 2, 3)))),
                id=str(uuid.UUID(int=luck.getrandbits(128), version=4)),
            ),
            timestamp=format_ticks(began + number),
        )
        for number in range(EVENTS)
    ]


def importing(world: World, events: list[ImportedEvent], dies_after: int) -> Body:
    def body(execute: Execute) -> None:
        DcbImporter(store=world.store("importer", mortal(piecemeal(execute), dies_after))).run(events)

    return body


def writing(judged: History, seed: int) -> Body:
    """Read, then append after what was read, a few times."""

    def decide(store: DcbEvents, asked: Query, event_id: int) -> Attempt:
        seen = store.read(asked)
        ids = frozenset(event.id for event in seen.events)
        own = Event(type="T", data=b"{}", tags=TAGS, id=str(uuid.UUID(int=event_id, version=4)))
        return Attempt(events=(own,), query=asked, known=Known(query=asked, position=seen.position, seen=ids))

    def body(execute: Execute) -> None:
        store = judged.world.store(f"writer {seed}", piecemeal(execute))
        for number, asked in enumerate((*QUERIES, *QUERIES)):
            attempt = decide(store, asked, seed * 10 + number)
            judged.attempts.append(attempt)
            after = None if attempt.known is None else attempt.known.position
            attempt.outcome = store.try_append(attempt.events, fail_if=asked, after=after)

    return body


def play(seed: int) -> None:
    luck, world = random.Random(seed), World()
    judged, events = History(world), history(luck)
    deaths = [luck.randint(1, 12) for _ in range(luck.randint(1, 3))]
    for number, dies_after in enumerate(deaths):
        bodies = {
            "import": importing(world, events, dies_after),
            "writer": writing(judged, 10 * seed + number + 1),
        }
        faults = {name: Faults(world.tables.execute, schedule(luck, 0.1, 40)) for name in bodies}
        run({name: Process(name, faults[name].execute, body) for name, body in bodies.items()}, luck.choice)
        for each in faults.values():
            each.land()
    done = DcbImporter(store=world.store("importer, again")).run(events)

    assert done.read == EVENTS == done.written + done.found
    check_tables(world)
    judged.check_answers()
    check_history(world, events)


def check_history(world: World, events: list[ImportedEvent]) -> None:
    """Every event is there once, and those of a tag follow each other as they did."""
    wanted = [each.event.id for each in events]
    stored = [each for each in world.events() if each.id in set(wanted)]
    assert sorted(each.id for each in stored) == sorted(filter(None, wanted))
    for tag, ids in world.places().items():
        kept = [event_id for event_id in ids if event_id in set(wanted)]
        assert kept == sorted(kept, key=wanted.index), f"tag {tag}: out of order"
    times = {each.event.id: each.timestamp for each in events}
    assert all(each.timestamp == times[each.id] for each in stored)


@ranges(SIZE, COUNT, check=False)
def test_an_import_killed_and_run_again_beside_writers_arrives_once_whole_and_in_order(seeds: range) -> None:
    for seed in seeds:
        try:
            play(seed)
        except (AssertionError, Unavailable) as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
