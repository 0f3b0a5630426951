"""How fast one waker fires timers that are due in one minute, on DynamoDB Local: `python -m bench.timers 10000`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace

from bench.local import dynamodb
from epochal.care.tables import create_table
from epochal.dynamo.interpreter import interpreter
from epochal.layout.pages.items import STREAMS
from epochal.layout.pages.streams import Pages
from epochal.layout.port import TIMERS
from epochal.model.events import Event, Ticks, from_unix_nanoseconds
from epochal.store.driver import SIDE_BY_SIDE, Driver, Meter, ahead
from epochal.store.streams import Streams
from epochal.store.timers import in_, later
from epochal.timers.engine import Engine
from epochal.timers.items import MINUTE, SHARDS, Armed, Wake

TIMERS_OF_A_MINUTE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """What came of a minute's timers: how many were fired, in how many seconds, with how many units each."""

    timers: int
    seconds: float
    reads: float
    writes: float


def fire(timers: int = TIMERS_OF_A_MINUTE) -> Fired:
    """Set so many timers, each in a stream of its own, and fire them a day later by the waker's clock."""
    with dynamodb() as endpoint:
        client = endpoint.client("dynamodb")
        for spec in (STREAMS, TIMERS):
            create_table(client, spec.kind, replace(spec, stream=False))
        meter = Meter()
        driver = Driver(
            execute=interpreter(client),
            meter=meter,
            at_once=SIDE_BY_SIDE,
        )
        streams = Streams(driver=driver, table=STREAMS.kind, layout=Pages())
        now = [time.time_ns()]
        engine = Engine(
            driver=driver,
            table=TIMERS.kind,
            streams={"pages": streams},
            tagged={},
            send=lambda _: None,
            now=lambda: now[0],
        )
        minute = Ticks(from_unix_nanoseconds(now[0]) // MINUTE * MINUTE)
        reminded = [Event.json("Reminded", {"book": "b" * 200})]

        def set_(number: int) -> Armed:
            streams.append(f"Loan-{number}", [later("reminder", reminded, at=in_(hours=1))])
            due = Ticks(minute + 60 * MINUTE + number * MINUTE // timers)
            return Armed(due=due, layout="pages", stream=f"Loan-{number}", place=0)

        engine.arm_all(list(ahead(set_, range(timers), SIDE_BY_SIDE)))
        now[0] += 2 * 3_600 * 10**9
        wakes = [
            Wake(shard=shard, since=Ticks(minute + 60 * MINUTE), until=Ticks(minute + 61 * MINUTE))
            for shard in range(SHARDS)
        ]
        before = meter.capacity
        begun = time.monotonic()
        worked = engine.work(wakes)
        seconds, after = time.monotonic() - begun, meter.capacity
        assert not worked.failures
        return Fired(
            timers=worked.fired,
            seconds=seconds,
            reads=(after.read - before.read) / timers,
            writes=(after.write - before.write) / timers,
        )


def main() -> None:
    """Print what came of it."""
    came = fire(int(sys.argv[1]) if len(sys.argv) > 1 else TIMERS_OF_A_MINUTE)
    print(
        f"{came.timers:,} timers in {came.seconds:.0f} s: {came.timers / came.seconds:.0f} a second,"
        f" {came.reads:.2f} read and {came.writes:.2f} write units each"
    )


if __name__ == "__main__":
    main()
