"""Timers for asynchronous programs."""

from __future__ import annotations

from typing import overload

from epochal.aio.bridge import reads, writes
from epochal.aio.stores import AsyncStreams, AsyncTaggedEvents
from epochal.contrib.timers.stores import StreamTimers, TagTimers, timers_of
from epochal.lazy_dataclasses import dataclass


@overload
def async_timers_of(store: AsyncStreams) -> AsyncStreamTimers: ...


@overload
def async_timers_of(store: AsyncTaggedEvents) -> AsyncTagTimers: ...


def async_timers_of(store: AsyncStreams | AsyncTaggedEvents) -> AsyncStreamTimers | AsyncTagTimers:
    """Return the timers of an asynchronous store: `timers_of` with methods to be awaited.

    Streams get an `AsyncStreamTimers`, tagged events an `AsyncTagTimers`.

    Args:
        store: asynchronous store of streams, or of tagged events.
    """
    if isinstance(store, AsyncStreams):
        return AsyncStreamTimers(timers_of(store.store))
    return AsyncTagTimers(timers_of(store.store))


@dataclass(frozen=True, slots=True)
class AsyncStreamTimers:
    """Timers of streams for asynchronous programs: the methods of `StreamTimers`, to be awaited.

    They raise the same errors.

    Attributes:
        store: the `StreamTimers` that does the work, with blocking methods.
    """

    store: StreamTimers

    pending = reads(StreamTimers.pending)
    schedule = writes(StreamTimers.schedule)
    cancel = writes(StreamTimers.cancel)


@dataclass(frozen=True, slots=True)
class AsyncTagTimers:
    """Timers of tags for asynchronous programs: the methods of `TagTimers`, to be awaited.

    They raise the same errors.

    Attributes:
        store: the `TagTimers` that does the work, with blocking methods.
    """

    store: TagTimers

    pending = reads(TagTimers.pending)
    schedule = writes(TagTimers.schedule)
    cancel = writes(TagTimers.cancel)
