"""Calling a reaction's handler, and waiting until it is done.

A plain function is done when it returns. An `async def` is run by an event loop, and whoever delivers waits for it as
for a plain one. So order, repeats, parking and checkpoints are the same for both; what the handlers of many streams
wait for, they wait for side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Self

from epochal.reactions.reaction import Delivery, Reaction

if TYPE_CHECKING:
    from epochal.reactions.event_loop import EventLoop


class Calls:
    """A reaction's handler as something to be called; a context, in which it has its event loop, where it needs one.

    Contexts may be nested: the loop begins with the outermost, and ends with it. A process that handles again and again
    stays in one.
    """

    def __init__(self, reaction: Reaction) -> None:
        self._reaction = reaction
        self._lock = threading.Lock()
        self._depth = 0
        self._loop: EventLoop | None = None

    def __call__(self, delivery: Delivery) -> None:
        """Handle one delivery; raises what the handler raises."""
        handled = self._reaction(delivery)
        if isinstance(handled, Coroutine):
            assert self._loop is not None  # noqa: S101  it is called within its context
            self._loop.run(handled)

    def begin(self) -> None:
        """Enter the context; raises what the reaction's `within` does when it is entered."""
        with self._lock:
            if self._depth == 0 and self._reaction.asynchronous:
                # Functions whose handlers are plain start without asyncio.
                from epochal.reactions.event_loop import EventLoop  # noqa: PLC0415

                self._loop = EventLoop(self._reaction.within)
            self._depth += 1

    def end(self) -> None:
        """Leave it."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._loop is not None:
                self._loop.close()
                self._loop = None

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
