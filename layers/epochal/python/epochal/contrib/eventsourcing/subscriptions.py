"""Subscriptions to the notifications of an application, which poll at once after inserts of their own process."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from eventsourcing.persistence import ApplicationRecorder, Notification, Subscription

T = TypeVar("T")

POLL_SECONDS: Final = 1.0
"""Interval of a subscription's polling for inserts of other processes; its own process notifies it."""

_SELECTED: Final = 500
"""Notifications that a subscription selects at a time."""


class Inserts:
    """A counter of a process's inserts that wakes the process's subscriptions."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def add(self) -> None:
        """Count an insert, and wake all subscriptions."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        """Wait until the number of inserts is not `count` any more, for at most `POLL_SECONDS`."""
        with self._changed:
            self._changed.wait_for(lambda: self.count != count, POLL_SECONDS)


class Polled(Generic[T]):
    """An iterator of a subscription of the library that polls for more items."""

    _has_been_stopped: bool
    _pending: Iterator[T]

    def __next__(self) -> T:
        """Return the next item, waiting for one if there is none; raise `StopIteration` once stopped.

        Raises:
            StopIteration: the subscription has been stopped.
        """
        while not self._has_been_stopped:
            with suppress(StopIteration):
                return next(self._pending)
            self._pending = self._more()
        raise StopIteration

    @abstractmethod
    def _more(self) -> Iterator[T]:
        """Return the items since the last ones; after a wait, there may be none."""


class EpochalSubscription(Polled[Notification], Subscription[ApplicationRecorder]):
    """A subscription to notifications, which polls at once after inserts of this process.

    For inserts of other processes, it polls every second.

    Each notification is read once, including those of other topics.
    """

    def __init__(
        self,
        recorder: ApplicationRecorder,
        inserts: Inserts,
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        """Begin after the notification `gt`, or with the first one; read all topics if none is given."""
        super().__init__(recorder, gt, topics)
        self._inserts = inserts
        self._read_to = gt or 0
        self._pending: Iterator[Notification] = iter(())

    def stop(self) -> None:
        """End the iteration, even if it is waiting in another thread."""
        super().stop()
        self._inserts.add()

    def _more(self) -> Iterator[Notification]:
        """Return the notifications since the last ones; if there are none, wait for an insert and return none."""
        inserts = self._inserts.count
        notifications = self._recorder.select_notifications(
            self._read_to, _SELECTED, inclusive_of_start=False
        )
        if notifications:
            self._read_to = notifications[-1].id
        elif not self._has_been_stopped:
            self._inserts.wait(inserts)
        return (
            notification
            for notification in notifications
            if not self._topics or notification.topic in self._topics
        )
