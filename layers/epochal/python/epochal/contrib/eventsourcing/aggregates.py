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
"""Of one insert, which others may overtake: each of them has then moved on."""


class _Place(NamedTuple):
    """Where the first of some events goes in its stream."""

    expected: ExpectedVersion
    at: int


class EpochalAggregateRecorder(AggregateRecorder):
    """Inserts and selects the events of aggregates.

    Args:
        streams: of the `pages` layout, where several aggregates may be saved at once.
        category: of the streams' names.
        gaps: versions may be left out, as among snapshots. They only increase all the same.

    Both methods raise the library's errors: `IntegrityError` where a version is there already or is not the next one,
    `DataError` for what no item or name can hold, `OperationalError` where the store cannot be reached.
    """

    def __init__(self, streams: Streams, category: str, *, gaps: bool = False) -> None:
        self._streams = streams
        self._category = category
        self._gaps = gaps

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert the events of one aggregate or several, at most 100 of them: all or nothing."""
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
        """The aggregate's events above version `gt` up to version `lte`, at most `limit`, from either end."""
        if limit is not None and limit < 1:
            return []
        with as_the_library_has_them():
            return list(islice(self._selected(originator_id, gt, lte, desc=desc), limit))

    def _stream(self, originator: UUID | str) -> str:
        return f"{self._category}-{originator}"

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:  # noqa: ARG002
        """What else is appended with the events; asked for at each attempt, which it may refuse by raising."""
        return ()

    def _insert(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Appended | None:
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
        version = first.originator_version
        if self._gaps:
            return self._first_place(stream, first)
        count, last = self._end(stream) if conflict.version == version else (conflict.version, None)
        if last is None or conflict.deleted or last + 1 != version:
            raise IntegrityError(f"{stream} has {count} events, and takes no version {version} next")
        return _Place(AtVersion(version=count), count)

    def _end(self, stream: str) -> tuple[int, int | None]:
        """How many events there are, and the version of the last one."""
        found = self._streams.page(stream, limit=1, direction="backward", fetch=False)
        return found.version, version_of(found.events[0]) if found.events else None

    def _selected(
        self, originator: UUID | str, gt: int | None, lte: int | None, *, desc: bool
    ) -> Iterator[StoredEvent]:
        # Without gaps, a version is the index of its event or the one after it.
        low, high = (None, None) if self._gaps else (gt, lte)
        found = self._streams.read(
            self._stream(originator),
            start=_index(high if desc else low),
            direction="backward" if desc else "forward",
        )
        for event in found:
            version = version_of(event)
            if (gt is not None and version <= gt) or (lte is not None and version > lte):
                if desc == (gt is not None and version <= gt):
                    return
                continue
            yield stored_event(originator, event)


def _index(bound: int | None) -> int | None:
    return None if bound is None else max(bound, 0)


def _append(stream: str, events: Sequence[StoredEvent], place: _Place) -> StreamAppend:
    stored = [event_at(index, event) for index, event in enumerate(events, place.at)]
    return StreamAppend(stream=stream, events=stored, expected=place.expected)


def _by_stream(
    stored_events: Sequence[StoredEvent], stream_of: Callable[[UUID | str], str]
) -> dict[str, list[StoredEvent]]:
    """Events by the streams that they go to. Raises `IntegrityError` where one is not the next of its aggregate."""
    groups: dict[str, list[StoredEvent]] = {}
    for event in stored_events:
        group = groups.setdefault(stream_of(event.originator_id), [])
        if group and group[-1].originator_version + 1 != event.originator_version:
            before = group[-1].originator_version
            raise IntegrityError(f"version {event.originator_version} does not follow version {before}")
        group.append(event)
    return groups
