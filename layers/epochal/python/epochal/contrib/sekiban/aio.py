"""States of projections, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from epochal.aio.bridge import iterates, reads, wait, writes
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.lazy_dataclasses import dataclass, fields


class _InTurns(ProjectionStates):
    """States of projections that let other tasks of the event loop run after each chunk of a state."""

    def _chunks(self, state: object) -> Iterator[bytes]:
        for chunk in super()._chunks(state):
            yield chunk
            wait(asyncio.sleep(0))


@dataclass(frozen=True, slots=True)
class AsyncProjectionStates:
    """A table of projection states for asynchronous programs: `ProjectionStates` with awaited methods.

    Each method raises what the method of `ProjectionStates` raises.

    States are compressed on the event loop, where other tasks take turns after each chunk. If a task is cancelled while
    it stores a state, the write is completed, and `cancelled_write` returns its outcome.

    Attributes:
        store: the synchronous table of states, opened from an `AsyncPlace` or in memory.
    """

    store: ProjectionStates

    @property
    def _in_turns(self) -> _InTurns:
        return _InTurns(**{field.name: getattr(self.store, field.name) for field in fields(self.store)})

    save = writes(ProjectionStates.save, of="_in_turns")
    try_save = writes(ProjectionStates.try_save, of="_in_turns")
    find = reads(ProjectionStates.find)
    find_any = reads(ProjectionStates.find_any)
    list = reads(ProjectionStates.list)
    list_all = iterates(ProjectionStates.list_all)
    page = reads(ProjectionStates.page)
    open = iterates(ProjectionStates.open)
    delete = writes(ProjectionStates.delete)
    orphans = iterates(ProjectionStates.orphans)
    remove_orphans = writes(ProjectionStates.remove_orphans)
