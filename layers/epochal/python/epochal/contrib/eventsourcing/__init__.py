"""Recorders for the `eventsourcing` library: its applications, on streams of Epochal's.

    PERSISTENCE_MODULE=epochal.contrib.eventsourcing

An aggregate's events are a stream, `Kennel-<id>`; its snapshots another, `Kennel_snapshots-<id>`. An application's
notifications are a stream as well, `Kennel_log-all`, which every save appends to, in the transaction that appends to
the aggregates. So they are numbered from 1 without gaps, and each is there as soon as its event is; and so all saves of
an application take turns. How far a process has come with what another application tells is `Kennel_tracking-<name>`.
Events of an application with dynamic consistency boundaries are the stream `Kennel_dcb-all`, where they carry their
tags.

    EPOCHAL_STREAMS_TABLE    the table of streams; `:memory:` for one in memory, as the library has it for SQLite
    EPOCHAL_BUCKET           of bodies too large for an item; without one they are refused

As all settings of the library's, each may begin with an application's name (`KENNEL_EPOCHAL_STREAMS_TABLE`). Region,
credentials and endpoint are AWS's own settings.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, TypeVar

from epochal.dynamo.stores import open_streams
from epochal.errors import brought_by
from epochal.model.events import Recorded
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import Query, QueryItem
from epochal.plan.limits import BATCH_KEYS
from epochal.settings import variable
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

with brought_by("eventsourcing", "its recorders", "eventsourcing"):
    from eventsourcing.dcb.api import (
        DCBAppendCondition,
        DCBEvent,
        DCBQuery,
        DCBQueryItem,
        DCBReadResponse,
        DCBRecorder,
        DCBSequencedEvent,
        DCBSubscription,
    )
    from eventsourcing.dcb.persistence import DCBInfrastructureFactory
    from eventsourcing.dcb.popo import SimpleDCBReadResponse
    from eventsourcing.persistence import (
        AggregateRecorder,
        ApplicationRecorder,
        InfrastructureFactory,
        InfrastructureFactoryError,
        IntegrityError,
        OperationalError,
        ProcessRecorder,
        ProgrammingError,
    )
    from eventsourcing.utils import resolve_topic

    from epochal.contrib.eventsourcing.application_recorder import EpochalApplicationRecorder
    from epochal.contrib.eventsourcing.recorders import ATTEMPTS, EpochalAggregateRecorder
    from epochal.contrib.eventsourcing.records import as_the_library_has_them, tagged_as, tags_of
    from epochal.contrib.eventsourcing.subscriptions import Inserts, Polled
    from epochal.contrib.eventsourcing.tracking import EpochalProcessRecorder, EpochalTrackingRecorder

__all__ = [
    "EpochalAggregateRecorder",
    "EpochalApplicationRecorder",
    "EpochalDCBRecorder",
    "EpochalFactory",
    "EpochalProcessRecorder",
    "EpochalTrackingRecorder",
]

T = TypeVar("T")

TABLE: Final = variable("streams_table")
BUCKET: Final = variable("bucket")
MEMORY: Final = ":memory:"
KEPT_BESIDE: Final = ("_dcb", "_log", "_snapshots", "_tracking")
"""Endings of the categories of streams that an application has beside its events."""
UNNAMED: Final = "Stored"
"""The category of an application without a name."""


class EpochalFactory(
    InfrastructureFactory[EpochalTrackingRecorder], DCBInfrastructureFactory[EpochalTrackingRecorder]
):
    """A factory of the eventsourcing library's recorders, on the table of streams that environment variables name."""

    @cached_property
    def streams(self) -> Streams:
        """Store of streams of all recorders, in DynamoDB or memory; an error if no table is named.

        Raises:
            InfrastructureFactoryError: the environment names no table.
        """
        table = self.env.get(TABLE)
        if not table:
            raise InfrastructureFactoryError(f"{TABLE} must name the table of streams, or be {MEMORY}")
        return memory_streams() if table == MEMORY else open_streams(table, bucket=self.env.get(BUCKET, ""))

    @property
    def category(self) -> str:
        """Category of the aggregates' streams: the application's name or `Stored`; an error if it is unusable.

        Raises:
            InfrastructureFactoryError: the name has a hyphen, so it is no category: `A-B` with the id `1` would be `A`
                with the id `B-1`. Or it is the category of other streams of another application: `A_log` has A's
                notifications.
        """
        if "-" in self.env.name:
            raise InfrastructureFactoryError(f"{self.env.name!r} cannot name streams: it contains a hyphen")
        if self.env.name.endswith(KEPT_BESIDE):
            ends = ", ".join(KEPT_BESIDE)
            raise InfrastructureFactoryError(
                f"{self.env.name!r} cannot name streams: names that end with {ends} belong to other applications"
            )
        return self.env.name or UNNAMED

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """Make a recorder of the application's events, or of another purpose with gaps between versions.

        The purpose `snapshots` has gaps between versions.

        Args:
            purpose: `events`, or another purpose, such as `snapshots`, whose streams are kept apart.
        """
        if purpose == "events":
            return EpochalAggregateRecorder(self.streams, self.category)
        return EpochalAggregateRecorder(self.streams, f"{self.category}_{purpose}", gaps=True)

    def application_recorder(self) -> ApplicationRecorder:
        """Make a recorder of events and notifications."""
        return self._recorder_class(self.APPLICATION_RECORDER_TOPIC, EpochalApplicationRecorder)(
            self.streams, self.category
        )

    def dcb_recorder(self) -> EpochalDCBRecorder:
        """Make a recorder of events with tags."""
        return EpochalDCBRecorder(self.streams, self.category)

    def tracking_recorder(
        self, tracking_recorder_class: type[EpochalTrackingRecorder] | None = None
    ) -> EpochalTrackingRecorder:
        """Make a recorder of positions in other applications' notifications, and of nothing else.

        Args:
            tracking_recorder_class: class of the recorder; None for the one that the environment names, or else the
                default.
        """
        kind = tracking_recorder_class or self._recorder_class(
            self.TRACKING_RECORDER_TOPIC, EpochalTrackingRecorder
        )
        return kind(self.streams, self.category)

    def process_recorder(self) -> ProcessRecorder:
        """Make a recorder of events, notifications, and positions in other applications' notifications."""
        return self._recorder_class(self.PROCESS_RECORDER_TOPIC, EpochalProcessRecorder)(
            self.streams, self.category
        )

    def _recorder_class(self, setting: str, otherwise: type[T]) -> type[T]:
        """Return the class that a setting names, or `otherwise`; raise unless it is a subclass of that.

        Raises:
            InfrastructureFactoryError: the setting names another kind of object.
        """
        topic = self.env.get(setting)
        kind = resolve_topic(topic) if topic else otherwise
        if not (isinstance(kind, type) and issubclass(kind, otherwise)):
            raise InfrastructureFactoryError(f"{setting} must name a subclass of {otherwise.__name__}")
        return kind


# Events of applications with dynamic consistency boundaries: one stream has all of them, and their tags index them.
#
# The library numbers events from 1 without gaps, over a whole application. So they are appended to one stream, the
# log, where the number of an event is its index plus one. They have their tags there, and each tag has a chain of
# pages.
#
#     append    to the log, expecting exactly the end that was read, once no event up to there forbids it
#     read      from the pages of the query's tags; without tags, or near the end, from those of the log
#       └ tags  are read again together: an event that is in the log may not be in all of its tags yet, while its
#               transaction is being applied
#
# The log alone decides the order of appends, so an append needs no other conditions. The cost: all appends of an
# application are serialized, some hundreds of them a second at most.

NEAR: Final = 100
"""Most events that are read from the log instead of the tags: some 30 KB, in one request where tags take three."""


class EpochalDCBRecorder(DCBRecorder):
    """A recorder that appends and reads events with tags.

    Args:
        streams: streams of the `pages` layout, which has tags.
        category: category that the names of the log and of the tags begin with.
        near: number of events up to which the log is read instead of the tags.
    """

    def __init__(self, streams: Streams, category: str, *, near: int = NEAR) -> None:
        self._streams = streams
        self._log = f"{category}_dcb-all"
        self._prefix = f"{category}_dcb:"
        self._near = near
        self._turn = threading.Lock()
        self.inserts = Inserts()

    def append(self, events: Sequence[DCBEvent], condition: DCBAppendCondition | None = None) -> int:
        """Append all events and return the last one's number; raise if a stored event matches `condition`.

        Args:
            events: events to append; at least one.
            condition: query, and number after which no event may match it; None for no condition.

        Raises:
            IntegrityError: an event matches the condition.
            DataError: no item or tag can hold an event, or there are more than 99 different tags.
        """
        if not events:
            raise ProgrammingError("an append needs at least one event")
        # Appends are serialized: a refused transaction costs as much as its writes.
        with as_the_library_has_them(), self._turn:
            last = self._appended(events, condition)
        self.inserts.add()
        return last

    def read(
        self, query: DCBQuery | None = None, *, after: int | None = None, limit: int | None = None
    ) -> DCBReadResponse:
        """Return the matching events above number `after`, at most `limit`, and the number of the head.

        The head is the number of the last event of all, or with a limit the number of the last event returned.

        Args:
            query: query that the events match; None for all events.
            after: number of an event; None for all events.
            limit: number of events at most; None for all.
        """
        with as_the_library_has_them():
            end, _ = self._end()
        sequenced = self._sequenced(query or DCBQuery(), after or 0, end)
        if limit is None:
            return SimpleDCBReadResponse(sequenced, end or None)
        events = list(islice(sequenced, max(limit, 0)))
        return SimpleDCBReadResponse(iter(events), events[-1].position if events else None)

    def subscribe(
        self, query: DCBQuery | None = None, *, after: int | None = None
    ) -> DCBSubscription[EpochalDCBRecorder]:
        """Subscribe to the events numbered above `after` that match `query`, including those of later appends.

        Args:
            query: query that the events match; None for all events.
            after: number of an event; None for all events.
        """
        return EpochalDCBSubscription(self, query, after)

    def _appended(self, events: Sequence[DCBEvent], condition: DCBAppendCondition | None) -> int:
        """Append events and return the last one's number; raise if a stored event matches the condition.

        Returns the number of the last event.
        """
        stored = [tagged_as(event.type, event.data, event.tags, self._prefix) for event in events]
        expected: ExpectedVersion = ANY
        after = (condition and condition.after) or 0
        for _ in range(ATTEMPTS):
            if condition is not None:
                end, expected = self._end()
                if any(self._matching(condition.fail_if_events_match, after, end)):
                    raise IntegrityError(condition)
                after = max(after, end)
            match self._streams.try_append(self._log, stored, expected=expected):
                case Appended(version=last):
                    return last
                case Conflict():
                    continue
                case Undetermined():
                    raise OperationalError("a response was lost, and the evidence has been pruned since")
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def _end(self) -> tuple[int, ExpectedVersion]:
        """Return the number of the log's last event, and the expected version of an append there."""
        state = self._streams.load(self._log, events=False)
        return (0, NO_STREAM) if state is None else (state.version, state.token)

    def _sequenced(self, query: DCBQuery, after: int, end: int) -> Iterator[DCBSequencedEvent]:
        """Yield the matching events between two numbers, as sequenced events of the library."""
        with as_the_library_has_them():
            for recorded in self._matching(query, after, end):
                event = DCBEvent(
                    type=recorded.type, data=recorded.content, tags=tags_of(recorded, self._prefix)
                )
                yield DCBSequencedEvent(event=event, position=recorded.index + 1)

    def _matching(self, query: DCBQuery, after: int, end: int) -> Iterator[Recorded]:
        """Iterate in order over the matching events above number `after`, up to and including `end`."""
        items = [
            QueryItem(types=frozenset(item.types), tags=frozenset(self._prefix + tag for tag in item.tags))
            for item in query.items or [DCBQueryItem()]
        ]
        tagged_query = Query(items=tuple(items))
        if after >= end:
            return iter(())
        if end - after > self._near and all(item.tags for item in items):
            return iter(self._by_tags(tagged_query, after, end))
        log = self._streams.read(self._log, start=after, limit=end - after)
        return (entry for entry in log if tagged_query.matches(entry.type, entry.tags))

    def _by_tags(self, query: Query, after: int, end: int) -> Sequence[Recorded]:
        """Read the matching events between two numbers from the pages of the query's tags.

        The tags are read again until no transaction has changed them meanwhile.
        """
        for _ in range(ATTEMPTS):
            result = self._streams.tagged.read(query)
            tags = [(f"{TAG_STREAMS}{tag}", reached.token) for tag, reached in result.position.seen.items()]
            at_once = (dict(tags[start : start + BATCH_KEYS]) for start in range(0, len(tags), BATCH_KEYS))
            # A transaction that reads waits for those that write: every event seen in the log is in its tags by now.
            looks = (self._streams.append_on(some, []) for some in at_once)
            if all(isinstance(look, Appended) for look in looks):
                # Places are in the order of numbers, since every append's transaction includes the log.
                return [
                    event
                    for event in result.events
                    if event.stream == self._log and after <= event.index < end
                ]
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")


class EpochalDCBSubscription(Polled[DCBSequencedEvent], DCBSubscription[EpochalDCBRecorder]):
    """A subscription to events, which polls at once after appends of this process, else every second."""

    def __init__(self, recorder: EpochalDCBRecorder, query: DCBQuery | None, after: int | None) -> None:
        super().__init__(recorder, query, after)
        self._inserts = recorder.inserts
        self._pending: Iterator[DCBSequencedEvent] = iter(())

    def stop(self) -> None:
        """End the iteration, even if it is waiting in another thread."""
        super().stop()
        self._inserts.add()

    def _more(self) -> Iterator[DCBSequencedEvent]:
        """Return the events since the last ones; if there are none, wait for an append and return none."""
        inserts = self._inserts.count
        response = self._recorder.read(self._query, after=self._last_position)
        if response.head is None or response.head <= self._last_position:
            self._inserts.wait(inserts)
            return iter(())
        self._last_position = response.head
        return response


def __dir__() -> list[str]:
    return sorted(__all__)
