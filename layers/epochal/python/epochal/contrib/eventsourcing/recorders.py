"""Events of aggregates in streams, an aggregate a stream.

A version of an aggregate is there once, because its event's place in the stream is expected to be free:

    a first version     no stream yet
    version n           a stream of n - 1 events, since the library counts from 1
      └ n events there  its last one tells: an application that counts from 0, or another writer was first
    with gaps           a stream whose last version is lower, as those of snapshots are: it is read first

So an insert is one transaction, and nothing is read for it. Where an application counts from 0, each is refused once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import UUID

from eventsourcing.persistence import AggregateRecorder, IntegrityError, OperationalError, StoredEvent

from epochal.contrib.eventsourcing.records import as_the_library_has_them, event_at, stored_event, version_of
from epochal.model.expected_version import NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.stream_append import StreamAppend
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
        """Insert all events in one transaction and return None; raise `IntegrityError` at a version conflict.

        Args:
            stored_events: events to insert, of at most 100 aggregates.
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
        """Return at most `limit` of an aggregate's events above version `gt`, up to `lte`; reversed if `desc`.

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
        """Append events to their aggregates' streams, with further appends; None if there are none to make.

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
                    raise OperationalError("a response was lost, and the evidence has been pruned since")
                case Conflict(streams=conflicts):
                    for stream in groups.keys() & conflicts.keys():
                        places[stream] = self._next_place(stream, groups[stream][0], conflicts[stream])
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def _first_place(self, stream: str, first: StoredEvent) -> _Place:
        """Return where the event `first` goes by its version; with gaps, raise unless that is the highest.

        With gaps, the stream's end is read.

        Raises:
            IntegrityError: with gaps, the stream has that version or a later one.
        """
        version = first.originator_version
        if self._gaps:
            count, last = self._end(stream)
            if last is not None and last >= version:
                raise IntegrityError(f"{stream} is at version {last}, so version {version} cannot be added")
            return _Place(AtVersion(version=count), count)
        if version in (0, 1):
            return _Place(NO_STREAM, 0)
        return _Place(AtVersion(version=version - 1), version - 1)

    def _next_place(self, stream: str, first: StoredEvent, conflict: Conflict) -> _Place:
        """Return where to retry the event `first` after a conflict; raise if its version is no more the next.

        Raises:
            IntegrityError: the event's version exists already, or is not the next one.
        """
        version = first.originator_version
        if self._gaps:
            return self._first_place(stream, first)
        count, last = self._end(stream) if conflict.version == version else (conflict.version, None)
        if last is None or conflict.deleted or last + 1 != version:
            raise IntegrityError(f"{stream} has {count} events, so version {version} cannot be added next")
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
    """Group events by the streams that they belong to; raise if versions do not follow each other.

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
