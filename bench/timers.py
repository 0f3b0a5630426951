"""What a timer costs from its setting to its firing, and how fast one waker fires those that are due in one minute.

Units are counted in memory, the same with timers that wait besides as without. Speed is of DynamoDB Local, where one
process fires timers of as many streams, 16 at a time, as the function does; and beside it boto3 sends the very same
requests, once the tables are as they were. `python -m bench.timers 1000000` has a million wait besides.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import get_ident
from typing import Any, Final, TypeVar

from botocore import xform_name
from botocore.config import Config

from bench.local import Local, dynamodb
from bench.report import Report
from epochal.care.table_creation import create_table
from epochal.contrib.timers.engine import Engine
from epochal.contrib.timers.protocol import MINUTE, SHARDS, Armed, Sent, Wake
from epochal.dynamo.carriers import Carrier, LightCarrier
from epochal.dynamo.interpreter import carrier_interpreter
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.signatures import FixedKeys
from epochal.layout.registry import source_of
from epochal.layout.tables import TIMERS, every_table
from epochal.model.events import Event
from epochal.model.moments import Ticks, from_unix_nanoseconds
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.ops import Op, Put, Reply
from epochal.plan.values import NONE, Units
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.scheduling import after, later
from epochal.store.driver import SIDE_BY_SIDE, Driver, Meter, ahead
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables

T = TypeVar("T")

TOGETHER: Final = 50
"""Timers that a run of the reaction arms, in streams of their own."""

OF_A_MINUTE: Final = 10_000
WAITING: Final = 100_000
LEAST_A_SECOND: Final = 10_000 / 60
"""What is due in a minute is to be fired within the next."""

OF_BARE: Final = 1.0
"""CPU of the process that fires, of what boto3 takes for the same requests."""

DAY: Final = 86_400 * 10**9
REMINDED: Final = [Event.json("Reminded", {"book": "b" * 200})]


class Counting(MemoryTables):
    """Tables that count the units of all requests."""

    units = NONE

    def execute(self, op: Op) -> Reply:
        """Perform a request, and count its units."""
        reply = super().execute(op)
        self.units += reply.units
        return reply

    def taken(self) -> Units:
        """Return the units since the previous call."""
        units, self.units = self.units, NONE
        return units


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Units of a timer: set on a token, armed and fired. Indexing is counted with the append."""

    setting: Units
    arming: Units
    firing: Units

    @property
    def whole(self) -> Units:
        """All units of the timer."""
        return self.setting + self.arming + self.firing


def life(waiting: int = 0, timers: int = TOGETHER) -> Life:
    """Return the units per timer of a number of timers that are set, armed by one run, and fired a day later."""
    now = [time.time_ns()]
    tables = Counting({spec.kind: spec for spec in every_table()})
    feed = MemoryStore(tables=tables)
    streams = replace(feed.streams, now=lambda: now[0])
    sent = list[Sent]()
    engine = Engine(
        driver=streams.driver,
        table=TIMERS.kind,
        streams={"pages": streams},
        tagged={},
        send=sent.append,
        now=lambda: now[0],
        at_once=1,
    )
    for item in waiting_items(waiting, now[0]):
        tables.execute(Put(table=TIMERS.kind, item=item))
    tokens = [streams.append(_loan(loan), [Event.json("Lent", {})]).token for loan in range(timers)]
    feed.react(engine.reaction())
    tables.taken()
    for number, token in enumerate(tokens):
        streams.append(_loan(number), [later("reminder", REMINDED, at=after(days=1))], expected=token)
    setting = tables.taken()
    feed.index()
    tables.taken()
    (partition,) = (
        standing.partition for standing in feed.feed.partitions() if source_of(standing.partition) == "pages"
    )
    # Time stands still: a machine that is slow would have the reactor commit on its way.
    reader = feed.feed.on(replace(feed.feed.driver, clock=lambda: 0.0))
    reactor = Reactor(member=Member(reaction=engine.reaction(), reader=reader))
    tables.taken()
    reactor.run(partition, seconds=60)
    arming = tables.taken()
    fired = 0
    while sent:  # what is farther away has a slot's wake-up, and that has one for each timer
        wake_ups = [*{slot.name: slot for message in sent for slot in message.far}.values()]
        wake_ups += [wake for message in sent for wake, _ in message.near]
        sent.clear()
        now[0] = max(
            now[0], (max(wake_up.since for wake_up in wake_ups) - from_unix_nanoseconds(0)) * 100 + 100
        )
        fired += engine.work(wake_ups).fired
    if fired != timers:
        raise AssertionError(f"{fired} of {timers} timers have fired")
    return Life(
        setting=_each(setting, timers), arming=_each(arming, timers), firing=_each(tables.taken(), timers)
    )


def waiting_items(count: int, now: int) -> list[dict[str, dict[str, str]]]:
    """Return items of timers that are due in the next year, after its first week."""
    begun = from_unix_nanoseconds(now + 7 * DAY)
    step = 350 * DAY // 100 // max(1, count)
    armed = (
        Armed(due=Ticks(begun + number * step), layout="pages", stream=f"Waiting-{number}", place=0)
        for number in range(count)
    )
    return [{name: dict(value) for name, value in put.item.items()} for put in armed]


def _loan(number: int) -> str:
    return f"Loan-{number}"


def _each(units: Units, timers: int) -> Units:
    return Units(units.read / timers, units.write / timers)


@dataclass(slots=True)
class Recording:
    """A carrier that records the requests of each thread in order, and sends them as the functions do."""

    carry: Carrier
    requests: dict[int, list[DynamoRequest]] = field(default_factory=dict)

    def __call__(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request, and record it."""
        self.requests.setdefault(get_ident(), []).append(request)
        return self.carry(request)

    def again(self, client: Any) -> None:
        """Repeat all requests with boto3, concurrently as before."""

        def each(requests: list[DynamoRequest]) -> None:
            for request in requests:
                getattr(client, xform_name(request.operation))(**request.parameters)

        list(ahead(each, self.requests.values(), SIDE_BY_SIDE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Figures of firing timers, or of the same requests with boto3.

    Attributes:
        cpu: CPU seconds of this process, without DynamoDB Local.
    """

    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """Fired timers, with the figures of the waker and of boto3 for the same requests, and the units per timer."""

    timers: int
    waiting: int
    took: Took
    bare: Took
    units: Units

    @property
    def a_second(self) -> float:
        """Timers per second."""
        return self.timers / self.took.seconds

    @property
    def of_bare(self) -> float:
        """CPU of the waker relative to boto3."""
        return self.took.cpu / self.bare.cpu

    def row(self) -> tuple[str, ...]:
        """Cells of the table."""
        return (
            f"{self.timers:,}",
            f"{self.waiting:,}",
            f"{self.took.seconds:.0f}",
            f"{self.bare.seconds:.0f}",
            f"{self.a_second:.0f}",
            f"{self.took.cpu / self.timers * 1e3:.2f}",
            f"{self.of_bare:.2f}",
            f"{self.units.read:.2f}",
            f"{self.units.write:.2f}",
        )


def fire(timers: int = OF_A_MINUTE, waiting: int = 0) -> Fired:
    """Set timers that are due within one minute, each in another stream, and fire them with one waker."""
    with dynamodb() as endpoint:
        client = endpoint.client("dynamodb", config=Config(max_pool_connections=2 * SIDE_BY_SIDE))
        tables = {
            spec.kind: Local(client=client, table=spec.kind, layout=Pages()) for spec in (STREAMS, TIMERS)
        }
        for spec in (STREAMS, TIMERS):
            create_table(client, spec.kind, replace(spec, stream=False))
        now = [time.time_ns()]
        recording = Recording(
            LightCarrier(
                Service(url=endpoint.url, region="eu-west-1", credentials=FixedKeys("key", "secret"))
            )
        )
        meter = Meter()
        driver = Driver(execute=carrier_interpreter(recording), meter=meter, at_once=SIDE_BY_SIDE)
        streams = Streams(driver=driver, table=STREAMS.kind, layout=Pages())
        engine = Engine(
            driver=driver,
            table=TIMERS.kind,
            streams={"pages": streams},
            tagged={},
            send=lambda _: None,
            now=lambda: now[0],
        )
        begins = Ticks(from_unix_nanoseconds(now[0]) // MINUTE * MINUTE + 60 * MINUTE)

        def set_(number: int) -> Armed:
            streams.append(_loan(number), [later("reminder", REMINDED, at=after(hours=1))])
            due = Ticks(begins + number * MINUTE // timers)
            return Armed(due=due, layout="pages", stream=_loan(number), place=0)

        engine.arm_all(list(ahead(set_, range(timers), SIDE_BY_SIDE)))
        before_all = {table: list(table.items()) for table in tables.values()}
        tables[TIMERS.kind].fill(waiting_items(waiting, now[0]))
        recording.requests.clear()
        now[0] += DAY
        before = meter.capacity
        slots = [Wake(shard=shard, since=begins, until=Ticks(begins + MINUTE)) for shard in range(SHARDS)]
        took, worked = _timed(lambda: engine.work(slots))
        after = meter.capacity
        if worked.fired != timers:
            raise AssertionError(f"{worked.fired} of {timers} timers have fired: {worked.failures[:1]}")
        for table, items in before_all.items():
            table.fill(items)
        bare, _ = _timed(lambda: recording.again(client))
        units = Units(after.read - before.read, after.write - before.write)
        return Fired(timers=timers, waiting=waiting, took=took, bare=bare, units=_each(units, timers))


def _timed(call: Callable[[], T]) -> tuple[Took, T]:
    begun, worked = time.monotonic(), time.process_time()
    result = call()
    return Took(seconds=time.monotonic() - begun, cpu=time.process_time() - worked), result


def units_of_lives() -> list[tuple[str, ...]]:
    """Return the rows of a table of units of each step, of a timer alone and of one among others."""
    lives = (life(timers=1), life(), life(waiting=10_000))
    some = f"one of {TOGETHER}"
    names = ("one alone", some, f"{some}, 10,000 waiting besides")
    return [
        (name, *(f"{units.read:.2f} + {units.write:.2f}" for units in _steps(life_)))
        for name, life_ in zip(names, lives, strict=True)
    ]


def _steps(timer_life: Life) -> tuple[Units, ...]:
    return timer_life.setting, timer_life.arming, timer_life.firing, timer_life.whole


def main() -> None:
    """Print the cost and the speed of timers, and raise an error if the bound is missed."""
    waiting = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else WAITING
    Report(
        title="Read and write units of a timer",
        columns=["timer", "setting", "arming", "firing", "in all"],
        rows=units_of_lives(),
    ).print()
    runs = [fire(), fire(waiting=waiting)]
    Report(
        title="Timers of one minute, fired by one process on DynamoDB Local",
        columns=[
            "timers",
            "waiting besides",
            "seconds",
            "by boto3",
            "a second",
            "ms of CPU each",
            "of boto3's",
            "RCU each",
            "WCU each",
        ],
        rows=[run.row() for run in runs],
    ).print()
    slow = [run for run in runs if run.a_second < LEAST_A_SECOND or run.of_bare > OF_BARE]
    if slow:
        raise SystemExit(f"timers of a minute take longer than a minute, or too much CPU: {slow}")


if __name__ == "__main__":
    main()
