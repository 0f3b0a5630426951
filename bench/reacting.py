"""Reactions: a new group that handles a feed of real flights from its beginning, beside boto3 alone.

    bare       what anyone would write with boto3 to call the same handler in the same order (`bench.reacting_bare`)
    reaction   the library's reactor: it also decides what is wanted, counts failures, and saves where it has got to on
               the condition that nobody else did

Both read the index in pages, and the Tip of each stream that has something new in a stretch of a thousand events; a
long stream's calves besides. The handler only counts, so that all of the time is theirs. The ways take turns
(`bench.rounds`); requests and units are DynamoDB Local's own.

Bounds: 0.7 of bare boto3, as catching up with data has; every event handled once, in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from bench.flight_feed import PARTITION
from bench.hydrating import Feed, feed_at
from bench.local import dynamodb
from bench.reacting_bare import Bare, Event
from bench.report import Report
from bench.rounds import ROUNDS, Compared, by_turns
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.interpreter import interpreter
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor

OF_BARE = 0.7
EVENTS, APPENDS = 10_000, 10
"""Of the feed, and in an entry of its index."""


@dataclass(slots=True)
class Counting:
    """A handler that counts the events of each stream and the bytes of all bodies."""

    next: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def take(self, stream: str, index: int, body: bytes) -> None:
        """Handle an event, which must be the next one of its stream."""
        assert index == self.next.get(stream, 0)
        self.next[stream] = index + 1
        self.size += len(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Figures of a pass; `seen` is the handler's state at the end."""

    seconds: float
    cpu: float
    requests: int
    read_units: float
    write_units: float
    seen: Counting

    @property
    def events(self) -> int:
        """Number of events that were handled."""
        return sum(self.seen.next.values())


def compare(endpoint: Endpoint, events: int, appends: int, rounds: int = ROUNDS) -> Compared[Took]:
    """Compare both ways in turn over a feed with a number of events, and of appends per entry."""
    groups = (f"round-{number}" for number in range(rounds))
    with feed_at(endpoint, events, appends) as feed:
        return by_turns(
            {"bare": lambda: _bare(feed), "reaction": lambda: _reaction(feed, next(groups))}, rounds
        )


def _bare(feed: Feed) -> Took:
    seen = Counting()

    def handle(stream: str, events: list[Event]) -> None:
        for index, _, body in events:
            seen.take(stream, index, body)

    bare = Bare(client=feed.client, tips=feed.tips, index=feed.index, handle=handle)
    seconds, cpu = _timed(bare.run)
    return Took(
        seconds=seconds,
        cpu=cpu,
        requests=bare.requests,
        read_units=bare.read_units,
        write_units=bare.write_units,
        seen=seen,
    )


def _reaction(feed: Feed, group: str) -> Took:
    seen = Counting()

    def handle(delivery: Delivery) -> None:
        for event in delivery.events:
            assert isinstance(event.data, bytes)
            seen.take(delivery.stream, event.index, event.data)

    reader = feed.reader(interpreter(feed.client))
    reactor = Reactor(member=Member(reaction=Reaction(name=group, handler=handle), reader=reader))
    seconds, cpu = _timed(lambda: reactor.run(PARTITION, seconds=inf))
    meter = reader.driver.meter
    return Took(
        seconds=seconds,
        cpu=cpu,
        requests=meter.requests,
        read_units=meter.units.read,
        write_units=meter.units.write,
        seen=seen,
    )


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    began, worked = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - worked


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is missed."""
    with dynamodb() as endpoint:
        compared = compare(endpoint, EVENTS, APPENDS)
    ratio = compared.ratio("reaction", "bare")
    Report(
        title=f"A new group handles {EVENTS:,} events, DynamoDB Local",
        columns=["way", "requests", "read units", "write units", "events/s", "CPU µs/event", "of bare"],
        rows=[
            _row("bare", compared.took("bare"), ""),
            _row("reaction", compared.took("reaction"), f"{ratio:.2f}"),
        ],
    ).print()
    if compared.took("bare").seen != compared.took("reaction").seen:
        raise SystemExit("the two ways have not handled the same events")
    if ratio < OF_BARE:
        raise SystemExit(f"only {ratio:.2f} of bare boto3")


def _row(way: str, took: Took, ratio: str) -> tuple[str, ...]:
    return (
        way,
        f"{took.requests:,}",
        f"{took.read_units:,.1f}",
        f"{took.write_units:,.1f}",
        f"{took.events / took.seconds:,.0f}",
        f"{took.cpu / took.events * 1e6:.1f}",
        ratio,
    )


if __name__ == "__main__":
    main()
