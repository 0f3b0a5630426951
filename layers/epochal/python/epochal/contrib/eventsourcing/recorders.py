"""Events of aggregates in streams, an aggregate a stream.

A version of an aggregate is there once, because its event's place in the stream is expected to be free:

    a first version     no stream yet
    version n           a stream of n - 1 events, since the library counts from 1
      └ n events there  its last one tells: an application that counts from 0, or another writer was first
    with gaps           a stream whose last version is lower, as those of snapshots are: it is read first

So an insert is one transaction, and nothing is read for it. Where an application counts from 0, each is refused once.

Notifications of an application are one more stream, the log, which every insert appends to as well. The library numbers
them as a relational table does: from 1, without gaps, known as soon as an event is inserted, and in the order in which
readers see them. The feed of a deployment promises none of that but the order, and that after some seconds; a stream
promises it all. Its price: all inserts of an application append to one stream, so they take turns, some hundreds of
them a second at most.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
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

from epochal.contrib.eventsourcing.records import (
    as_the_library_has_them,
    event_at,
    logged,
    notification,
    stored_event,
    version_of,
)
from epochal.model.events import Recorded, Unfold
from epochal.model.versions import (
    NO_STREAM,
    Appended,
    AtVersion,
    Conflict,
    ExpectedVersion,
    StreamAppend,
    Undetermined,
)
from epochal.store.streams import Streams

ATTEMPTS: Final = 10
"""Most attempts of one insert, each of which other writers may overtake."""


class _Place(NamedTuple):
    """Index in a stream of the first event of an insert, and the stream's expected version."""

    expected: ExpectedVersion
    at: int


class EpochalAggregateRecorder(AggregateRecorder):
    """A recorder that inserts and selects the events of aggregates.

    Args:
        streams: streams of the `pages` layout, where several aggregates may be saved at once.
        category: category of the streams' names.
        gaps: whether versions may be left out, as among snapshots; they still only increase.

    Both methods raise the library's errors: `IntegrityError` if a version exists already or is not the next one,
    `DataError` if no item or name can hold an event, `OperationalError` if the store cannot be reached.
    """

    def __init__(self, streams: Streams, category: str, *, gaps: bool = False) -> None:
        self._streams = streams
        self._category = category
        self._gaps = gaps

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert all events of one aggregate or several, at most 100 aggregates, in one transaction.

        Args:
            stored_events: events to insert.
            kwargs: further arguments; a process recorder takes `tracking`.
        """
        with as_the_library_has_them():
            self._insert(stored_events, **kwargs)
        return None

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the aggregate's events above version `gt` up to `lte`, at most `limit`, from either end.

        Args:
            originator_id: id of the aggregate.
            gt: version after which the events begin; None for the first.
            lte: version of the last event; None for no limit.
            desc: whether the newest event comes first.
            limit: number of events at most; None for all.
        """
        if limit is not None and limit < 1:
            return []
        with as_the_library_has_them():
            return list(islice(self._selected(originator_id, gt, lte, desc=desc), limit))

    def _stream(self, originator: UUID | str) -> str:
        """Return the name of an aggregate's stream."""
        return f"{self._category}-{originator}"

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:  # noqa: ARG002
        """Return further appends for the events' transaction, none by default.

        It is called at each attempt, and may refuse the attempt by raising an error.
        """
        return ()

    def _insert(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Appended | None:
        """Append events to the streams of their aggregates, with further appends; retry after conflicts.

        Returns None if there is nothing to append.

        Raises:
            IntegrityError: a version exists already, or is not the next one.
            OperationalError: the outcome is unknown, or every attempt failed.
        """
        groups = _by_stream(stored_events, self._stream)
        places = {stream: self._first_place(stream, events[0]) for stream, events in groups.items()}
        for _ in range(ATTEMPTS):
            appends = [
                *(_append(stream, events, places[stream]) for stream, events in groups.items()),
                *self._beside(stored_events, **kwargs),
            ]
            if not appends:
                return None
            match self._streams.try_append_all(appends):
                case Appended() as appended:
                    return appended
                case Undetermined():
                    raise OperationalError("a response was lost, and what would tell has been pruned since")
                case Conflict(streams=conflicts):
                    for stream in groups.keys() & conflicts.keys():
                        places[stream] = self._next_place(stream, groups[stream][0], conflicts[stream])
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def _first_place(self, stream: str, first: StoredEvent) -> _Place:
        """Return the place in a stream where its first event is expected to go, by the event's version.

        With gaps, the stream's end is read.

        Raises:
            IntegrityError: with gaps, the stream has that version or a later one.
        """
        version = first.originator_version
        if self._gaps:
            count, last = self._end(stream)
            if last is not None and last >= version:
                raise IntegrityError(f"{stream} is at version {last}, so it takes no version {version}")
            return _Place(AtVersion(version=count), count)
        if version in (0, 1):
            return _Place(NO_STREAM, 0)
        return _Place(AtVersion(version=version - 1), version - 1)

    def _next_place(self, stream: str, first: StoredEvent, conflict: Conflict) -> _Place:
        """Return where to retry events after a conflict, if their version is still the next one of the stream.

        Raises:
            IntegrityError: the event's version exists already, or is not the next one.
        """
        version = first.originator_version
        if self._gaps:
            return self._first_place(stream, first)
        count, last = self._end(stream) if conflict.version == version else (conflict.version, None)
        if last is None or conflict.deleted or last + 1 != version:
            raise IntegrityError(f"{stream} has {count} events, and takes no version {version} next")
        return _Place(AtVersion(version=count), count)

    def _end(self, stream: str) -> tuple[int, int | None]:
        """Return the number of a stream's events, and the version of the last one or None."""
        page = self._streams.page(stream, limit=1, direction="backward", fetch=False)
        return page.version, version_of(page.events[0]) if page.events else None

    def _selected(
        self, originator: UUID | str, gt: int | None, lte: int | None, *, desc: bool
    ) -> Iterator[StoredEvent]:
        """Yield an aggregate's events above version `gt` up to `lte`, in the order of versions or reversed."""
        # Without gaps, a version is the index of its event or the one after it.
        low, high = (None, None) if self._gaps else (gt, lte)
        page = self._streams.read(
            self._stream(originator),
            start=_index(high if desc else low),
            direction="backward" if desc else "forward",
        )
        for event in page:
            version = version_of(event)
            if (gt is not None and version <= gt) or (lte is not None and version > lte):
                if desc == (gt is not None and version <= gt):
                    return
                continue
            yield stored_event(originator, event)


def _index(bound: int | None) -> int | None:
    """Return the index from which to read, at least 0, or None for either end."""
    return None if bound is None else max(bound, 0)


def _append(stream: str, events: Sequence[StoredEvent], place: _Place) -> StreamAppend:
    """Build the append of an aggregate's events at a place in its stream."""
    stored = [event_at(index, event) for index, event in enumerate(events, place.at)]
    return StreamAppend(stream=stream, events=stored, expected=place.expected)


def _by_stream(
    stored_events: Sequence[StoredEvent], stream_of: Callable[[UUID | str], str]
) -> dict[str, list[StoredEvent]]:
    """Group events by the streams that they belong to.

    Raises:
        IntegrityError: an event's version does not follow the one before of the same aggregate.
    """
    groups: dict[str, list[StoredEvent]] = {}
    for event in stored_events:
        group = groups.setdefault(stream_of(event.originator_id), [])
        if group and group[-1].originator_version + 1 != event.originator_version:
            before = group[-1].originator_version
            raise IntegrityError(f"version {event.originator_version} does not follow version {before}")
        group.append(event)
    return groups


T = TypeVar("T")

POLL_SECONDS: Final = 1.0
"""Interval of a subscription's polling for inserts of other processes; its own process notifies it."""

_SELECTED: Final = 500
"""Notifications that a subscription selects at a time."""


class EpochalApplicationRecorder(EpochalAggregateRecorder, ApplicationRecorder):
    """A recorder of the events of aggregates that also selects them as notifications.

    At most 99 aggregates are saved at once: the log is the hundredth stream of the transaction.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        super().__init__(streams, category)
        self._log = f"{category}_log-all"
        self._turn = threading.Lock()
        self.inserts = Inserts()

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert all events of one or several aggregates, and return the ids of their notifications.

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
        """Return the notifications from `start` to `stop`, at most `limit`, of all or of some topics.

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
            selected = (each for each in notifications if not topics or each.topic in topics)
            return list(islice(_until(stop, selected), limit))

    def _logged(self, first: int, limit: int | None) -> Iterator[Recorded]:
        """Read at most `limit` events of the log, from number `first` on."""
        return self._streams.read(self._log, start=first - 1, limit=limit) if limit != 0 else iter(())

    def max_notification_id(self) -> int | None:
        """Return the id of the last notification, or None if there is none."""
        with as_the_library_has_them():
            state = self._streams.load(self._log, fetch=False)
        return None if state is None else state.version

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Subscribe to the notifications above `gt`, including those of later inserts.

        Args:
            gt: id after which the notifications begin; None for all.
            topics: topics of the notifications; empty for all.
        """
        return EpochalSubscription(self, gt, topics)


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
        """Return the next item, and wait for one if there is none.

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
        self, recorder: EpochalApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._inserts = recorder.inserts
        self._read_to = gt or 0
        self._pending: Iterator[Notification] = iter(())

    def stop(self) -> None:
        """End the iteration, even if it is waiting in another thread."""
        super().stop()
        self._inserts.add()

    def _more(self) -> Iterator[Notification]:
        """Return the notifications since the last ones, or wait for an insert if there are none."""
        inserts = self._inserts.count
        notifications = self._recorder.select_notifications(
            self._read_to, _SELECTED, inclusive_of_start=False
        )
        if notifications:
            self._read_to = notifications[-1].id
        elif not self._has_been_stopped:
            self._inserts.wait(inserts)
        return (each for each in notifications if not self._topics or each.topic in self._topics)


def _until(stop: int | None, found: Iterator[Notification]) -> Iterator[Notification]:
    """Yield notifications up to and including the id `stop`, or all if it is None."""
    for each in found:
        if stop is not None and each.id > stop:
            return
        yield each


# How far a process has read the notifications of other applications: an unfold of a stream for each application.
#
# A position only increases. It is written on condition of the exact state that it was compared with, in one transaction
# with the events that the process makes from the notification, so that each notification is processed once.


POSITION: Final = "Position"


class EpochalTrackingRecorder(TrackingRecorder):
    """A recorder of positions in the notifications of other applications.

    A view that must be exactly as far as its position has to be written together with it: a subclass for that appends
    to its own streams together with `tracked`.

    Args:
        streams: store of the streams.
        category: beginning of the names of the recorder's streams.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        self._streams = streams
        self._category = category

    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position in another application's notifications.

        Args:
            tracking: name of the other application, and id of its notification.

        Raises:
            IntegrityError: the position is not above the last one.
            OperationalError: other writers were faster at every attempt.
        """
        with as_the_library_has_them():
            for _ in range(ATTEMPTS):
                tracked = self.tracked(tracking)
                outcome = self._streams.try_append(
                    tracked.stream, (), unfolds=tracked.unfolds, expected=tracked.expected
                )
                if isinstance(outcome, Appended):
                    return
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def max_tracking_id(self, application_name: str) -> int | None:
        """Return the last position recorded for an application, or None if there is none.

        Args:
            application_name: name of the other application.
        """
        with as_the_library_has_them():
            return self._position(application_name)[0]

    def tracked(self, tracking: Tracking) -> StreamAppend:
        """Build the append that records a position, for an `append_all`.

        Args:
            tracking: name of the other application, and id of its notification.

        Raises:
            IntegrityError: the position is not above the last one.
        """
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
        """Return the position recorded for an application, or None, with the expected version to replace it."""
        state = self._streams.load(self._tracking_of(application))
        if state is None:
            return None, NO_STREAM
        # There is no unfold if the stream has been deleted.
        position = int(state.unfolds[0].content) if state.unfolds else None
        return position, state.token

    def _tracking_of(self, application: str) -> str:
        """Return the name of the stream with the position in an application's notifications."""
        return f"{self._category}_tracking-{application}"


class EpochalProcessRecorder(EpochalTrackingRecorder, EpochalApplicationRecorder, ProcessRecorder):
    """A recorder of events together with the position of the notification that caused them.

    At most 98 aggregates are saved at once with a position.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        EpochalApplicationRecorder.__init__(self, streams, category)

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:
        """Return the append to the log, with the append of the tracking position if there is one."""
        others = super()._beside(stored_events, **kwargs)
        tracking: Tracking | None = kwargs.get("tracking")
        return others if tracking is None else [*others, self.tracked(tracking)]
