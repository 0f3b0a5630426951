"""Makes states from heads: where a fold begins, which events it reads, and what happens if they are gone.

    begins with        an unfold that is an origin; else a state already known; else the first event
    continues with     the later events: from the head, if it has them, else from the items before it
    is shortened by    an event that is an origin, which is searched for backward from the newest event

This module reads no head: the caller has one, from a load or from a refused append. No state is folded over a hole: if
an event was pruned and is in no archive, the fold raises `EventsPruned`, or forgets the event if the decider allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import inf
from typing import Generic, TypeVar

from epochal.deciders.access import Access, never
from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.snapshot_marks import (
    NOT_READ,
    OTHER_SHAPE,
    UNMARKED,
    UNREADABLE,
    Mark,
    is_upcast,
    mark_of,
    mismatch,
    remedy,
    takes_no_mark,
    warn_once,
    without_mark,
)
from epochal.errors import CorruptData, EventsPruned, InvalidInput, StreamDeleted, UnknownType
from epochal.layout.streams import Head, Known
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Claim
from epochal.model.events import Recorded, RecordedUnfold
from epochal.model.moments import AsOf
from epochal.model.outcomes import Appended
from epochal.model.plain_functions import must_be_done, must_be_state
from epochal.model.stream_names import TIMERS
from epochal.store.earlier import version_at
from epochal.store.encoding import recorded_unfolds
from epochal.store.reading import Hole
from epochal.store.streams import Streams

S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True, kw_only=True)
class Loaded(Generic[S]):
    """A state, and the head from which it was made.

    Attributes:
        state: the state.
        known_head: the head, its token, or None if the stream does not exist.
        low_water: index below which events had been pruned then.
        confirmed: whether the store has shown it during this call. Otherwise the state may be an old one.
        begun: clock reading before the first of its events was read, for the cache (`loading`).
    """

    state: S
    known_head: Known[Head]
    low_water: int = 0
    confirmed: bool = True
    begun: float = -inf

    @property
    def version(self) -> int:
        """The stream's next index."""
        return 0 if self.known_head is None else self.known_head.version


@dataclass(frozen=True, kw_only=True)
class _Start(Generic[S]):
    """A state to begin with, which includes all events below index `version`.

    `stands_in` says which outdated snapshot the events replace, for errors.
    """

    state: S
    version: int
    stands_in: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutOfDate:
    """A snapshot that is not used, and why."""

    type: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Folder(Generic[S, E]):
    """Makes states of one kind from the streams of a store.

    Attributes:
        streams: the store.
        initial, evolve: functions of the decider.
        codec: decodes events.
        access: access strategy.
        forget_pruned: whether a state begins anew if its stream was pruned.
        consistent: False reads events before a head for half the price, if a replica has them.
    """

    streams: Streams
    initial: Callable[[], S]
    evolve: Callable[[S, E], S]
    codec: EventCodec[E]
    access: Access[S, E]
    forget_pruned: bool
    consistent: bool = True

    def fold(self, state: S, events: Iterable[E]) -> S:
        """Fold events into a state, and return the new state."""
        for event in events:
            state = must_be_state(self.evolve(state, event), state, self.initial, event)
        return state

    def begin(self) -> S:
        """Return the state before any event."""
        return must_be_done(self.initial(), "initial")

    def load(self, stream: str, head: Head | None, before: Loaded[S] | None = None) -> Loaded[S]:
        """Return the state at a head (initial for None), from `before` if that helps; raise if it is deleted.

        Raises:
            StreamDeleted: the head is a tombstone.
            EventsPruned: events that the state needs are gone.
            UnknownType: an event, or a state held in unfolds, that the codec does not know.
        """
        if head is None:
            return Loaded(state=self.begin(), known_head=None)
        if head.deleted:
            raise StreamDeleted(stream, head.version)
        if before is not None and _unchanged(before.known_head, head):
            state = before.state
        else:
            state, _ = self._fold_range(head, self._start(head, before), head.version, head.version)
        return Loaded(state=state, known_head=head, low_water=head.low_water)

    def events(self, stream: str, written: Appended) -> tuple[E, ...]:
        """Read and decode the events of an append; raise `EventsPruned` if they are gone."""
        if written.version == written.first:
            return ()
        recorded_events = self.streams.read(
            stream, start=written.first, limit=written.version - written.first
        )
        return tuple(event for recorded in recorded_events for event in self._decode(recorded))

    def replay(self, stream: str, written: Appended) -> tuple[S, tuple[E, ...]]:
        """Return the state on which an append was decided, and its events, both from the store.

        Raises:
            StreamDeleted: the stream is gone.
            EventsPruned: the append's events, or events that the state needs, are pruned.
        """
        head = self.streams.head(stream)
        if head is None or head.deleted:
            raise StreamDeleted(stream, written.version)
        return self._at(head, written.first, written.version)

    def as_of(self, stream: str, when: AsOf) -> S:
        """Return a stream's state at a version or moment; raise `InvalidInput` if it has not come so far.

        At a moment, it is the state after the last event that happened by then.

        Raises:
            InvalidInput: the stream has not come so far; or its earlier states are gone, since events alone do not make
                them.
            StreamDeleted: the stream is gone.
            EventsPruned: events that the state needs are pruned.
        """
        if self.access.state_in_unfolds:
            raise InvalidInput("as_of", "needs a strategy that stores events, not only unfolds")
        head = self.streams.head(stream)
        if head is not None and head.deleted:
            raise StreamDeleted(stream, head.version)
        version = version_at(self.streams.reader(fetch=False), stream, head, when)
        return self.begin() if head is None else self._at(head, version, version)[0]

    def _at(self, head: Head, first: int, end: int) -> tuple[S, tuple[E, ...]]:
        """Return the state at an index that the stream may have passed, and the events from there to `end`."""
        start = self._start(head, None)
        if start.version > first or self.access.event_is_origin is not None:
            start = _Start(state=self.begin(), version=0)
        return self._fold_range(head, start, first, end)

    def _start(self, head: Head, before: Loaded[S] | None) -> _Start[S]:
        """Choose the latest state to begin with: from an unfold, an earlier state, or the initial one.

        At equal versions an unfold is chosen: it may have changed without an event.
        """
        usable = before if before is not None and self._leads_to(before, head) else None
        restored = self._restore(head)
        if isinstance(restored, _Start) and (usable is None or restored.version >= usable.version):
            return restored
        if usable is not None:
            return _Start(state=usable.state, version=usable.version)
        if isinstance(restored, _OutOfDate):
            # What it holds of pruned events cannot be forgotten without a word: a hole is an error here.
            return _Start(state=self.begin(), version=0, stands_in=remedy(restored.type, restored.why))
        return _Start(state=self.begin(), version=head.low_water if self.forget_pruned else 0)

    def _leads_to(self, before: Loaded[S], head: Head) -> bool:
        """Return whether events alone lead from a state to a head."""
        return (
            not self.access.state_in_unfolds
            and before.version <= head.version
            and before.low_water == head.low_water
        )

    def _restore(self, head: Head) -> _Start[S] | _OutOfDate | None:
        """Restore the state from a head's unfolds; None if they hold none, `_OutOfDate` if it is outdated.

        It begins with the last unfold that is an origin, and those after it are folded in.
        """
        if self.access.unfold_is_origin is never:
            return None
        unfolds = recorded_unfolds(head.read_unfolds(), self.streams.codec)
        since_origin, out_of_date = list[E](), None
        for unfold in unfolds:
            event = self._decode_unfold(head.stream, unfold)
            if isinstance(event, _OutOfDate):
                since_origin, out_of_date = [], event
            elif event is not None and must_be_done(self.access.unfold_is_origin(event), "unfold_is_origin"):
                since_origin = [event]
            elif event is not None and since_origin:
                since_origin.append(event)
        if not since_origin and self.access.state_in_unfolds and unfolds:
            raise UnknownType(head.stream, unfolds[-1].version, unfolds[-1].type)
        if not since_origin and out_of_date is None:
            return None
        # Unfolds are written together. Equinox numbers them on from the version that all were made from.
        version = min(unfold.version for unfold in unfolds)
        if self.forget_pruned and version < head.low_water:
            return None
        if out_of_date is not None and not since_origin:
            warn_once(out_of_date.type, out_of_date.why)
            return out_of_date
        return _Start(state=self.fold(self.begin(), since_origin), version=version)

    def mark_of(self, kind: str) -> Mark:
        """Return the mark for a snapshot of a stored type; an empty one if only unfolds make the state."""
        return Mark() if self.access.state_in_unfolds else mark_of(self.codec, kind, self.access.version)

    def _fold_range(self, head: Head, start: _Start[S], first: int, end: int) -> tuple[S, tuple[E, ...]]:
        """Return the state at index `first`, and the events from there to `end`."""
        if start.version >= end:
            return start.state, ()
        if self.access.event_is_origin is None:
            return self._forward(head, start, first, end)
        return self._backward(head, start, first, end, self.access.event_is_origin)

    def _forward(self, head: Head, start: _Start[S], first: int, end: int) -> tuple[S, tuple[E, ...]]:
        """Fold events in order, and return the state at `first` and the events from there to `end`."""
        state, events = start.state, list[E]()
        for item in self.streams.reader(consistent=self.consistent).onward(head, start.version, "forward"):
            if isinstance(item, Hole):
                state = self._begin_anew(head, item, first, start)
            elif item.index >= end:
                break
            elif item.index < first:
                state = self.fold(state, self._decode(item))
            else:
                events += self._decode(item)
        return state, tuple(events)

    def _backward(
        self, head: Head, start: _Start[S], first: int, end: int, is_origin: Callable[[E], bool]
    ) -> tuple[S, tuple[E, ...]]:
        """Read newest first up to an origin, else forward; return the state at `first`, and events from there."""
        earlier, events, reached = list[E](), list[E](), end
        begun: S | None = None
        for item in self._newest_first(head, start, end):
            if isinstance(item, Hole):
                begun, reached = self._begin_anew(head, item, first, start), start.version
                break
            decoded, reached = self._decode(item), item.index
            (earlier if reached < first else events).extend(reversed(decoded))
            if reached < first and any(
                must_be_done(is_origin(event), "event_is_origin") for event in decoded
            ):
                begun, reached = self.begin(), start.version
                break
        if reached != start.version:
            return self._forward(head, start, first, end)
        state = start.state if begun is None else begun
        return self.fold(state, reversed(earlier)), tuple(reversed(events))

    def _begin_anew(self, head: Head, hole: Hole, first: int, start: _Start[S]) -> S:
        """Return the initial state after a hole if the state may begin there, else raise `EventsPruned`."""
        if self.forget_pruned and hole.end <= first and not start.stands_in:
            return self.begin()
        raise EventsPruned(head.stream, hole.first, hole.end, start.stands_in)

    def _newest_first(self, head: Head, start: _Start[S], end: int) -> Iterator[Recorded | Hole]:
        """Return events before `end`, newest first; if a state is known, no more than the head has after it.

        Part of the older events would go far beyond that state.
        """
        last = None if end == head.version else end - 1
        events = self.streams.reader(consistent=self.consistent).onward(head, last, "backward")
        return (
            events
            if start.version == 0
            else islice(events, head.version - max(start.version, head.span.base))
        )

    def _decode(self, recorded: Recorded) -> Sequence[E]:
        """Decode an event into a tuple, empty for a timer's or skipped one; raise `UnknownType` if unknown."""
        if recorded.type in TIMERS:
            return ()
        event = must_be_done(self.codec.decode(_stored(recorded, recorded.index, recorded.stream)), "decode")
        if event is not None:
            return (event,)
        if self.codec.skips_unknown:
            return ()
        raise UnknownType(recorded.stream, recorded.index, recorded.type)

    def _decode_unfold(self, stream: str, unfold: RecordedUnfold) -> E | _OutOfDate | None:
        """Decode an unfold; None if its type is unknown, `_OutOfDate` with the reason if it is outdated."""
        stored = _stored(unfold, unfold.version, stream)
        if self.access.state_in_unfolds:
            return must_be_done(self.codec.decode(stored), "decode")
        mark, meta = without_mark(stored.meta)
        if mark is not None:
            stored = replace(stored, meta=meta)
        try:
            event = self.codec.decode(stored)
        except UNREADABLE:
            return _OutOfDate(type=unfold.type, why=NOT_READ)
        if must_be_done(event, "decode") is None:
            return None
        own, trusted = self.mark_of(unfold.type), self.access.trust_unmarked or takes_no_mark(meta)
        why = mismatch(mark, own, trusted=trusted)
        if why in (OTHER_SHAPE, UNMARKED) and is_upcast(self.codec.classes.get(unfold.type), stored.data):
            why = None
        return event if why is None else _OutOfDate(type=unfold.type, why=why)


def _unchanged(known_head: Known[Head], head: Head) -> bool:
    """Return whether a head still has the etag of a known state."""
    return known_head is not None and known_head.etag is not None and known_head.etag == head.etag


def _stored(source: Recorded | RecordedUnfold, index: int, stream: str) -> Stored:
    """Convert a stored event or unfold for codecs; raise `CorruptData` if its body was not fetched."""
    if isinstance(source.data, Claim) or isinstance(source.meta, Claim):
        raise CorruptData(f"{source.type} (index {index}): its body was not fetched")
    return Stored(
        type=source.type,
        data=source.data,
        meta=source.meta,
        timestamp=source.timestamp,
        index=index,
        stream=stream,
    )
