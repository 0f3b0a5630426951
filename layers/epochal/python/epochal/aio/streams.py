"""Named streams, awaited."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.aio.methods import iterates, reads, writes
from epochal.store.streams import Streams

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class AsyncStreams:
    """A store of streams for asynchronous programs: each method is that of `Streams`, awaited, and raises what it does.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: Streams

    append = writes(Streams.append)
    try_append = writes(Streams.try_append)
    append_all = writes(Streams.append_all)
    try_append_all = writes(Streams.try_append_all)
    load = reads(Streams.load)
    page = reads(Streams.page)
    read = iterates(Streams.read)
    prune = writes(Streams.prune)
    archive_and_prune = writes(Streams.archive_and_prune)
    copy_to_archive = writes(Streams.copy_to_archive)
    delete = writes(Streams.delete)
    try_delete = writes(Streams.try_delete)
