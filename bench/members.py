"""Reactions with several members on one partition: events a second as they are deployed, and what an event takes.

Each group pauses, is given the same events, and is woken: the time is from then until nothing is left. The handler
waits for 20 ms an event, and a member handles one stream at a time, where it may handle eight; so what differs is how
many members wait side by side. Seconds are those of a machine whose processors
all members share: look at the ratios, and at the load that the title names. Requests and units are exact: of the same
events in tables in memory, whose handler takes no time.

The embedded AWS hands on one batch of a FIFO queue after another, where Lambda has as many at once as there are groups
of messages. So what polls the queues is here: it invokes the deployed functions with a message each, side by side.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from bench.report import Report
from epochal import Event
from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.programs import Places
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.interpreter import open_deployment as opened
from epochal.errors import GroupMissing
from epochal.hosting.group_wakeups import wake_group
from epochal.reactions.definition import Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.reactions.steering import Groups
from epochal.store.driver import Meter
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore

MEMBERS: Final = {1: "one", 4: "four", 16: "sixteen"}
"""By how many they are: their functions in `bench/waiting`."""

STREAMS: Final = 96
EACH: Final = 20
"""Events of a stream."""

AT_ONCE: Final = 5
"""Of these, in an append."""

EVENTS: Final = STREAMS * EACH
AT_MOST: Final = 240.0
"""Seconds to wait for what is deployed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Figures of one event."""

    requests: float
    read_units: float
    write_units: float


def _append(streams: Streams) -> None:
    for number in range(STREAMS):
        streams.append(f"Member-{number}", [Event(type="Happened", data=b"{}")] * AT_ONCE)


def exact(members: int) -> Exact:
    """Handle all events in memory, by the members in turn, and count the units."""
    feed = MemoryStore()
    for _ in range(EACH // AT_ONCE):
        _append(feed.streams)
        feed.index()
    ((partition, *_),) = ((standing.partition,) for standing in feed.feed.partitions() if standing.tail)
    driver = replace(feed.feed.driver, meter=Meter())
    handled = 0

    def handle(delivery: Any) -> None:
        nonlocal handled
        handled += len(delivery.events)

    reaction = Reaction(name="members", handler=handle, members=members, parallel=1)
    reactors = [
        Reactor(member=Member(reaction=reaction, reader=feed.feed.on(driver))) for _ in range(members)
    ]
    is_behind = True
    while is_behind:
        runs = [reactor.run(partition, seconds=inf, share=share) for share, reactor in enumerate(reactors)]
        is_behind = not all(run.at_tail for run in runs)
    if handled != EVENTS:
        raise SystemExit(f"{members} members have handled {handled:,} of {EVENTS:,} events")
    meter = driver.meter
    return Exact(
        requests=meter.requests / EVENTS,
        read_units=meter.units.read / EVENTS,
        write_units=meter.units.write / EVENTS,
    )


def deployed() -> dict[int, float]:
    """Return the seconds that each number of members takes for all events, on a deployment."""
    places = Places(Path(__file__).resolve().parent.parent)
    server = ministack.start(places)
    try:
        return _seconds(deploy.deploy(places, server, context={"stages": json.dumps(_stages(places))}))
    finally:
        processes.stop(server)


def _stages(places: Places) -> dict[str, Any]:
    """Return the checkout's stages, with the reactions in `dev`."""
    stages: dict[str, Any] = json.loads((places.root / "cdk.json").read_text())["context"]["stages"]
    reactions = {
        f"members-{count}": {"entry": "bench/waiting", "handler": f"waiting:{name}", "batch_size": 1}
        for count, name in MEMBERS.items()
    }
    return {**stages, "dev": {**stages["dev"], "reactions": reactions}}


def _seconds(deployment: deploy.LocalDeployment) -> dict[int, float]:
    client = deployment.endpoint.client
    store = opened(deployment.settings, execute=interpreter(client("dynamodb")), s3=client("s3"))
    groups, queues = Groups(store.feed), client("sqs")
    prefix = deployment.settings.index_table.removesuffix("-index")

    _stop_polling(deployment, prefix)

    def until(number: int, count: int) -> float:
        ends = time.perf_counter() + AT_MOST
        while time.perf_counter() < ends:
            with suppress(GroupMissing):
                if sum(standing.events or 0 for standing in groups.standing(f"members-{number}")) == count:
                    return time.perf_counter()
            time.sleep(0.1)
        raise SystemExit(f"members-{number} has not come to {count} events that are left in {AT_MOST:.0f} s")

    # Every member is woken once before: a function's start takes as long as a hundred events.
    for number in range(STREAMS):
        store.streams.append(f"Member-{number}", [Event(type="First", data=b"{}")])
    for number in MEMBERS:
        with _polled(deployment, prefix, number):
            until(number, 0)
        groups.pause(f"members-{number}")
    for _ in range(EACH // AT_ONCE):
        _append(store.streams)
    seconds = {}
    for number in MEMBERS:
        until(number, EVENTS)
        with _polled(deployment, prefix, number):
            groups.resume(f"members-{number}")
            began = time.perf_counter()
            wake_group(queues, prefix, f"members-{number}", store.feed.partitions())
            seconds[number] = until(number, 0) - began
        print(f"members-{number}: {seconds[number]:.1f} s", flush=True)
    return seconds


def _stop_polling(deployment: deploy.LocalDeployment, prefix: str) -> None:
    functions = deployment.endpoint.client("lambda")
    for number in MEMBERS:
        name = f"{prefix}-reaction-members-{number}"
        for mapping in functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)


@contextmanager
def _polled(deployment: deploy.LocalDeployment, prefix: str, number: int) -> Iterator[None]:
    """Invoke a function with the messages of its queue, one of each group at a time, for the duration of a block."""
    name, stop = f"{prefix}-reaction-members-{number}", threading.Event()

    def poll() -> None:
        queues, functions = deployment.endpoint.client("sqs"), deployment.endpoint.client("lambda")
        url = queues.get_queue_url(QueueName=f"{name}.fifo")["QueueUrl"]
        while not stop.is_set():
            received = queues.receive_message(
                QueueUrl=url, MaxNumberOfMessages=1, AttributeNames=["All"], MessageAttributeNames=["All"]
            ).get("Messages", [])
            for message in received:
                event = json.dumps({"Records": [_record(message)]})
                answer = functions.invoke(FunctionName=name, Payload=event.encode())
                response = json.loads(answer["Payload"].read())
                if answer.get("FunctionError") or response["batchItemFailures"]:
                    raise RuntimeError(f"{name} has failed: {response}")
                queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            if not received:
                stop.wait(0.5)

    with ThreadPoolExecutor(number) as threads:
        polls = [threads.submit(poll) for _ in range(number)]
        try:
            yield
        finally:
            stop.set()
    for poller in polls:
        poller.result()


def _record(message: Any) -> dict[str, Any]:
    """Return a message as Lambda passes it to the function."""
    attributes = {
        name: {"stringValue": attribute["StringValue"], "dataType": attribute["DataType"]}
        for name, attribute in message.get("MessageAttributes", {}).items()
    }
    return {
        "messageId": message["MessageId"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": attributes,
    }


def main() -> None:
    """Measure, and print the figures."""
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
