"""States of projections, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochal.aio.bridge import finished, iterates, reads, run, wait, writes
from epochal.contrib.sekiban.projections import ProjectionStates

if TYPE_CHECKING:
    from epochal.contrib.sekiban.projections import ProjectionStates
    from epochal.contrib.sekiban.states import StoredState


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

    async def save(
        self,
        projector: str,
        version: str,
        state: Iterable[bytes],
        *,
        events_processed: int,
        last_sortable_id: str,
        safe_window: str | None = None,
    ) -> None:
        """`ProjectionStates.save`."""
        await finished(
            run(
                self.store.save,
                projector,
                version,
                _in_turns(state),
                events_processed=events_processed,
                last_sortable_id=last_sortable_id,
                safe_window=safe_window,
            )
        )

    async def try_save(
        self,
        projector: str,
        version: str,
        state: Iterable[bytes],
        *,
        events_processed: int,
        last_sortable_id: str,
        safe_window: str | None = None,
    ) -> StoredState | None:
        """`ProjectionStates.try_save`."""
        return await finished(
            run(
                self.store.try_save,
                projector,
                version,
                _in_turns(state),
                events_processed=events_processed,
                last_sortable_id=last_sortable_id,
                safe_window=safe_window,
            )
        )

    find = reads(ProjectionStates.find)
    find_any = reads(ProjectionStates.find_any)
    list = reads(ProjectionStates.list)
    list_all = iterates(ProjectionStates.list_all)
    page = reads(ProjectionStates.page)
    open = iterates(ProjectionStates.open)
    delete = writes(ProjectionStates.delete)
    orphans = iterates(ProjectionStates.orphans)
    remove_orphans = writes(ProjectionStates.remove_orphans)


def _in_turns(state: Any) -> Any:
    """The chunks, after each of which other tasks take turns; what is no list of them is the store's to refuse."""
    if isinstance(state, str | bytes) or not isinstance(state, Iterable):
        return state

    def chunks() -> Iterator[bytes]:
        for chunk in state:
            yield chunk
            wait(asyncio.sleep(0))

    return chunks()
