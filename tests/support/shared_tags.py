"""Stores in memory that writers under the same tags share, and how these write at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from epochal.model.events import Event
from epochal.plan.ops import Op, Refusal, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents
from epochal.testing.stores import memory_deployment, pause

COURSE, TERM, STUDENT = "course:1", "term:1", "student:1"
WRITERS, EACH = 6, 10
SOON = 20.0


def enrolled(*tags: str, kind: str = "Enrolled", data: bytes = b"{}") -> Event:
    return Event(type=kind, data=data, tags=tags or (COURSE,))


@dataclass(eq=False)
class World:
    """Stores in memory whose requests take a millisecond; refusals and requests are counted.

    Attributes:
        before: is called before each request, and may raise instead of it.
    """

    requests: int = 0
    refusals: int = 0
    before: Callable[[Op], None] = lambda _: None
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

    @property
    def tagged(self) -> TaggedEvents:
        return self.streams.tagged

    def count(self, tag: str = COURSE) -> int:
        return self.plain.tagged.count(tag)


def at_once(work: Callable[[int], object], writers: int = WRITERS) -> None:
    with ThreadPoolExecutor(writers) as pool:
        calls = [pool.submit(work, number) for number in range(writers)]
        assert not wait(calls, SOON).not_done
        for call in calls:
            call.result()
