"""Pruning over HTTP where the deployment has an archive: what goes is copied first, and can still be read."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from epochal.codec import json
from epochal.contrib.equinox.port import ARCHIVE, TIPS
from epochal.contrib.equinox.streams import Tips, tips_of
from epochal.deployment import Deployment
from epochal.errors import InvalidInput, Unavailable
from epochal.http import streams
from epochal.http.operation import Request
from epochal.model.events import Event
from epochal.plan.ops import Op, Put, Reply
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket
from tests.support.api import Clock

STREAM = "Cat-1"
EVENTS = 60
SETTINGS = Settings.of(tips_table=TIPS.kind, archive_table=ARCHIVE.kind)


class World:
    """A stream in calves, and an empty archive, on a clock of the test's."""

    def __init__(self) -> None:
        self.tables = MemoryTables({spec.kind: spec for spec in (TIPS, ARCHIVE)})
        self.clock = Clock()
        self.seconds = 0.0
        driver = Driver(execute=self.execute, meter=Meter(), clock=self.clock, sleep=self.clock.sleep)
        self.deployment = Deployment(settings=SETTINGS, driver=driver, bucket=MemoryBucket())
        self.streams = tips_of(SETTINGS, driver, BodyCodec())
        for number in range(EVENTS):
            self.streams.append(STREAM, [Event(type="E", data=Random(number).randbytes(9_000))])

    def execute(self, op: Op) -> Reply:
        """Every request takes a while."""
        self.clock.sleep(self.seconds)
        return self.tables.execute(op)

    def prune(self, before: int, *, seconds: float = 25.0) -> Any:
        body = json.dumps({"before": before})
        headers = {"content-type": "application/json"}
        request = Request(path={"stream": STREAM}, body=body, headers=headers, seconds=seconds)
        answer = streams.prune_stream(streams.opened(self.deployment, "tips"), request)
        return answer, json.loads(answer.body.encode())

    def numbers(self) -> list[int]:
        """What a caller reads, by pages."""
        opened = streams.opened(self.deployment, "tips")
        found: list[int] = []
        start: int | None = 0
        while start is not None:
            request = Request(path={"stream": STREAM}, query=(("from", str(start)),))
            answer: Any = streams.read_events(opened, request)
            page = json.loads(answer.body.encode())
            found += [event["index"] for event in page["events"]]
            start = page["next"]
        return found


@pytest.fixture
def world() -> World:
    return World()


def test_pruned_events_are_read_from_the_archive(world: World) -> None:
    answer, body = world.prune(40)
    assert (answer.status, body["lowWater"]) == (200, 40)
    assert world.numbers() == list(range(EVENTS))
    left = Streams(driver=world.streams.driver, table="tips", layout=Tips()).read(STREAM)
    assert next(left).index == 40


def test_what_copying_costs_is_counted_with_the_request(world: World) -> None:
    answer, _ = world.prune(40)
    assert answer.figures["WriteUnits"] > 40 * 9, "the events' bytes are written once more"


@pytest.mark.slow
def test_a_request_that_runs_out_of_time_loses_nothing_and_the_next_goes_on(world: World) -> None:
    world.seconds = 1.0
    refusals = 0
    while True:
        try:
            answer, body = world.prune(50, seconds=8.0)
            break
        except Unavailable:
            refusals += 1
            world.seconds = 0.0
            assert world.numbers() == list(range(EVENTS))
            world.seconds = 1.0
    assert (answer.status, body["lowWater"]) == (200, 50)
    assert refusals >= 1
    world.seconds = 0.0
    assert world.numbers() == list(range(EVENTS))


def test_what_is_appended_while_events_are_copied_is_not_pruned(world: World) -> None:
    """Whoever prunes all there is would else prune what came after the copy, and is in no archive."""
    execute = world.tables.execute
    late: list[int] = []

    def racing(op: Op) -> Reply:
        reply = execute(op)
        if isinstance(op, Put) and op.table == ARCHIVE.kind and not late:
            late.append(EVENTS)
            Streams(driver=Driver(execute=execute, meter=Meter()), table="tips", layout=Tips()).append(
                STREAM, [Event(type="E")]
            )
        return reply

    driver = Driver(execute=racing, meter=Meter())
    world.deployment = Deployment(settings=SETTINGS, driver=driver, bucket=MemoryBucket())
    world.prune(EVENTS + 1)
    assert late
    assert world.numbers() == list(range(EVENTS + 1))


def test_a_stream_that_was_pruned_before_there_was_an_archive_is_refused(world: World) -> None:
    Streams(driver=world.streams.driver, table="tips", layout=Tips()).prune(STREAM, 10)
    with pytest.raises(InvalidInput, match="never archived"):
        world.prune(20)
    assert world.streams.load(STREAM).low_water == 10  # type: ignore[union-attr]
