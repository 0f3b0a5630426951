"""Several writers at once. Each stream belongs to one of them, so its events stay in order; streams run side by side.

A writer keeps each stream's token from the answer before, so an append is one request. On a conflict it takes the
stream's state and token as they stand now, decides its snapshot again, and appends on that.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from queue import Queue

from examples.flights.aircraft import INITIAL, Aircraft, fold
from examples.flights.happenings import Batch
from examples.flights.ledger import Ledger
from examples.flights.stores import Store, Written

QUEUED = 32
"""Batches that wait for one writer: enough to keep it busy, few enough to keep streams nearly in step."""

Acknowledged = Callable[[str, int, int], None]
"""Hears of each append: the stream, its first index, and its version after it."""


@dataclass(slots=True)
class Tally:
    """What one writer, or all of them, did."""

    appends: int = 0
    events: int = 0
    units: float = 0.0
    conflicts: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.appends + other.appends,
            self.events + other.events,
            self.units + other.units,
            self.conflicts + other.conflicts,
        )


@dataclass(slots=True, kw_only=True)
class Writer:
    """Appends batches of the streams that are its own."""

    store: Store
    ledger: Ledger
    acknowledged: Acknowledged
    tally: Tally = field(default_factory=Tally)
    _known: dict[str, tuple[Aircraft, str | None]] = field(default_factory=dict)

    def write(self, batch: Batch) -> None:
        """Append one batch, however often someone else is first."""
        before, token = self._known.get(batch.stream, (INITIAL, None))
        while True:
            after = fold(before, batch.events)
            snapshot = after.snapshot() if batch.stream.startswith("Aircraft-") else None
            answer = self.store.append(batch, snapshot, token)
            if isinstance(answer, Written):
                break
            self.tally.conflicts += 1
            before, token = self._standing(batch.stream)
        self._known[batch.stream] = after, answer.token
        self._count(batch, answer)

    def _standing(self, stream: str) -> tuple[Aircraft, str | None]:
        standing = self.store.load(stream)
        return (INITIAL, None) if standing is None else (standing.state or INITIAL, standing.token)

    def _count(self, batch: Batch, answer: Written) -> None:
        self.ledger.add(batch.stream, batch.events)
        self.tally += Tally(appends=1, events=len(batch.events), units=answer.units)
        self.acknowledged(batch.stream, answer.version - len(batch.events), answer.version)


def write_all(writers: list[Writer], batches: Iterable[Batch]) -> Tally:
    """Hand every batch to its stream's writer, and wait until all are written.

    The first error of any writer ends all of them and is raised here; so does a Ctrl-C while batches are handed out.
    """
    crew = _Crew(writers)
    try:
        crew.hand_out(batches)
    except BaseException:
        crew.give_up()
        raise
    finally:
        crew.finish()
    if crew.failure is not None:
        raise crew.failure
    return sum((writer.tally for writer in writers), Tally())


class _Crew:
    """Threads, one for each writer, and their queues."""

    def __init__(self, writers: list[Writer]) -> None:
        self.failure: Exception | None = None
        self._over = threading.Event()
        self._queues: list[Queue[Batch | None]] = [Queue(QUEUED) for _ in writers]
        self._threads = [
            threading.Thread(target=self._work, args=pair, daemon=True)
            for pair in zip(writers, self._queues, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def hand_out(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            if self._over.is_set():
                return
            self._queues[zlib.crc32(batch.stream.encode()) % len(self._queues)].put(batch)

    def give_up(self) -> None:
        self._over.set()

    def finish(self) -> None:
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self, writer: Writer, queue: Queue[Batch | None]) -> None:
        """Take batches until the end; once anything has failed, take them without writing, so that none waits."""
        while (batch := queue.get()) is not None:
            if self._over.is_set():
                continue
            try:
                writer.write(batch)
            except Exception as error:  # noqa: BLE001  it is raised again, in the thread that waits
                self.failure = self.failure or error
                self._over.set()
