"""Tagged events, awaited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from epochal.aio.bridge import run
from epochal.aio.writes import finished
from epochal.model.dcb import Position, Query, RecordedTaggedEvent, TaggedEvent
from epochal.model.tagged_results import Seen, TaggedAppended, TaggedConflict

if TYPE_CHECKING:
    from epochal.store.tagged_store import TaggedStore


@dataclass(frozen=True, slots=True)
class AsyncTaggedEvents:
    """A store of tagged events for asynchronous programs: its methods, awaited, raise what the store's own do.

    An append that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: TaggedStore

    async def append(
        self, events: Sequence[TaggedEvent], *, fail_if: Query | None = None, after: Position | None = None
    ) -> TaggedAppended:
        """`TaggedStore.append`."""
        return await finished(run(self.store.append, events, fail_if=fail_if, after=after))

    async def try_append(
        self, events: Sequence[TaggedEvent], *, fail_if: Query | None = None, after: Position | None = None
    ) -> TaggedAppended | TaggedConflict:
        """`TaggedStore.try_append`."""
        return await finished(run(self.store.try_append, events, fail_if=fail_if, after=after))

    async def read(
        self,
        query: Query,
        *,
        after: Position | None = None,
        limit: int | None = None,
        direction: Literal["forward", "backward"] = "forward",
    ) -> Seen:
        """`TaggedStore.read`."""
        return await run(self.store.read, query, after=after, limit=limit, direction=direction)

    async def event(self, event_id: str) -> RecordedTaggedEvent | None:
        """`TaggedStore.event`."""
        return await run(self.store.event, event_id)

    async def events(self, ids: Sequence[str]) -> dict[str, RecordedTaggedEvent]:
        """`TaggedStore.events`."""
        return await run(self.store.events, ids)
