"""A small airport to look at: streams, tagged events, and a reaction that has parked what it failed on."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, cast

from epochal import Event, FeedEvent, Unfold, reaction
from epochal.deployment import Deployment
from epochal.model.moments import parse_time, unix_seconds
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.read_models.documents import Documents
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBucket, memory_settings

BEGUN = unix_seconds(parse_time("2013-01-01T10:15:00Z"))
MINUTE = 60
AIRPORTS = ("IAH", "MIA", "ORD", "ATL", "LAX", "SFO", "BQN", "FLL")
WAITING = {f"Aircraft-N20{number}AA" for number in (3, 4, 5, 6)}
CARRIERS = ("UA", "AA", "DL", "B6")


@dataclass
class Clock:
    """Seconds since 1970, which stand still until they are moved."""

    seconds: float = BEGUN

    def __call__(self) -> int:
        """As `time.time_ns`."""
        return int(self.seconds * 1_000_000_000)


@dataclass
class Airport:
    """The world, and how it is changed while it is looked at.

    Attributes:
        gates: aircraft that have got one since; the board fails on the others of `WAITING`.
    """

    clock: Clock = field(default_factory=Clock)
    feed: MemoryStore = field(default_factory=MemoryStore)
    gates: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Have the stores and the index go by this clock."""
        feed = self.feed
        vars(feed).update(
            (name, replace(getattr(feed, name), now=self.clock)) for name in ("tips", "streams")
        )
        feed._indexer = replace(feed._indexer, now=self.clock)  # noqa: SLF001  a memory's own clock is the machine's

    @property
    def deployment(self) -> Deployment:
        """What the console is opened on."""
        settings = memory_settings(read_models_table=self.feed.read_models.table)
        return Deployment(settings=settings, driver=self.feed.feed.driver, bucket=MemoryBucket())

    @property
    def board(self) -> Reaction:
        """Shows departures, of aircraft that have a gate."""

        @reaction(name="departures-board", categories=["Aircraft"], attempts=1)
        def shown(delivery: Delivery) -> None:
            for event in delivery.each():
                if event.stream in WAITING - self.gates:
                    raise ValueError(f"no gate is free for {event.stream}")
                self.feed.tips.append(f"Board-{event.stream[-1]}", [Event(type="Shown", data=event.data)])

        return shown

    def fly(self, minutes: int = 40) -> None:
        """Have aircraft depart and passengers sit down, minute by minute, and the board react until halfway."""
        luck = random.Random(2013)
        for minute in range(minutes):
            self.clock.seconds = BEGUN + MINUTE * minute
            for _ in range(luck.randint(1, 6)):
                self._depart(luck)
            self.feed.tagged.append([_seat(luck)])
            self.feed.index()
            if minute <= minutes // 2:
                self._react()

        self.feed.react(self.routes)

    @property
    def routes(self) -> Reaction:
        """Airports that each aircraft has flown to, in a read model that is asked by them."""
        routes = self.feed.read_models.open("routes", 1, keys={"by_airport": lambda found: found})

        def fold(documents: Documents, event: FeedEvent) -> None:
            to = json.loads(cast("bytes", event.data))["to"]
            documents.put(event.stream, sorted({to, *documents.get(event.stream, [])}))

        @reaction(name="routes-1", categories=["Aircraft"])
        def update(delivery: Delivery) -> None:
            routes.apply(delivery, fold)

        return update

    def _react(self) -> None:
        reactor = Reactor(member=Member(reaction=self.board, reader=self.feed.feed, now=self.clock))
        for each in self.feed.feed.partitions():
            reactor.run(each.partition, seconds=inf)

    def _depart(self, luck: random.Random) -> None:
        carrier, number, tail = luck.choice(CARRIERS), luck.randint(100, 1999), luck.randint(200, 208)
        body: dict[str, Any] = {
            "flight": f"{carrier}{number}",
            "to": luck.choice(AIRPORTS),
            "delay": luck.randint(-9, 90),
        }
        data = str(body).replace("'", '"').encode()
        event = Event(type="FlightDeparted", data=data, correlation_id=f"{carrier}{number}")
        position = Unfold(type="Position", data=f'{{"over": "{luck.choice(AIRPORTS)}"}}'.encode())
        self.feed.streams.append(f"Aircraft-N{tail}{carrier}", [event], unfolds=[position])


def _seat(luck: random.Random) -> Event:
    tags = (f"flight:UA{luck.randint(1, 3)}", f"passenger:p{luck.randint(1, 30)}")
    return Event(type="SeatTaken", data=b'{"seat":"%dC"}' % luck.randint(1, 40), tags=tags)
