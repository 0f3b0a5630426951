"""Notifications of an application: one more stream, the log, which every insert appends to as well.

The library numbers notifications as a relational table does: from 1, without gaps, known as soon as an event is
inserted, and in the order in which readers see them. The feed of a deployment promises none of that but the order, and
that after some seconds; a stream promises it all. Its price: all inserts of an application append to one stream, so
they take turns, some hundreds of them a second at most.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    OperationalError,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
    TrackingRecorder,
)

from epochal.contrib.eventsourcing.aggregates import ATTEMPTS, EpochalAggregateRecorder
from epochal.contrib.eventsourcing.records import as_the_library_has_them, logged, notification
from epochal.model.events import Recorded, Unfold
from epochal.model.versions import NO_STREAM, Appended, ExpectedVersion, StreamAppend
from epochal.store.streams import Streams

T = TypeVar("T")

POLL_SECONDS: Final = 1.0
"""How often a subscription looks for what other processes have inserted; its own process notifies it."""

_SELECTED: Final = 500
"""Notifications that a subscription asks for at once."""


class EpochalApplicationRecorder(EpochalAggregateRecorder, ApplicationRecorder):
    """Inserts and selects the events of aggregates, and selects them as notifications.

    At most 99 aggregates are inserted to at once: the log is the hundredth stream.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        super().__init__(streams, category)
        self._log = f"{category}_log-all"
        self._turn = threading.Lock()
        self.inserts = Inserts()

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert the events of one aggregate or several, all or nothing; the ids of their notifications."""
        with (
            as_the_library_has_them(),
            self._turn,
        ):  # a transaction that another one refuses costs as much as its writes
            appended = self._insert(stored_events, **kwargs)
        if appended is None or not stored_events:
            return None
        self.inserts.add()
        first = appended.streams[self._log].first + 1
        return list(range(first, first + len(stored_events)))

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:
        others = super()._beside(stored_events, **kwargs)
        if not stored_events:
            return others
        return [StreamAppend(stream=self._log, events=[logged(each) for each in stored_events]), *others]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Notifications from `start` to `stop`, at most `limit`; of some topics, the others are read all the same."""
        first = 1 if start is None else max(start + (not inclusive_of_start), 1)
        with as_the_library_has_them():
            found = (notification(event) for event in self._logged(first, None if topics else limit))
            wanted = (each for each in found if not topics or each.topic in topics)
            return list(islice(_until(stop, wanted), limit))

    def _logged(self, first: int, limit: int | None) -> Iterator[Recorded]:
        return self._streams.read(self._log, start=first - 1, limit=limit) if limit != 0 else iter(())

    def max_notification_id(self) -> int | None:
        """The id of the last notification; None before the first."""
        with as_the_library_has_them():
            state = self._streams.load(self._log, fetch=False)
        return None if state is None else state.version

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Notifications above `gt`, and then those of later inserts, as they come."""
        return EpochalSubscription(self, gt, topics)


class Inserts:
    """What tells the subscriptions of a process that it has inserted something."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def add(self) -> None:
        """Have subscriptions look again."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        """Until there are others than these, or time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self.count != count, POLL_SECONDS)


class Polled(Generic[T]):
    """What a subscription of the library's iterates over."""

    _has_been_stopped: bool
    _pending: Iterator[T]

    def __next__(self) -> T:
        while not self._has_been_stopped:
            with suppress(StopIteration):
                return next(self._pending)
            self._pending = self._more()
        raise StopIteration

    @abstractmethod
    def _more(self) -> Iterator[T]:
        """What has come since; none, after a while."""


class EpochalSubscription(Polled[Notification], Subscription[ApplicationRecorder]):
    """Notifications as they come: read at once where this process inserts, and every second for the sake of others.

    Each is read once, those of other topics too.
    """

    def __init__(
        self, recorder: EpochalApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._inserts = recorder.inserts
        self._read_to = gt or 0
        self._pending: Iterator[Notification] = iter(())

    def stop(self) -> None:
        """End the iteration, also one that waits in another thread."""
        super().stop()
        self._inserts.add()

    def _more(self) -> Iterator[Notification]:
        inserts = self._inserts.count
        found = self._recorder.select_notifications(self._read_to, _SELECTED, inclusive_of_start=False)
        if found:
            self._read_to = found[-1].id
        elif not self._has_been_stopped:
            self._inserts.wait(inserts)
        return (each for each in found if not self._topics or each.topic in self._topics)


def _until(stop: int | None, found: Iterator[Notification]) -> Iterator[Notification]:
    for each in found:
        if stop is not None and each.id > stop:
            return
        yield each


# How far a process has come with what other applications tell: an unfold of a stream, one for each of them.
#
# A position only increases. It is written on the exact state that it was compared with, in one transaction with the
# events that the process makes of the notification, so that each is processed once.


POSITION: Final = "Position"


class EpochalTrackingRecorder(TrackingRecorder):
    """Records positions in what other applications tell.

    A view that is to be exactly as far as its position belongs into the same write: such a subclass appends to its own
    streams together with `tracked`.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        self._streams = streams
        self._category = category

    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position; `IntegrityError` where it is not above the last one."""
        with as_the_library_has_them():
            for _ in range(ATTEMPTS):
                each = self.tracked(tracking)
                made = self._streams.try_append(each.stream, (), unfolds=each.unfolds, expected=each.expected)
                if isinstance(made, Appended):
                    return
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def max_tracking_id(self, application_name: str) -> int | None:
        """The last position recorded for an application; None before the first."""
        with as_the_library_has_them():
            return self._position(application_name)[0]

    def tracked(self, tracking: Tracking) -> StreamAppend:
        """What records a position, for an `append_all`; `IntegrityError` where it is not above the last one."""
        last, expected = self._position(tracking.application_name)
        if last is not None and last >= tracking.notification_id:
            raise IntegrityError(
                f"{tracking.application_name} is tracked to {last}, so not to {tracking.notification_id}"
            )
        position = Unfold(type=POSITION, data=str(tracking.notification_id).encode())
        return StreamAppend(
            stream=self._tracking_of(tracking.application_name), unfolds=[position], expected=expected
        )

    def _position(self, application: str) -> tuple[int | None, ExpectedVersion]:
        state = self._streams.load(self._tracking_of(application))
        if state is None:
            return None, NO_STREAM
        position = int(state.unfolds[0].content) if state.unfolds else None  # its stream has been deleted
        return position, state.token

    def _tracking_of(self, application: str) -> str:
        return f"{self._category}_tracking-{application}"


class EpochalProcessRecorder(EpochalTrackingRecorder, EpochalApplicationRecorder, ProcessRecorder):
    """Records events together with the position of the notification that they were made of.

    At most 98 aggregates are inserted to at once with a position.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        EpochalApplicationRecorder.__init__(self, streams, category)

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:
        others = super()._beside(stored_events, **kwargs)
        tracking: Tracking | None = kwargs.get("tracking")
        return others if tracking is None else [*others, self.tracked(tracking)]
