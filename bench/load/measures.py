"""What requests took, how they were answered, and how long events were on their way to the feed. Safe under threads."""

from __future__ import annotations

import math
import threading
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

SHARES = (0.5, 0.9, 0.99, 1.0)
"""Of what is reported: the median, two percentiles, and the longest."""


def percentiles(seconds: Sequence[float]) -> tuple[float, ...]:
    """Return the value at each share, by nearest rank; zeros if there are no values."""
    ordered = sorted(seconds)
    return tuple(ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0 for share in SHARES)


@dataclass(slots=True)
class Operation:
    """Figures of one kind of request.

    Attributes:
        seconds: durations of the answered requests; a retried one counts each time it was sent.
        statuses: number of responses by status; 0 is no response.
        retried: number of requests that were sent again.
        read, write: capacity units, where answers tell them.
    """

    seconds: array[float] = field(default_factory=lambda: array("d"))
    statuses: Counter[int] = field(default_factory=Counter)
    retried: int = 0
    read: float = 0.0
    write: float = 0.0


@dataclass(slots=True)
class Measures:
    """Figures of all requests of a run."""

    operations: defaultdict[str, Operation] = field(default_factory=lambda: defaultdict(Operation))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sent(self, operation: str, status: int, seconds: float, *, again: bool) -> None:
        """Record a request with the status of its response; 0 if there was none."""
        with self._lock:
            figures = self.operations[operation]
            figures.statuses[status] += 1
            figures.retried += again
            if status:
                figures.seconds.append(seconds)

    def cost(self, operation: str, read: float, write: float) -> None:
        """Record the capacity units that a response reports."""
        with self._lock:
            figures = self.operations[operation]
            figures.read += read
            figures.write += write

    def forget(self) -> None:
        """Discard all figures."""
        with self._lock:
            self.operations.clear()

    def answered(self, *statuses: int) -> int:
        """Return the number of responses with these statuses."""
        with self._lock:
            return sum(
                operation.statuses[status] for operation in self.operations.values() for status in statuses
            )


@dataclass(slots=True)
class Lag:
    """Seconds from the response to an append until a reader of the feed receives its last event."""

    clock: Callable[[], float] = monotonic
    seconds: array[float] = field(default_factory=lambda: array("d"))
    _waiting: dict[tuple[str, int], float] = field(default_factory=dict)
    _reached: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, stream: str, index: int) -> None:
        """Record that an append was answered, whose last event is at `index`."""
        now = self.clock()
        with self._lock:
            if self._reached.get(stream, -1) >= index:  # the feed was faster than the answer
                self.seconds.append(0.0)
            else:
                self._waiting[stream, index] = now

    def forget(self) -> None:
        """Discard all figures, and do not measure events that are on their way."""
        with self._lock:
            del self.seconds[:]
            self._waiting.clear()

    def arrived(self, stream: str, index: int) -> None:
        """Record that a reader received an event."""
        now = self.clock()
        with self._lock:
            self._reached[stream] = max(index, self._reached.get(stream, -1))
            since = self._waiting.pop((stream, index), None)
            if since is not None:
                self.seconds.append(now - since)
