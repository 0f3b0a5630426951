"""Readers at the tail: what they take of the index's key in a second, alone, in one process, and in one each.

In memory, with a clock that jumps to whatever comes next, so the figures are exact. Each reader follows the feed and
gets an empty page every 20 seconds, as `FeedReader.follow` does; the newest epoch's Tip has 30 KB in the second table.
An entry comes at the end: how late the last of the readers has it is told, too.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from bench.report import Report
from epochal import Event
from epochal.aio.bridge import run, wait
from epochal.aio.stores import AsyncFeed
from epochal.store.driver import Meter
from epochal.testing.feeds import MemoryStore

T = TypeVar("T")

READERS: Final = (1, 100, 1_000)
BOUND: Final = 300.0
"""Read units a second that 1,000 readers may take of one key, of 3,000 that it has."""

SHARED_BOUND: Final = 10.0
"""The same in one process."""

SECONDS: Final = 300.0


class _Jump(selectors.DefaultSelector):
    """A wait that takes no time: the clock jumps to the next moment at which something happens."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += timeout or 0.0
        return super().select(0)


class Jumping(asyncio.SelectorEventLoop):
    """An event loop whose clock only advances while all tasks sleep."""

    def __init__(self) -> None:
        self.jump = _Jump()
        super().__init__(self.jump)

    def time(self) -> float:
        """Return the seconds of the loop's clock."""
        return self.jump.now


def jumping(program: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on such a loop."""
    with asyncio.Runner(loop_factory=Jumping) as runner:
        return runner.run(program)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Figures of all readers: units and requests per second, and the seconds until the last reader has an entry."""

    units: float
    requests: float
    late: float


async def waiting(readers: int, *, large: bool, seconds: float) -> Taken:
    """Run readers of one process that follow a feed, each starting at another moment."""
    feed, rng = MemoryStore(), random.Random(1)
    feed.streams.append("Tail-1", [Event(type=rng.randbytes(250).hex()) for _ in range(120 if large else 1)])
    feed.index()
    loop, meter = asyncio.get_running_loop(), Meter()
    driver = replace(
        feed.feed.driver, meter=meter, clock=loop.time, sleep=lambda seconds: wait(asyncio.sleep(seconds))
    )
    reader = feed.feed.on(driver)
    ((partition, tail),) = (
        (standing.partition, standing.tail) for standing in feed.feed.partitions() if standing.tail
    )
    late = list[float]()

    async def follow() -> None:
        await asyncio.sleep(20 * rng.random())
        async for page in AsyncFeed(reader).follow(partition, start=tail, wait=20.0):
            if page.items:
                late.append(loop.time())
                return

    async with asyncio.TaskGroup() as tasks:
        for _ in range(readers):
            tasks.create_task(follow())
        await asyncio.sleep(60)
        before = meter.capacity
        await asyncio.sleep(seconds)
        took = meter.capacity
        appended_at = loop.time()
        await run(feed.streams.append, "Tail-2", [Event(type="Came")])
        await run(feed.index)
    assert len(late) == readers
    return Taken(
        units=(took.read - before.read) / seconds,
        requests=(took.requests - before.requests) / seconds,
        late=max(late) - appended_at,
    )


def measured(readers: int, *, large: bool = False, seconds: float = SECONDS) -> Taken:
    """Run the readers, and return their figures."""
    return jumping(waiting(readers, large=large, seconds=seconds))


def main() -> None:
    """Measure, and print the figures."""
    for large in (False, True):
        one = measured(1, large=large)
        rows = list[tuple[str, ...]]()
        for number in READERS:
            shared = measured(number, large=large)
            apart = number * one.units
            rows.append((f"{number:,}", f"{apart:.2f}", f"{shared.units:.2f}", f"{shared.late:.2f}"))
        if apart > BOUND or shared.units > SHARED_BOUND:
            raise SystemExit(
                f"1,000 readers take {apart:.0f} units a second, and {shared.units:.1f} in a process"
            )
        Report(
            title=f"Readers at the tail, read units a second on a key whose Tip has {'30 KB' if large else '1 KB'}",
            columns=["readers", "in a process each", "in one process", "last is late, s"],
            rows=rows,
        ).print()


if __name__ == "__main__":
    main()
