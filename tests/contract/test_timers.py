"""The table of timers: memory and DynamoDB Local find, count and order its items alike, and timers fire on both."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.timers.care import coming
from epochal.contrib.timers.engine import Engine
from epochal.contrib.timers.protocol import MINUTE, Armed, Wake, due, read_armed
from epochal.dynamo.interpreter import carrier_interpreter
from epochal.layout.tables import TIMERS
from epochal.model.events import Event
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds
from epochal.model.tags import Query, QueryItem
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.ops import Execute
from epochal.scheduling import after, later
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.support.contract_run import PREFIX
from tests.support.tables import light, make

BEGIN = 1_790_000_040 * 10**9
"""The beginning of a minute."""


@dataclass
class World:
    """A store of streams and tags with an engine, and the clock of both."""

    execute: Execute
    streams_table: str
    timers_table: str
    time: int = BEGIN

    @property
    def streams(self) -> Streams:
        driver = Driver(execute=self.execute, meter=Meter(), at_once=4)
        return Streams(driver=driver, table=self.streams_table, layout=Pages(), now=lambda: self.time)

    @property
    def engine(self) -> Engine:
        streams = self.streams
        return Engine(
            driver=streams.driver,
            table=self.timers_table,
            streams={"pages": streams},
            tagged={"pages": streams.tagged},
            send=lambda _: None,
            now=lambda: self.time,
        )

    def ticks(self, seconds: float = 0) -> Ticks:
        return Ticks(from_unix_nanoseconds(BEGIN) + round(seconds * PER_SECOND))


@pytest.fixture(params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "memory":
        tables = MemoryTables({"streams": STREAMS, "timers": TIMERS})
        yield World(execute=tables.execute, streams_table="streams", timers_table="timers")
        return
    endpoint: Endpoint = request.getfixturevalue("ddbl")
    client, names = endpoint.client("dynamodb"), [f"{PREFIX}timers-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    for name, spec in zip(names, (STREAMS, TIMERS), strict=True):
        make(client, spec, name)
    carrier = light(endpoint)
    yield World(execute=carrier_interpreter(carrier), streams_table=names[0], timers_table=names[1])
    carrier.close()


def test_a_slot_has_what_is_due_from_its_first_moment_on_and_before_its_last(world: World) -> None:
    at = [world.ticks(seconds) for seconds in (-1e-7, 0, 0.5, 59.9999999, 60)]
    timers = [Armed(due=each, layout="pages", stream="Loan-1", place=n) for n, each in enumerate(at)]
    world.engine.arm_all(timers)
    slot = Wake.of_slot(timers[1])
    query = due(world.timers_table, slot.shard, slot.since, slot.until, limit=10)
    found = [read_armed(each) for each in world.engine.driver.ask(query).items]
    assert found == timers[1:4]
    assert slot.until - slot.since == MINUTE


def test_timers_of_streams_and_tags_fire_in_order_and_their_items_go(world: World) -> None:
    made = [Event.json("Made", {})]
    armed = list[Armed]()
    for number in range(12):
        stream, seconds = f"Loan-{number % 4}", 60 + 10 * (11 - number)
        place = world.streams.append(stream, [later(f"n{number}", made, at=after(seconds=seconds))]).first
        armed.append(Armed(due=world.ticks(seconds), layout="pages", stream=stream, place=place))
    tags = ("loan:1", "member:2")
    setting = later("tagged", [Event.json("Made", {}, tags=tags[:1])], at=after(seconds=90), tags=tags)
    (stored,) = world.streams.tagged.append([setting]).events
    armed.append(Armed(due=world.ticks(90), layout="pages", stream="", place=stored.id, tags=tags))
    world.engine.arm_all(armed)
    assert [each.due for each in coming(world.engine)] == sorted(each.due for each in armed)
    world.time += 101 * 10**9
    worked = world.engine.sweep(grace=Ticks(0))
    assert (worked.fired, worked.failures) == (6, [])
    world.time += 400 * 10**9
    assert world.engine.sweep(grace=Ticks(0)).fired == 7
    for number in range(4):
        fired = [
            each.json()["name"]
            for each in world.streams.read(f"Loan-{number}")
            if each.type == "$timer-fired"
        ]
        assert fired == [f"n{each}" for each in (number + 8, number + 4, number)]
    seen = world.streams.tagged.read(Query(items=(QueryItem(tags=frozenset({"loan:1"})),)))
    assert [each.type for each in seen.events] == ["$timer-set", "Made", "$timer-fired"]
    assert list(coming(world.engine)) == []
