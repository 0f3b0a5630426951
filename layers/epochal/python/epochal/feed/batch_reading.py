"""Reads ranges of many streams in batches, where a layout can.

A batch asks for items whose keys are guessed, since only a query finds the last item of any stream. A wrong guess costs
a read unit, and the range is read by a query after all. So batches begin small, and grow only while guesses are right:
they are right if events are new and small, and wrong for streams that have grown since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar, runtime_checkable

from epochal.plan.limits import BATCH_KEYS

Range = tuple[str, int, int]
"""A range of events: name of the stream, index of the first event, and index after the last one."""

FEWEST: Final = 8
"""Number of ranges from which on they are read in batches. Fewer are read side by side as fast, and cost no guess."""

FIRST: Final = 2
"""Number of ranges of the first batch, and of the next one after a batch of wrong guesses."""

GROWTH: Final = 4
"""Factor by which the next batch is larger if guesses were right."""

TOLERATED: Final = 1 / 16
"""Share of a batch that may be wrong guesses. A read unit costs as much as some milliseconds of a function."""

SECONDS: Final = 1.0
"""Time within which the events of a batch should be consumed. A slow consumer gets smaller batches, so that events are
not much older than those that are read when they are needed."""

_Event = TypeVar("_Event")


@runtime_checkable
class BatchHydrate(Protocol[_Event]):
    """A `Hydrate` function that can also read ranges of several streams in a batch."""

    def is_batched(self, stream: str, first: int) -> bool:
        """Whether a batch is likely to find the events of a stream from an index on."""

    def read_batch(self, ranges: Sequence[Range]) -> dict[Range, Iterable[_Event]]:
        """Read ranges of different streams with one request; leave out those that it does not suffice for.

        Events that need no more work are returned as a list.
        """


class BatchReader(Generic[_Event]):
    """Reads ranges in batches, whose size it adapts to how many of them a batch finds. Not safe under threads."""

    def __init__(self, hydrate: object, clock: Callable[[], float] = time.monotonic) -> None:
        """Set up batches that begin small; there are none unless `hydrate` is a `BatchHydrate`.

        Args:
            hydrate: function that reads events; if it is no `BatchHydrate`, there are no batches.
            clock: returns seconds.
        """
        self._hydrate: BatchHydrate[_Event] | None = hydrate if isinstance(hydrate, BatchHydrate) else None
        self._clock = clock
        self._size = FIRST
        self._read_at = clock()

    def candidates(self, ranges: Sequence[Range]) -> Sequence[Range]:
        """Return, in order, those of the ranges to read in batches; none if they are few or cannot be batched.

        Args:
            ranges: ranges of different streams.
        """
        hydrate = self._hydrate
        if hydrate is None or len(ranges) < FEWEST:
            return ()
        candidates = [range_ for range_ in ranges if hydrate.is_batched(range_[0], range_[1])]
        return candidates if len(candidates) >= FEWEST else ()

    def read(self, candidates: Sequence[Range]) -> tuple[dict[Range, Iterable[_Event]], Sequence[Range]]:
        """Read a batch of the first candidates; return events by range, and the rest, or none if many failed.

        A range of the batch without events is to be read by itself. So are all ranges after the batch if it had too
        many of these: then none is returned.
        """
        assert self._hydrate is not None  # noqa: S101  otherwise there are no candidates
        if self._clock() - self._read_at > SECONDS:
            self._size = max(FIRST, self._size // GROWTH**2)
        batch, rest = candidates[: self._size], candidates[self._size :]
        events = self._hydrate.read_batch(batch)
        self._read_at = self._clock()
        if len(batch) - len(events) > TOLERATED * len(batch):
            self._size = FIRST
            return events, ()
        self._size = min(BATCH_KEYS, self._size * GROWTH)
        return events, rest
