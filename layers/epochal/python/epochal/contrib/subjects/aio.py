"""Keys of subjects for asynchronous programs."""

from __future__ import annotations

from collections.abc import AsyncIterator

from epochal.aio.bridge import each, finished, run
from epochal.contrib.subjects.sealing import Shredded, Subjects
from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AsyncSubjects:
    """Encryption keys of subjects (persons) for asynchronous programs: the methods of `Subjects`, to be awaited.

    They raise the same errors. `sealed_codec` takes the `store`: stores and deciders of the same event loop seal and
    unseal with it.

    Attributes:
        store: keys of subjects, opened with an `AsyncPlace` or in memory.
    """

    store: Subjects

    async def seal(self, subject: str, body: bytes) -> bytes:
        """Encrypt a body under its subject's key, as `Subjects.seal` does.

        Args:
            subject: name of the subject.
            body: body to encrypt.
        """
        return await run(self.store.seal, subject, body)

    async def unseal(self, body: bytes) -> bytes | Shredded:
        """Decrypt a sealed body, or return `Shredded`, as `Subjects.unseal` does.

        Args:
            body: body that `seal` returned, or one that was never sealed.
        """
        return await run(self.store.unseal, body)

    async def forget(self, subject: str) -> None:
        """Destroy a subject's key for ever, as `Subjects.forget` does.

        Args:
            subject: name of the subject.
        """
        await finished(run(self.store.forget, subject))

    async def is_forgotten(self, subject: str) -> bool:
        """Return whether a subject's key was destroyed, as `Subjects.is_forgotten` does.

        Args:
            subject: name of the subject.
        """
        return await run(self.store.is_forgotten, subject)

    async def reapply(self) -> AsyncIterator[str]:
        """Forget subjects again after a restore, and yield each, as `Subjects.reapply` does."""
        async for subject in each(self.store.reapply):
            yield subject
