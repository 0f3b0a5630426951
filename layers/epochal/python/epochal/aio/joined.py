"""Appends that meet go out as one write, awaited."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.aio.methods import writes
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

    append = writes(JoinedAppends.append, of="joined")
    try_append = writes(JoinedAppends.try_append, of="joined")
