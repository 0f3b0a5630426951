"""Logs what the handler of a function is working on, shortly before Lambda ends the function, and when a call has taken
too long.

Lambda ends a function that runs out of time in the middle of a call, and its own log line says only that. So each
invocation keeps the deliveries that are being handled, and a timer logs them shortly before the timeout. Keeping them
takes no lock, no request and no thread of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, Self

from epochal.hosting.leases import GRACE_SECONDS
from epochal.reactions.definition import Delivery

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

WARN_SECONDS: Final = 2.0
"""Seconds before its timeout at which a function logs what it is working on; a tenth of a timeout below 20 seconds."""

SPARED: Final = 0.2
"""Share of the function's time that is reserved for the last call and for saving. A call that takes longer may be cut
off."""

MOST_TYPES: Final = 10
"""Most types of events in one log line."""

OnTimeout = Callable[[Delivery, float], object]
"""Function of a delivery that is being handled shortly before the timeout, and of the seconds until it is retried."""

Alarm = Callable[[float, Callable[[], object]], Callable[[], object]]
"""Function that calls another one after so many seconds, from a thread of its own, and returns a function that cancels
the call."""


def in_timer(seconds: float, act: Callable[[], object]) -> Callable[[], object]:
    """Call a function after some seconds from a thread that ends with its process; returns how to cancel it."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer.cancel


class Deadline:
    """The timeout of one invocation, as a context manager: within it, a timer is running.

    Args:
        handler: name of the handler.
        seconds: seconds until the timeout.
        logger: gets a line for each delivery that is being handled shortly before the timeout.
        clock: a monotonic clock, in seconds.
        alarm: starts the timer.
        on_timeout: called after the lines are logged, once for each partition of which a delivery is being handled
            shortly before the timeout: with the delivery that takes longest.
    """

    def __init__(
        self,
        handler: str,
        seconds: float,
        *,
        logger: Logger,
        clock: Callable[[], float],
        alarm: Alarm = in_timer,
        on_timeout: OnTimeout = lambda _delivery, _due: None,
    ) -> None:
        self._handler = handler
        self._seconds = seconds
        self._logger = logger
        self._clock = clock
        self._alarm = alarm
        self._on_timeout = on_timeout
        # By thread, each of which handles one delivery at a time.
        self._under_way: dict[int, tuple[Delivery, float]] = {}

    def __enter__(self) -> Self:
        self._cancel = self._alarm(self._seconds - self._notice, self._report)
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()

    def call(self, handle: Callable[[Delivery], object], delivery: Delivery) -> None:
        """Call a handler with a delivery, and log the call if it takes more than a fifth of the timeout.

        Raises whatever the handler raises.
        """
        thread, begun = threading.get_ident(), self._clock()
        self._under_way[thread] = delivery, begun
        try:
            handle(delivery)
        finally:
            del self._under_way[thread]
            if (took := self._clock() - begun) > self._seconds * SPARED:
                self._logger.warning(
                    "a call of a handler took more than a fifth of the function's timeout",
                    extra=self._described(delivery, took),
                )

    @property
    def _notice(self) -> float:
        return min(WARN_SECONDS, self._seconds / 10)

    def _report(self) -> None:
        """Log every delivery that is being handled, and report the longest of each partition as timed out."""
        now = self._clock()
        under_way = list(self._under_way.values())
        for delivery, begun in under_way:
            self._logger.error(
                "a handler is still at work, and Lambda is about to end the function",
                extra=self._described(delivery, now - begun),
            )
        # Of each partition the call that has taken longest.
        longest = {
            delivery.partition: delivery for delivery, _ in sorted(under_way, key=_begun, reverse=True)
        }
        for delivery in longest.values():
            self._on_timeout(delivery, self._notice + GRACE_SECONDS)

    def _described(self, delivery: Delivery, took: float) -> dict[str, Any]:
        """Return the log fields of a delivery that is being handled."""
        return {
            "handler": self._handler,
            **place(delivery),
            "seconds": round(took, 1),
            "timeout": round(self._seconds),
        }


def _begun(call: tuple[Delivery, float]) -> float:
    return call[1]


def place(delivery: Delivery) -> dict[str, Any]:
    """Return the log fields of a delivery: partition, stream, first index, number and types of its events."""
    removal = delivery.removal
    if removal is not None:
        events: dict[str, Any] = {"index": removal.end, "removal": removal.kind}
    else:
        types = _first({event.type for event in delivery.events})
        events = {"index": delivery.events[0].index, "events": len(delivery.events), "types": types}
    return {"partition": delivery.partition, "stream": delivery.stream, **events}


def _first(types: Collection[str]) -> list[str]:
    return sorted(types)[:MOST_TYPES]
