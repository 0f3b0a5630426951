"""Reactions with several members on one partition: events a second as they are deployed, and what an event takes.

Each group pauses, is given the same events, and is woken: the time is from then until nothing is left. The handler
waits for 20 ms an event, and a member handles one stream at a time, where it may handle eight; so what differs is how
many members wait side by side. Seconds are those of a machine whose processors
all members share: look at the ratios, and at the load that the title names. Requests and units are exact: of the same
events in tables in memory, whose handler takes no time.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from bench.report import Report
from epochal import Event
from epochal.dynamo.deployed import deployed as opened
from epochal.dynamo.interpreter import interpreter
from epochal.errors import GroupMissing
from epochal.hosting.wakeups import wake_group
from epochal.local import deploy, ministack, processes
from epochal.local.programs import Places
from epochal.reactions.handling import Member
from epochal.reactions.reaction import Reaction
from epochal.reactions.reactor import Reactor
from epochal.reactions.steering import Groups
from epochal.store.driver import Meter
from epochal.testing.feeds import MemoryFeed

MEMBERS: Final = {1: "one", 4: "four", 16: "sixteen"}
"""By how many they are: their functions in `bench/waiting`."""

STREAMS: Final = 96
EACH: Final = 20
"""Events of a stream."""

EVENTS: Final = STREAMS * EACH
AT_MOST: Final = 240.0
"""Seconds to wait for what is deployed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """What an event takes."""

    requests: float
    read_units: float
    write_units: float


def exact(members: int) -> Exact:
    """Handle all events in memory, members in turn, and count."""
    feed = MemoryFeed()
    for _ in range(EACH):
        for number in range(STREAMS):
            feed.streams.append(f"Member-{number}", [Event(type="Happened", data=b"{}")])
        feed.index()
    ((partition, *_),) = ((each.partition,) for each in feed.reader.partitions() if each.tail)
    driver = replace(feed.reader.driver, meter=Meter())
    handled = 0

    def handle(delivery: Any) -> None:
        nonlocal handled
        handled += len(delivery.events)

    reaction = Reaction(name="members", handler=handle, members=members, parallel=1)
    reactors = [
        Reactor(member=Member(reaction=reaction, reader=feed.reader.on(driver))) for _ in range(members)
    ]
    left = True
    while left:
        runs = [each.run(partition, seconds=inf, share=share) for share, each in enumerate(reactors)]
        left = not all(run.at_tail for run in runs)
    if handled != EVENTS:
        raise SystemExit(f"{members} members have handled {handled:,} of {EVENTS:,} events")
    meter = driver.meter
    return Exact(
        requests=meter.requests / EVENTS,
        read_units=meter.units.read / EVENTS,
        write_units=meter.units.write / EVENTS,
    )


def deployed() -> dict[int, float]:
    """Seconds that each number of members takes for all events."""
    places = Places(Path(__file__).resolve().parent.parent)
    server = ministack.start(places)
    try:
        return _seconds(deploy.deploy(places, server, context={"stages": json.dumps(_stages(places))}))
    finally:
        processes.stop(server)


def _stages(places: Places) -> dict[str, Any]:
    """Those of the checkout, and in `dev` the reactions."""
    stages: dict[str, Any] = json.loads((places.root / "cdk.json").read_text())["context"]["stages"]
    reactions = {
        f"members-{count}": {"entry": "bench/waiting", "handler": f"waiting:{name}"}
        for count, name in MEMBERS.items()
    }
    return {**stages, "dev": {**stages["dev"], "reactions": reactions}}


def _seconds(found: deploy.LocalDeployment) -> dict[int, float]:
    client = found.endpoint.client
    store = opened(found.settings, execute=interpreter(client("dynamodb")), s3=client("s3"))
    groups, queues = Groups(store.feed), client("sqs")
    prefix = found.settings.index_table.removesuffix("-index")

    def until(number: int, count: int) -> float:
        ends = time.perf_counter() + AT_MOST
        while time.perf_counter() < ends:
            with suppress(GroupMissing):
                if sum(each.events or 0 for each in groups.standing(f"members-{number}")) == count:
                    return time.perf_counter()
            time.sleep(0.1)
        raise SystemExit(f"members-{number} has not come to {count} events that are left in {AT_MOST:.0f} s")

    # Every member is woken once before: a function's start takes as long as a hundred events.
    for number in range(STREAMS):
        store.streams.append(f"Member-{number}", [Event(type="First", data=b"{}")])
    for number in MEMBERS:
        until(number, 0)
        groups.pause(f"members-{number}")
    for turn in range(EACH):
        for number in range(STREAMS):
            store.streams.append(f"Member-{number}", [Event(type="Happened", data=b"{}")])
        print(f"appended {(turn + 1) * STREAMS:,}", flush=True)
    taken = {}
    for number in MEMBERS:
        until(number, EVENTS)
        groups.resume(f"members-{number}")
        began = time.perf_counter()
        wake_group(queues, prefix, f"members-{number}", store.feed.partitions())
        taken[number] = until(number, 0) - began
    return taken


def main() -> None:
    """Measure and print."""
    counted = {number: exact(number) for number in MEMBERS}
    load = os.getloadavg()[0]
    seconds = deployed()
    alone = seconds[1]
    Report(
        title=f"{EVENTS:,} events of {STREAMS} streams in one partition, 20 ms each, deployed to the embedded AWS on "
        f"{os.cpu_count()} processors at a load of {load:.1f}",
        columns=["members", "seconds", "events/s", "of one", "requests/event", "RCU/event", "WCU/event"],
        rows=[
            (
                str(number),
                f"{seconds[number]:.1f}",
                f"{EVENTS / seconds[number]:,.0f}",
                f"{alone / seconds[number]:.1f}",
                f"{took.requests:.3f}",
                f"{took.read_units:.3f}",
                f"{took.write_units:.3f}",
            )
            for number, took in counted.items()
        ],
    ).print()


if __name__ == "__main__":
    main()
