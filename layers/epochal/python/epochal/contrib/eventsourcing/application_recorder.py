"""Recorder of the events of an application, which selects them as notifications too.

Notifications of an application are one more stream, the log, which every insert appends to as well. The library numbers
them as a relational table does: from 1, without gaps, known as soon as an event is inserted, and in the order in which
readers see them. The feed of a deployment promises none of that but the order, and that after some seconds; a stream
promises it all. Its price: all inserts of an application append to one stream, so they take turns, some hundreds of
them a second at most.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from eventsourcing.persistence import ApplicationRecorder, Notification, StoredEvent, Subscription

from epochal.contrib.eventsourcing.recorders import EpochalAggregateRecorder
from epochal.contrib.eventsourcing.records import as_the_library_has_them, logged, notification
from epochal.contrib.eventsourcing.subscriptions import EpochalSubscription, Inserts
from epochal.model.events import Recorded
from epochal.model.stream_append import StreamAppend
from epochal.store.streams import Streams


class EpochalApplicationRecorder(EpochalAggregateRecorder, ApplicationRecorder):
    """A recorder of events of aggregates, which selects them by aggregate, or all in order as notifications.

    At most 99 aggregates are saved at once: the log is the hundredth stream of the transaction.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        super().__init__(streams, category)
        self._log = f"{category}_log-all"
        self._turn = threading.Lock()
        self.inserts = Inserts()

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert all events of aggregates, and return their notification ids; None if there are no events.

        All or none of the events are inserted. Returns None if there are none.
        """
        # Inserts are serialized: a refused transaction costs as much as its writes.
        with as_the_library_has_them(), self._turn:
            appended = self._insert(stored_events, **kwargs)
        if appended is None or not stored_events:
            return None
        self.inserts.add()
        first = appended.streams[self._log].first + 1
        return list(range(first, first + len(stored_events)))

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:
        """Return the append of the events to the application's log, before further appends."""
        others = super()._beside(stored_events, **kwargs)
        if not stored_events:
            return others
        return [StreamAppend(stream=self._log, events=[logged(event) for event in stored_events]), *others]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return at most `limit` notifications with ids `start` to `stop`, of all topics or of those given.

        With topics, notifications of other topics are read as well, and left out.

        Args:
            start: id of the first notification; None for the first of all.
            limit: number of notifications at most.
            stop: id of the last notification; None for no limit.
            topics: topics of the notifications; empty for all.
            inclusive_of_start: False leaves out the notification `start` itself.
        """
        first = 1 if start is None else max(start + (not inclusive_of_start), 1)
        with as_the_library_has_them():
            notifications = (notification(event) for event in self._logged(first, None if topics else limit))
            selected = (entry for entry in notifications if not topics or entry.topic in topics)
            return list(islice(_until(stop, selected), limit))

    def _logged(self, first: int, limit: int | None) -> Iterator[Recorded]:
        """Read at most `limit` events of the log, from number `first` on."""
        return self._streams.read(self._log, start=first - 1, limit=limit) if limit != 0 else iter(())

    def max_notification_id(self) -> int | None:
        """Return the id of the last notification, or None if there is none."""
        with as_the_library_has_them():
            state = self._streams.load(self._log, events=False)
        return None if state is None else state.version

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Subscribe to the notifications with ids above `gt`, including those of later inserts.

        Args:
            gt: id after which the notifications begin; None for all.
            topics: topics of the notifications; empty for all.
        """
        return EpochalSubscription(self, self.inserts, gt, topics)


def _until(stop: int | None, notifications: Iterator[Notification]) -> Iterator[Notification]:
    """Yield notifications up to and including the id `stop`, or all if it is None."""
    for entry in notifications:
        if stop is not None and entry.id > stop:
            return
        yield entry
