"""Named streams, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochal.aio.bridge import each, run
from epochal.aio.writes import finished
from epochal.model.events import Event, Recorded, Unfold
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.several import AllAppended, AllOutcome, StreamAppend
from epochal.model.versions import ANY, ExpectedVersion
from epochal.settings import RESPONSE_BYTES
from epochal.store.results import Direction, Page, Pruned, StreamState

if TYPE_CHECKING:
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

    async def append(
        self,
        stream: str,
        events: Sequence[Event],
        *,
        unfolds: Sequence[Unfold] | None = None,
        expected: ExpectedVersion = ANY,
        idempotency_key: str | None = None,
    ) -> Appended:
        """`Streams.append`."""
        return await finished(
            run(
                self.store.append,
                stream,
                events,
                unfolds=unfolds,
                expected=expected,
                idempotency_key=idempotency_key,
            )
        )

    async def try_append(
        self,
        stream: str,
        events: Sequence[Event],
        *,
        unfolds: Sequence[Unfold] | None = None,
        expected: ExpectedVersion = ANY,
        idempotency_key: str | None = None,
    ) -> Outcome:
        """`Streams.try_append`."""
        return await finished(
            run(
                self.store.try_append,
                stream,
                events,
                unfolds=unfolds,
                expected=expected,
                idempotency_key=idempotency_key,
            )
        )

    async def append_all(
        self, appends: Sequence[StreamAppend], *, idempotency_key: str | None = None
    ) -> AllAppended:
        """`Streams.append_all`."""
        return await finished(run(self.store.append_all, appends, idempotency_key=idempotency_key))

    async def try_append_all(
        self, appends: Sequence[StreamAppend], *, idempotency_key: str | None = None
    ) -> AllOutcome:
        """`Streams.try_append_all`."""
        return await finished(run(self.store.try_append_all, appends, idempotency_key=idempotency_key))

    async def load(self, stream: str, *, fetch: bool = True) -> StreamState | None:
        """`Streams.load`."""
        return await run(self.store.load, stream, fetch=fetch)

    async def page(
        self,
        stream: str,
        *,
        start: int | None = None,
        limit: int = _PAGE,
        direction: Direction = "forward",
        max_bytes: int = RESPONSE_BYTES,
        fetch: bool = True,
    ) -> Page:
        """`Streams.page`."""
        return await run(
            self.store.page,
            stream,
            start=start,
            limit=limit,
            direction=direction,
            max_bytes=max_bytes,
            fetch=fetch,
        )

    async def read(
        self,
        stream: str,
        *,
        start: int | None = None,
        limit: int | None = None,
        direction: Direction = "forward",
    ) -> AsyncIterator[Recorded]:
        """`Streams.read`: the events, read as they are consumed."""
        async for event in each(self.store.read, stream, start=start, limit=limit, direction=direction):
            yield event

    async def prune(self, stream: str, before: int, *, unarchived: bool = False) -> Pruned | None:
        """`Streams.prune`."""
        return await finished(run(self.store.prune, stream, before, unarchived=unarchived))

    async def archive_and_prune(self, stream: str, before: int) -> Pruned | None:
        """`Streams.archive_and_prune`."""
        return await finished(run(self.store.archive_and_prune, stream, before))

    async def copy_to_archive(self, stream: str, before: int) -> int:
        """`Streams.copy_to_archive`."""
        return await finished(run(self.store.copy_to_archive, stream, before))

    async def delete(
        self, stream: str, *, expected: ExpectedVersion = ANY, leave_open: bool = False
    ) -> Pruned:
        """`Streams.delete`."""
        return await finished(run(self.store.delete, stream, expected=expected, leave_open=leave_open))

    async def try_delete(
        self, stream: str, *, expected: ExpectedVersion = ANY, leave_open: bool = False
    ) -> Pruned | Conflict:
        """`Streams.try_delete`."""
        return await finished(run(self.store.try_delete, stream, expected=expected, leave_open=leave_open))
