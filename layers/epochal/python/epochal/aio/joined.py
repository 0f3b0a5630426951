"""Appends that meet go out as one write, awaited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochal.aio.bridge import run
from epochal.aio.writes import finished
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Outcome

if TYPE_CHECKING:
    from epochal.store.joined import JoinedAppends


@dataclass(frozen=True, slots=True)
class AsyncJoinedAppends:
    """Appends of tasks, joined where they meet: the methods of `JoinedAppends`, awaited, which raise what those do.

    One that is cancelled goes on to its end, whether it writes or waits for another that does, and `cancelled_write`
    tells its outcome. What others append with it is not touched by that.

    Attributes:
        joined: over the `store` of an `AsyncStreams`; one for all tasks.
    """

    joined: JoinedAppends

    async def append(self, stream: str, events: Sequence[Event]) -> Appended:
        """`JoinedAppends.append`."""
        return await finished(run(self.joined.append, stream, events))

    async def try_append(self, stream: str, events: Sequence[Event]) -> Outcome:
        """`JoinedAppends.try_append`."""
        return await finished(run(self.joined.try_append, stream, events))
