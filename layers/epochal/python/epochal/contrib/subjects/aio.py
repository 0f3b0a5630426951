"""Keys of subjects for asynchronous programs."""

from __future__ import annotations

from collections.abc import AsyncIterator

from epochal.aio.bridge import each, finished, run
from epochal.contrib.subjects.sealing import Shredded, Subjects
from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AsyncSubjects:
    """Keys of subjects for asynchronous programs: each method is that of `Subjects`, awaited, and raises what it does.

    `sealed_codec` takes the `store`: stores and deciders of the same event loop seal and unseal with it.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: Subjects

    async def seal(self, subject: str, body: bytes) -> bytes:
        """`Subjects.seal`."""
        return await run(self.store.seal, subject, body)

    async def unseal(self, body: bytes) -> bytes | Shredded:
        """`Subjects.unseal`."""
        return await run(self.store.unseal, body)

    async def forget(self, subject: str) -> None:
        """`Subjects.forget`."""
        await finished(run(self.store.forget, subject))

    async def is_forgotten(self, subject: str) -> bool:
        """`Subjects.is_forgotten`."""
        return await run(self.store.is_forgotten, subject)

    async def reapply(self) -> AsyncIterator[str]:
        """`Subjects.reapply`: each subject, as it is forgotten again."""
        async for subject in each(self.store.reapply):
            yield subject
