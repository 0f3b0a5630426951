"""Calls of a reaction's handler, each of which returns once the handler is done.

A plain function is done when it returns. An `async def` runs on an event loop, and the caller waits for it as for a
plain function. So order, repeats, parking and checkpoints are the same for both, and the handlers of many streams wait
at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Self

from epochal.reactions.definition import Delivery, Reaction

if TYPE_CHECKING:
    from epochal.reactions.event_loop import EventLoop

Around = Callable[[Callable[[Delivery], object], Delivery], object]
"""Function around each call of a handler. It gets a function that calls the handler, and the delivery; it raises what
the call raises."""


class Calls:
    """A reaction's handler as a function, and the context in which an async one has its event loop.

    Contexts may be nested: the loop begins with the outermost and ends with it. A process that handles again and again
    stays in one.
    """

    def __init__(self, reaction: Reaction) -> None:
        self._reaction = reaction
        self._lock = threading.Lock()
        self._depth = 0
        self._loop: EventLoop | None = None

    def __call__(self, delivery: Delivery) -> None:
        """Handle one delivery; raise what the handler raises."""
        result = self._reaction(delivery)
        if isinstance(result, Coroutine):
            assert self._loop is not None  # noqa: S101  it is called within its context
            self._loop.run(result)

    def begin(self) -> None:
        """Enter the context, and start the event loop of an async handler with the first entry.

        Raises what entering the reaction's `within` raises.
        """
        with self._lock:
            if self._depth == 0 and self._reaction.asynchronous:
                # Functions whose handlers are plain start without asyncio.
                from epochal.reactions.event_loop import EventLoop  # noqa: PLC0415

                self._loop = EventLoop(self._reaction.within)
            self._depth += 1

    def end(self) -> None:
        """Leave the context, and close the event loop with the last exit."""
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
