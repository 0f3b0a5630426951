"""States of projections, awaited."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochal.aio.bridge import each, run, wait
from epochal.aio.writes import finished

if TYPE_CHECKING:
    from epochal.model.projections import StoredState
    from epochal.store.projections import ProjectionStates


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

    async def find(self, projector: str, version: str) -> StoredState | None:
        """`ProjectionStates.find`."""
        return await run(self.store.find, projector, version)

    async def find_any(self, projector: str) -> StoredState | None:
        """`ProjectionStates.find_any`."""
        return await run(self.store.find_any, projector)

    async def list(self, projector: str) -> builtins.list[StoredState]:
        """`ProjectionStates.list`."""
        return await run(self.store.list, projector)

    async def list_all(self) -> AsyncIterator[StoredState]:
        """`ProjectionStates.list_all`."""
        async for state in each(self.store.list_all):
            yield state

    async def page(
        self, projector: str, *, beyond: str | None = None, limit: int
    ) -> tuple[tuple[StoredState, ...], str | None]:
        """`ProjectionStates.page`."""
        return await run(self.store.page, projector, beyond=beyond, limit=limit)

    async def open(self, state: StoredState) -> AsyncIterator[bytes]:
        """`ProjectionStates.open`: the content, a chunk at a time."""
        async for chunk in each(self.store.open, state):
            yield chunk

    async def delete(self, projector: str, version: str) -> None:
        """`ProjectionStates.delete`."""
        await finished(run(self.store.delete, projector, version))

    async def orphans(self, projector: str) -> AsyncIterator[str]:
        """`ProjectionStates.orphans`."""
        async for key in each(self.store.orphans, projector):
            yield key

    async def remove_orphans(self, projector: str) -> int:
        """`ProjectionStates.remove_orphans`."""
        return await finished(run(self.store.remove_orphans, projector))


def _in_turns(state: Any) -> Any:
    """The chunks, after each of which other tasks take turns; what is no list of them is the store's to refuse."""
    if isinstance(state, str | bytes) or not isinstance(state, Iterable):
        return state

    def chunks() -> Iterator[bytes]:
        for chunk in state:
            yield chunk
            wait(asyncio.sleep(0))

    return chunks()
