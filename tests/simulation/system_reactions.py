"""A group of a whole system: its queue, processes of its function as Lambda runs them, and an operator."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

from epochal.errors import InvalidInput, Unavailable
from epochal.feed.reader import FeedReader
from epochal.hosting.reaction_function import ReactionFunction
from epochal.hosting.wakeup_queue import Queue
from epochal.plan.ops import Execute
from epochal.reactions.definition import Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.store.driver import Driver
from tests.simulation.fifo import Context, FifoQueue, Function
from tests.simulation.group_checks import Group
from tests.simulation.scheduler import PAUSE, Body, Killed, Pause, mortal
from tests.simulation.system_weather import Weather
from tests.simulation.world import Calm, bytes_of, driver_on
from tests.support.inline import Inline
from tests.support.leases import once

FUNCTION_SECONDS = 60.0

SILENT: Any = SimpleNamespace(
    log_level=logging.INFO,
    error=lambda *_, **__: None,
    warning=lambda *_, **__: None,
    add=lambda **_: None,
)
"""A logger, and metrics, that nobody reads."""


@dataclass(slots=True, kw_only=True)
class Consumer:
    """A reaction that is deployed.

    Attributes:
        reaction: its handler is the group's.
        partitions: of the feed, that it is fed from.
        reader: makes one.
        now: what its processes take for the time.
    """

    reaction: Reaction
    group: Group
    queue: FifoQueue
    partitions: tuple[int, ...]
    clock: Calm
    reader: Callable[[Driver], FeedReader]
    now: Callable[[], int]

    def reactor(self, name: str, execute: Execute) -> Reactor:
        """Return a process of the group."""
        reader = self.reader(driver_on(execute, self.clock))
        member = Member(reaction=self.reaction, reader=reader, now=self.now, fresh=bytes_of(name))
        return Reactor(member=member, executor=Inline)

    def function(self, name: str, execute: Execute) -> Function:
        """Return a process of the function."""
        function = ReactionFunction(
            reactor=self.reactor(name, execute),
            queue=Queue(cast("Any", self.queue), "queue"),
            logger=SILENT,
            metrics=SILENT,
            now=self.clock,
            beats=once,
        )
        return lambda event: function.handle(
            event, cast("Any", Context(self.clock, self.clock() + FUNCTION_SECONDS))
        )

    def replay(self, name: str, execute: Execute, seconds: float) -> None:
        """Replay whatever is parked, as an operator does."""
        parking = Parking(reactor=self.reactor(name, execute))
        for partition in self.partitions:
            for parked in parking.streams(partition):
                replayed = parking.replay(partition, parked.stream, seconds=seconds)
                self.group.met["unparked" if replayed.unparked else "parked again"] += 1

    def settle(self, execute: Execute, *, woken: bool) -> None:
        """Nothing fails any more: wake-ups are handled, and what is parked is replayed, until all is at rest.

        Args:
            woken: for all there is; else the schedule wakes it first.
        """
        self.group.recover()
        self.queue.undeleted = 0.0
        self._wake(self.function(f"settler {self.reaction.name}", execute))
        assert self.queue.dead or not woken or self._behind() == [], (
            f"{self.reaction.name} was not woken for all there is"
        )
        for life in range(40):
            function = self.function(f"settler {self.reaction.name} {life}", execute)
            function({})
            self._wake(function)
            self.replay(f"operator {self.reaction.name} {life}", execute, 1_000.0)
            if self._behind() == [] and self.group.parked.total() == 0:
                return
        raise AssertionError(f"{self.reaction.name} does not come to rest")

    def _wake(self, function: Function) -> None:
        """Deliver what the queue holds, after the leases of dead processes have expired."""
        while self.queue.messages:
            self.queue.deliver(function, self.queue.receive())
            self.clock.sleep(400.0)

    def _behind(self) -> list[int]:
        """Return the partitions in which some event is neither handled nor parked."""
        return [
            partition
            for partition in self.partitions
            if self.group.state(partition).checkpoint != self.group.feed(partition).walk.at
        ]


def attending(
    consumers: list[Consumer], luck: random.Random, weather: Weather, over: Callable[[], bool], name: str
) -> Body:
    """Simulate Lambda, which invokes functions with the messages of their queues, in processes that may die."""

    def body(execute: Execute) -> None:
        for life in count():
            execute(Pause(lambda: over() or any(each.queue.messages for each in consumers)))
            if over() and not any(each.queue.messages for each in consumers):
                return
            consumer = luck.choice(consumers)
            batch = consumer.queue.receive()
            if not batch:
                consumer.clock.sleep(luck.choice((1.0, 60.0)))
                continue
            execute(PAUSE)
            function = consumer.function(f"{name} {life}", mortal(execute, weather.lifetime(luck)))
            consumer.queue.deliver(function, batch)
            if luck.random() < weather.ticks:
                with suppress(Killed, Unavailable):
                    function({})

    return body


def operating(
    consumer: Consumer, luck: random.Random, weather: Weather, over: Callable[[], bool], name: str
) -> Body:
    """Simulate an operator, who replays parked streams a few times."""

    def body(execute: Execute) -> None:
        for life in range(luck.randrange(4)):
            execute(Pause(lambda: over() or consumer.group.parked.total() > 0))
            with suppress(Killed, Unavailable, InvalidInput):
                dying = mortal(execute, weather.lifetime(luck))
                consumer.replay(f"{name} {life}", dying, luck.choice((1.0, 100.0)))

    return body
