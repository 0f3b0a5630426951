"""An order that is paid, shipped and made known by a process; and a feed in memory whose requests may be its last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from epochal import cancel, later
from epochal.contrib.processes import (
    Append,
    Call,
    CommandRefused,
    Done,
    Output,
    Process,
    Publish,
    Send,
    Target,
    process,
    process_of,
)
from epochal.contrib.processes.process import Instance, Passed
from epochal.contrib.publish.cloudevents import Message
from epochal.deciders.codecs import json_codec
from epochal.deciders.on_streams import Decider
from epochal.layout.registry import source_of
from epochal.model.events import Event
from epochal.plan.ops import Op, Reply
from epochal.reactions.definition import Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.scheduling import after
from epochal.testing.feeds import MemoryStore
from tests.support.inline import Inline


@dataclass(frozen=True)
class Placed:
    total: int


@dataclass(frozen=True)
class Charged:
    amount: int


@dataclass(frozen=True)
class Shipped:
    parcel: str


@dataclass(frozen=True)
class Released:
    reason: str


@dataclass(frozen=True)
class Confirmed:
    parcel: str


@dataclass(frozen=True)
class GaveUp:
    pass


@dataclass(frozen=True)
class Charge:
    amount: int


@dataclass(frozen=True)
class Ship:
    total: int


class Declined(Exception):
    """The bank's no."""


def charge(command: Charge, paid: int) -> list[Charged]:
    if command.amount > 100:
        raise Declined("too much")
    return [Charged(command.amount)]


PAYMENTS = Target(
    decider=Decider[Charge, int, Charged](
        initial=int, evolve=lambda paid, event: paid + event.amount, decide=charge
    ),
    codec=json_codec(Charged),
    refusals=(Declined,),
)
CODEC = json_codec(Placed, Charged, Shipped, Released, Confirmed, GaveUp, Charge, Ship)
Message_ = Placed | Charged | Shipped | GaveUp | CommandRefused


@dataclass(frozen=True)
class Checkout:
    """The state: what is to be paid, and what has come."""

    total: int = 0
    seen: tuple[str, ...] = ()

    def evolve(self, event: Message_) -> Checkout:
        total = event.total if isinstance(event, Placed) else self.total
        return replace(self, total=total, seen=(*self.seen, type(event).__name__))

    def react(self, event: Message_) -> Iterable[Output]:
        match event:
            case Placed():
                yield Send("Payment", Charge(self.total))
                yield later("GaveUp", [GaveUp()], at=after(minutes=30))
            case Charged():
                yield cancel("GaveUp")
                yield Call("carrier", Ship(self.total))
            case Shipped(parcel=parcel):
                yield Publish("news", event)
                yield Append("Order", [Confirmed(parcel)])
                yield Done()
            case CommandRefused(error=error):
                yield Append("Order", [Released(error)])
                yield Done()
            case GaveUp():
                yield Append("Order", [Released("late")])
                yield Done()


@dataclass
class Outside:
    """What is called: every call in its order, and the keys by which others would know repetitions."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    fails: Callable[[], bool] = lambda: False

    def carrier(self, message: Ship, key: str) -> Shipped:
        if self.fails():
            raise OSError("nobody answers")
        self.calls.append(("carrier", key))
        return Shipped(f"parcel of {message.total}")

    def news(self, messages: Iterable[Message]) -> None:
        self.calls += [("news", each.id) for each in messages]

    @property
    def once(self) -> list[tuple[str, str]]:
        """The calls without repetitions."""
        return list(dict.fromkeys(self.calls))


def checkout(outside: Outside, **more: Any) -> Process:
    """The process."""
    targets = {"Payment": PAYMENTS, "carrier": outside.carrier, "news": outside.news}
    asked = {
        "name": "checkout",
        "categories": ["Order", "Payment"],
        "codec": CODEC,
        "targets": targets,
        "begins": frozenset({Placed}),
    }
    found = process_of(process(**{**asked, **more})(Checkout))
    assert found is not None
    return found


class Killed(BaseException):
    """The end of a process: nothing catches it."""


@dataclass
class World:
    """A feed, and a process that runs over it in one thread.

    Attributes:
        dies: which requests from now on are a process's last: they arrive, or do not.
    """

    outside: Outside = field(default_factory=Outside)
    more: dict[str, Any] = field(default_factory=dict)
    feed: MemoryStore = field(default_factory=MemoryStore)
    passed: list[tuple[Passed, str]] = field(default_factory=list)
    requests: int = 0
    dies: Callable[[int], bool | None] = lambda _number: None

    def __post_init__(self) -> None:
        self.execute = self.feed.streams.driver.execute
        streams = self.feed.streams
        driver = replace(streams.driver, execute=self._execute)
        self.streams = replace(streams, driver=driver)
        self.reader = replace(self.feed.feed, driver=driver)
        self.partitions = [
            each.partition for each in self.feed.feed.partitions() if source_of(each.partition) == "pages"
        ]

    def _execute(self, op: Op) -> Reply:
        arrives = self.dies(self.requests)
        self.requests += 1
        if arrives is None:
            return self.execute(op)
        if arrives:
            self.execute(op)
        raise Killed

    @property
    def process(self) -> Process:
        raised: Process | None = self.more.get("raised")
        return raised or checkout(self.outside, **self.more)

    @property
    def reactions(self) -> tuple[Reaction, Reaction]:
        """Those of a process that has just been started."""
        return self.process.reactions(
            self.streams,
            lambda why, event: self.passed.append((why, f"{event.stream}@{event.index}")),
        )

    def append(self, stream: str, *events: object) -> None:
        self.feed.streams.append(stream, [CODEC.encode(event) for event in events])

    def run(self, *, deaths: int = 10) -> None:
        """Run both reactions to the end of the feed; what dies is started again."""
        while True:
            try:
                inbox, outbox = map(self.turn, self.reactions)
                if not (inbox or outbox):
                    return
            except Killed:
                deaths -= 1
                assert deaths >= 0, "it dies again and again"

    def turn(self, reaction: Reaction) -> bool:
        """A turn of one reaction over the streams' partitions; whether anything came of it."""
        self.feed.index()
        reactor = Reactor(member=Member(reaction=reaction, reader=self.reader), executor=Inline)
        return sum(reactor.run(partition, seconds=inf).moved for partition in self.partitions) > 0

    def types(self, stream: str) -> list[str]:
        return [event.type for event in self.feed.streams.read(stream)]

    def events(self, stream: str) -> list[Event]:
        return [Event(type=each.type, data=each.data) for each in self.feed.streams.read(stream)]

    def instance(self, key: str = "1") -> Instance:
        return self.process.instances(self.feed.streams).query(f"checkout-{key}", lambda found: found)
