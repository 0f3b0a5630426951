"""A reaction's function behind its FIFO queue, by AWS's clocks, which a test moves:

    Lambda        invokes with what the queue shows; ends a process at its timeout; tries a throttled batch again
                  until the queue shows it anew; does not change for how long a message of a failed batch is hidden
    the queue     hides what was received, shows nothing of a group of which something is hidden, counts receives, and
                  sets aside what was received too often (`tests.simulation.fifo`)
    a dead process  does nothing more: neither its requests nor what its threads were about to do

One process runs at a time, in one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from aws_lambda_powertools import Logger

from epochal.hosting.leases import MAX_RECEIVES, RENEW_SECONDS, Beat, hidden_seconds
from epochal.hosting.metrics import Metrics
from epochal.hosting.reaction_function import ReactionFunction
from epochal.hosting.wakeup_queue import Queue
from epochal.plan.ops import Op
from epochal.reactions.definition import Delivery
from tests.core.feed.feeds import Feeds, no_fault
from tests.core.reactions.world import Told, World
from tests.simulation.fifo import Answer, Context, FifoQueue
from tests.simulation.scheduler import Killed
from tests.simulation.timeline import Timeline

GROUP = "0"
"""The message group of the only partition."""

POLL_SECONDS = 0.1
"""Between two looks of Lambda's at a queue that shows nothing."""


@dataclass
class Life:
    """The life of a process, whose requests fail once it is dead."""

    alive: bool = True
    stops: list[Callable[[], None]] = field(default_factory=list)

    def check(self, *_: object) -> None:
        """Raise an error if the process is dead."""
        if not self.alive:
            raise Killed

    def kill(self) -> None:
        """Kill the process, as Lambda does at the timeout, and the kernel when memory runs out."""
        self.alive = False
        for stop in self.stops:
            stop()
        raise Killed


@dataclass
class Living:
    """A client of the queue, which belongs to one process."""

    queue: FifoQueue
    life: Life

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        def request(**parameters: Any) -> Answer:
            self.life.check()
            answer: Answer = getattr(self.queue, name)(**parameters)
            return answer

        return request


@dataclass
class Invocation:
    """Result of an invocation: its start and end, and whether it failed."""

    began: float
    ended: float
    failed: bool


@dataclass
class WakeUpWorld:
    """A deployed reaction with one partition.

    Attributes:
        does: what the handler does with a delivery, in this process.
        fault: sees each request to the tables.
        throttled: whether Lambda has no process to spare at a moment.
    """

    timeout: int = 60
    reaction: dict[str, Any] = field(default_factory=dict)
    does: Callable[[Delivery, Life], object] = lambda _delivery, _life: None
    fault: Callable[[Op], None] = lambda _op: None
    throttled: Callable[[float], bool] = lambda _now: False
    invocations: list[Invocation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = Timeline()
        self.queue = FifoQueue(
            clock=cast("Any", self.clock), visibility=hidden_seconds(self.timeout), max_receives=MAX_RECEIVES
        )
        assert self.queue.visibility >= self.timeout, "Lambda refuses such a mapping"
        self.world = World(told=Told(), feeds=Feeds(clock=cast("Any", self.clock)))
        self._notices = 0

    def append(self, stream: str) -> None:
        """Append an event, and send the notice that wakes the reaction."""
        self.world.append(stream)
        self._notices += 1
        self.queue.take(GROUP, f"notice-{self._notices}", str(self._notices), {})

    def function(self, life: Life) -> ReactionFunction:
        """Return the function in a new process."""

        def act(delivery: Delivery) -> None:
            life.check()
            self.does(delivery, life)

        def check(op: Op) -> None:
            life.check()
            self.fault(op)

        self.world.told.during = act
        self.world.feeds.fault = check
        return ReactionFunction(
            reactor=self.world.reactor(**self.reaction),
            queue=Queue(cast("Any", Living(self.queue, life)), "queue"),
            logger=Logger(service="board"),
            metrics=Metrics("board"),
            now=self.clock,
            beats=partial(self._beats, life),
        )

    def _beats(self, life: Life, renew: Callable[[], object]) -> Beat:
        """Return a beat that renews a lease by the simulated clock until the process ends."""
        renew()
        stop = self.clock.every(RENEW_SECONDS, renew)
        life.stops.append(stop)
        return Beat(wait=life.check, stop=stop)

    def invoke(self, batch: list[Any]) -> None:
        """Invoke a new process with a batch, as Lambda does, and end it at its timeout."""
        life, began, failed = Life(), self.clock(), list[bool]()

        def end() -> None:
            if not failed:
                life.kill()

        self.clock.at(began + self.timeout, end)
        context = Context(clock=cast("Any", self.clock), ends=began + self.timeout)
        function = self.function(life)

        def run(event: Answer) -> Answer:
            answer = function.handle(event, cast("Any", context))
            failed.append(bool(answer["batchItemFailures"]))
            return answer

        self.queue.deliver(run, batch)
        if not failed:  # it raised, or died
            failed.append(True)
        life.alive = False
        self.world.feeds.fault = no_fault
        self.invocations.append(Invocation(began, self.clock(), failed[0]))

    def poll(self, seconds: float) -> None:
        """Poll the queue, as Lambda does, for a number of seconds."""
        ends = self.clock() + seconds
        while self.clock() < ends:
            batch = self.queue.receive()
            if batch and self.throttled(self.clock()):
                shown = min(each.visible for each in batch)
                while self.throttled(self.clock()) and self.clock() < shown:
                    self.clock.sleep(1.0)
                if self.clock() >= shown:
                    continue  # Lambda drops the batch
            if batch:
                self.invoke(batch)
            self.clock.sleep(POLL_SECONDS)

    def handled(self) -> list[tuple[str, int]]:
        """The handled events, in order."""
        return self.world.told.handled
