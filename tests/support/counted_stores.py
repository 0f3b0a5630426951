"""Stores in memory that count requests and refusals, shared by writers that write at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from epochal.plan.ops import Op, Refusal, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.stores import memory_deployment, pause

WRITERS, EACH = 6, 10
SOON = 20.0


@dataclass(eq=False)
class CountedStores:
    """Stores in memory whose requests take a millisecond; requests and refusals are counted.

    Attributes:
        before: is called before each request, and may raise instead of it.
    """

    requests: int = 0
    refusals: int = 0
    before: Callable[[Op], object] = lambda _: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.plain = memory_deployment()

    def execute(self, op: Op) -> Reply:
        self.before(op)
        pause(0.001)
        reply = self.plain.driver.execute(op)
        with self.lock:
            self.requests += 1
            self.refusals += isinstance(reply, Refusal)
        return reply

    @property
    def streams(self) -> Streams:
        driver = Driver(execute=self.execute, meter=Meter())
        return replace(self.plain, driver=driver).streams


def at_once(work: Callable[[int], object], writers: int = WRITERS) -> None:
    """Call `work` with each writer's number, each in a thread of its own; raise what any of them raises."""
    with ThreadPoolExecutor(writers) as pool:
        calls = [pool.submit(work, number) for number in range(writers)]
        assert not wait(calls, SOON).not_done
        for call in calls:
            call.result()
