"""Tagged events, awaited."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.aio.methods import reads, writes
from epochal.store.tagged_store import TaggedStore


@dataclass(frozen=True, slots=True)
class AsyncTaggedEvents:
    """A store of tagged events for asynchronous programs: its methods, awaited, raise what the store's own do.

    An append that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: TaggedStore

    append = writes(TaggedStore.append)
    try_append = writes(TaggedStore.try_append)
    read = reads(TaggedStore.read)
    event = reads(TaggedStore.event)
    events = reads(TaggedStore.events)
    appended = reads(TaggedStore.appended)
