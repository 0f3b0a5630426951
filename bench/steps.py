"""What an event costs in a read model and in a process, over tables in memory that charge by AWS's rules.

A read model folds events into a document for each stream. A process begins with an order, appends a confirmation to it
and ends: its inbox decides on the event, and its outbox performs what was decided. Figures are those of an event, with
what the reaction itself reads and writes, and without the index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from bench.report import Report
from epochal.contrib.processes import Append, Done, Output, Process, process, process_of
from epochal.deciders.codecs import json_codec
from epochal.feed.events import FeedEvent
from epochal.layout.registry import source_of
from epochal.model.capacity import NOTHING, Capacity
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.read_models.documents import Documents
from epochal.store.driver import Driver, Meter
from epochal.testing.feeds import MemoryStore

ORDERS: Final = 100
MORE: Final = 10
"""Events of a stream in a delivery that has several."""


@dataclass(frozen=True)
class Placed:
    """An order was placed."""

    total: int


@dataclass(frozen=True)
class Confirmed:
    """The confirmation that the process appends to an order."""

    total: int


CODEC: Final = json_codec(Placed, Confirmed)


@dataclass(frozen=True)
class Confirming:
    """The state of the process, which confirms each order and ends when the confirmation is appended."""

    total: int = 0

    def evolve(self, event: Placed | Confirmed) -> Confirming:
        """Store the total of the order."""
        return Confirming(total=event.total)

    def react(self, event: Placed | Confirmed) -> Iterable[Output]:
        """Confirm an order."""
        if isinstance(event, Placed):
            yield Append("Order", [Confirmed(self.total)])
            yield Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Figures of one event."""

    write: float
    read: float
    requests: float

    @property
    def figures(self) -> tuple[str, str, str]:
        """Columns of the table on the page on cost."""
        return f"{self.write:.2f}", f"{self.read:.2f}", f"{self.requests:.2f}"


def in_a_read_model(together: int) -> Cost:
    """Fold events into their stream's document, several of a stream at a time, without the reaction's own cost."""
    models, meter = MemoryStore().read_models, Meter()
    model = replace(models, driver=replace(models.driver, meter=meter)).open("orders", 1)

    def count(documents: Documents, event: FeedEvent) -> None:
        documents.put(event.stream, documents.get(event.stream, 0) + 1)

    for first in range(0, MORE, together):
        for number in range(ORDERS):
            stream, indices = f"Order-{number}", range(first, first + together)
            events = tuple(FeedEvent(stream=stream, index=index, type="Placed") for index in indices)
            model.apply(Delivery(group="orders", partition=0, stream=stream, events=events), count)
    return _cost(NOTHING, meter.capacity, ORDERS * MORE)


def in_a_process() -> tuple[Cost, Cost]:
    """Begin a process with each order, and perform its outputs."""
    feed, meter = MemoryStore(), Meter()
    driver = replace(feed.streams.driver, meter=meter)
    confirming = process_of(
        process(name="confirming", categories=["Order"], codec=CODEC, targets={}, begins=frozenset({Placed}))(
            Confirming
        )
    )
    assert isinstance(confirming, Process)
    inbox, outbox = confirming.reactions(replace(feed.streams, driver=driver))
    for number in range(ORDERS):
        feed.streams.append(f"Order-{number}", [CODEC.encode(Placed(number))])
    return _turn(feed, driver, inbox), _turn(feed, driver, outbox)


def _turn(feed: MemoryStore, driver: Driver, reaction: Reaction) -> Cost:
    feed.index()
    before = driver.meter.capacity
    reader = replace(feed.feed, driver=driver)
    for partition in feed.feed.partitions():
        if source_of(partition.partition) == "pages":
            Reactor(member=Member(reaction=reaction, reader=reader)).run(partition.partition, seconds=60)
    return _cost(before, driver.meter.capacity, ORDERS)


def _cost(before: Capacity, after: Capacity, events: int) -> Cost:
    return Cost(
        write=(after.write - before.write) / events,
        read=(after.read - before.read) / events,
        requests=(after.requests - before.requests) / events,
    )


def rows() -> dict[str, Cost]:
    """Return the rows of the table on the page on cost, by name."""
    begun, performed = in_a_process()
    return {
        "a read model with a document for each stream, one event of a stream at a time": in_a_read_model(1),
        "the same, ten events of a stream at a time": in_a_read_model(MORE),
        "a process that begins: it decides on the event": begun,
        "its next step: one `Append`, and `Done`": performed,
    }


def main() -> None:
    """Print the table."""
    Report(
        title="An event in a read model and in a process",
        columns=["", "write units", "read units", "requests"],
        rows=[(name, *cost.figures) for name, cost in rows().items()],
    ).print()


if __name__ == "__main__":
    main()
