"""States of projections, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from epochal.aio.bridge import iterates, reads, wait, writes
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.lazy_dataclasses import dataclass, fields


class _InTurns(ProjectionStates):
    """After each chunk of a state other tasks take turns."""

    def _chunks(self, state: object) -> Iterator[bytes]:
        for chunk in super()._chunks(state):
            yield chunk
            wait(asyncio.sleep(0))


@dataclass(frozen=True, slots=True)
class AsyncProjectionStates:
    """A table of states for asynchronous programs: each method is that of `ProjectionStates`, awaited, and raises what
    it does.

    States are compressed on the event loop, where other tasks take turns after each chunk. A state that is being stored
    when its task is cancelled is stored to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: ProjectionStates

    @property
    def _in_turns(self) -> _InTurns:
        return _InTurns(**{each.name: getattr(self.store, each.name) for each in fields(self.store)})

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
