"""Reads the events of a stream page by page, with pruned events from an archive, and decodes their bodies.

No event is left out silently. A hole is a range of events that are pruned and in no archive. The methods of `Reader`
report it as follows:

    events    raises an error; but without an archive, a read of a pruned stream may begin after a hole, unless the read
              was asked to begin at an index in it
    page      ends before the hole, and the next page names it; a last backward page names the hole below it
    onward    yields the hole, so that the caller can use it or refuse it
    found     omits it: the caller compares the indices

A stream that was deleted has no events, whatever its archive holds.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain, islice, takewhile
from typing import Literal

from epochal.codec.bodies import EMPTY, MAX_DECODED, ONE_BLOCK, OversizedBody, exceeds
from epochal.errors import CorruptData, DeniedBody, EventsPruned, InvalidInput, MissingBody
from epochal.layout.streams import (
    AnyStreamLayout,
    BatchedReads,
    EncodedEvent,
    EventSpan,
    Head,
    PlainSpan,
    ReadCursor,
    ReadPart,
)
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Claim
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.events import Recorded, RecordedUnfold
from epochal.model.kinds import must_be_names, must_be_whole
from epochal.model.moments import Ticks, parse_time, read_moment
from epochal.model.tokens import Token
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec, recorded_events

# Results of a store's methods, besides the outcomes of appends.


Direction = Literal["forward", "backward"]
"""Direction of a read: from the first event on, or from the last one back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """The state of a stream when it was loaded: its version, unfolds and events, as its head (the stream's last item)
    has them.

    Attributes:
        stream: name of the stream.
        version: the stream's next index.
        token: token of this state; an append that expects it takes one request.
        unfolds: all unfolds that are stored.
        events: with `start`, the events from that index on; else the newest ones that came in the same request, without
            gaps. These are all events of the stream if there are `version` of them, as of a stream of four pages.
        deleted: whether the stream was deleted, and takes no more events.
        low_water: index below which events are known to be pruned. It may be too low after a prune by another library,
            or while a prune is under way; a read finds what is gone.
        capacity: read units and requests that the load took.
    """

    stream: str
    version: int
    token: Token
    unfolds: tuple[RecordedUnfold, ...]
    events: tuple[Recorded, ...]
    low_water: int
    deleted: bool
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Events `first` to `end - 1` of a stream, which are pruned and not in the archive either.

    Attributes:
        first: index of the first missing event.
        end: index after the last missing event.
    """

    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An event that is stored but cannot be decoded or fetched; `fault` is the error."""

    index: int
    type: str
    timestamp: str = ""
    fault: CorruptData | MissingBody | DeniedBody


@dataclass(frozen=True, slots=True, kw_only=True)
class UnopenedEvent:
    """A stored event that may be large, decoded only when a caller has room for it.

    Attributes:
        stream: name of the stream.
        span: the span that holds the event.
        offset: position of the event in the span.
        codec: decodes the bodies.
        fetch: whether bodies in the bucket are fetched.
    """

    stream: str
    span: EventSpan
    offset: int
    codec: BodyCodec
    fetch: bool

    @property
    def index(self) -> int:
        """Index of the event in the stream."""
        return self.span.base + self.offset

    @property
    def stored_bytes(self) -> int:
        """Bytes of the event's bodies as they are stored."""
        stored = self.span.read(self.offset)
        return len(stored.data.data) + len(stored.meta.data)

    def decode(self, largest: int = MAX_DECODED) -> Recorded | Unreadable | None:
        """Decode the event; None if a body exceeds `largest` bytes, `Unreadable` if it cannot be decoded.

        Returns:
            The event; an `Unreadable` with the error if the event cannot be decoded or fetched.
        """
        try:
            stored = self.span.read(self.offset)
            if exceeds(stored.data, largest) or exceeds(stored.meta, largest):
                return None
            return self._recorded(stored, largest)
        except (CorruptData, MissingBody, DeniedBody) as fault:
            if isinstance(fault, OversizedBody) and largest < MAX_DECODED:
                return None
            type_, time = self.span.type(self.offset), self.span.timestamp(self.offset)
            return Unreadable(index=self.index, type=type_, timestamp=time, fault=fault)

    def outline(self) -> Recorded:
        """Decode the event without its bodies.

        Raises:
            CorruptData: the event cannot be decoded.
        """
        return self._recorded(self.span.read(self.offset)._replace(data=EMPTY, meta=EMPTY), ONE_BLOCK)

    def _recorded(self, stored: EncodedEvent, largest: int) -> Recorded:
        """Decode a stored event of this index; bodies may have `largest` bytes."""
        indices = range(self.index, self.index + 1)
        (event,) = recorded_events(
            self.stream, indices, [stored], self.codec, fetch=self.fetch, limit=largest
        )
        return event


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPage:
    """A page of consecutive events of a stream, in the order of the read.

    Attributes:
        events: events of the page.
        next: index at which the next page starts; None at the end of the stream (or its beginning, backward).
        hole: range of requested events, just before those of the page, that are gone; None if there is none. A page
            ends where such a range begins, and the next page has it.
        version: the stream's next index when the page was read.
        low_water: index below which events are pruned.
        exists: whether the stream exists.
        deleted: whether the stream was deleted with a tombstone, and has no events any more.
        omitted: indices of events that come without their bodies, because a body is larger than the requested limit.
        capacity: read units and requests that the page took.
    """

    events: tuple[Recorded, ...]
    next: int | None
    version: int
    low_water: int
    exists: bool
    deleted: bool
    hole: Hole | None = None
    omitted: frozenset[int] = frozenset()
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects events of a stream by their types and by the time that each event carries.

    An append may give its events any timestamps, so a timestamp does not determine a place in the stream, and every
    event is read.

    Attributes:
        types: types of the selected events; None for all types.
        since: earliest time of the selected events; None for no limit.
        until: time before which the selected events happened; None for no limit.
    """

    types: frozenset[str] | None = None
    since: Ticks | None = None
    until: Ticks | None = None

    @classmethod
    def of(
        cls,
        types: Collection[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> Selection | None:
        """Parse the arguments `types`, `since` and `until` of a read; None if all of them are None.

        Raises:
            InvalidInput: `types` is no list of names, or a time cannot be parsed.
        """
        if types is None and since is None and until is None:
            return None
        if types is not None:
            must_be_names(types, "types")
        return cls(
            types=None if types is None else frozenset(types),
            since=None if since is None else read_moment(since, "since"),
            until=None if until is None else read_moment(until, "until"),
        )

    def __call__(self, event: Recorded) -> bool:
        """Return whether an event has a selected type and time; a time that cannot be parsed is selected."""
        if self.types is not None and event.type not in self.types:
            return False
        if self.since is None and self.until is None:
            return True
        try:
            time = parse_time(event.timestamp)
        except InvalidInput:
            return True
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The progress of pruning a stream: events below index `low_water` are gone for readers.

    Items are deleted a part at a time: call again until `done`.

    Attributes:
        low_water: index below which events are gone.
        deleted: number of items that this call deleted.
        done: whether all items of the pruned events are deleted.
        capacity: capacity that the call consumed.
    """

    low_water: int
    deleted: int
    done: bool
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Found = Recorded | Unreadable | UnopenedEvent

_CHUNK = 16
"""Number of events whose bodies are decoded at once: enough to fetch bodies in parallel, but few enough if each has
megabytes."""

_FIELDS = 200
"""Estimated bytes of an event's fields besides its bodies, for the size of a page."""

_Places = tuple[EventSpan, range]
"""Neighbouring events: a span, and their places in it, in the order of reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the streams of one table, and the archive for events that were pruned.

    Attributes:
        driver: runs the requests.
        table: name of the table of streams.
        layout: how streams are stored in the table.
        codec: decodes bodies.
        fetch: whether bodies in the bucket are fetched.
        archive: reader of the archive; None where there is none.
        consistent: False reads the events before a known head with eventually consistent reads, at half the cost; if
            these lack events, consistent reads follow.
        unopened: whether events that may be large are returned as `UnopenedEvent`s.
    """

    driver: Driver
    table: str
    layout: AnyStreamLayout
    codec: BodyCodec
    fetch: bool
    archive: Reader | None
    consistent: bool = True
    unopened: bool = False

    def events(
        self, stream: str, start: int | None, limit: int | None, direction: Direction
    ) -> Iterator[Recorded]:
        """Yield a stream's events from `start`, in either direction, at most `limit`; raise at a hole within.

        Args:
            start: index of the first event; None for the first, or backward the last.

        Raises:
            EventsPruned: there is a hole in the read.
            CorruptData, MissingBody: an event cannot be decoded or fetched.
        """
        walk = self._begin(stream, start, limit, direction)
        events = iter(()) if walk is None else self._without_holes(walk, start)
        return events if limit is None else islice(events, limit)

    def found(
        self, stream: str, start: int, direction: Direction = "forward", limit: int | None = None
    ) -> Iterator[Found]:
        """Yield a stream's events from `start`, even unreadable ones, without those pruned and not archived.

        Args:
            limit: approximate number of events wanted; more may be returned.
        """
        walk = self._begin(stream, start, limit, direction)
        return iter(()) if walk is None else walk.events()

    def _walked(self, cursor: ReadCursor, start: int, limit: int | None) -> Iterator[Found]:
        """Yield the events from a cursor on; none if the stream was deleted."""
        return iter(()) if cursor.head.deleted else _walk(self, cursor, start, limit).events()

    def found_in_batch(
        self, layout: BatchedReads, ranges: Mapping[str, tuple[int, int]]
    ) -> dict[str, list[Recorded] | Iterator[Found]]:
        """Read several streams in one batch; return the events by stream, where the batch suffices.

        The events are those that `found` yields.

        Small events are returned as a list, if all of a stream are and none is pruned. A stream is left out if the head
        ends before its range: in a replica of the table, the head may be older than other pages.

        Args:
            layout: the reader's layout.
            ranges: by stream, index of the first event, and index after the last one; more may come.
        """
        starts = {stream: first for stream, (first, _) in ranges.items()}
        cursors: Mapping[str, ReadCursor] = self.driver.run(layout.begin_batch(self.table, starts))
        batch: dict[str, list[Recorded] | Iterator[Found]] = {}
        for stream, cursor in cursors.items():
            head, (first, end) = cursor.head, ranges[stream]
            if head.version >= end:
                batch[stream] = _plain_head(head, first, end) or self._walked(cursor, first, end - first)
        return batch

    def onward(
        self, head: Head, start: int | None, direction: Direction, limit: int | None = None
    ) -> Iterator[Recorded | Hole]:
        """Yield events and holes from `start` on in the stream of a head that the caller has.

        No request is made for the events that the head itself carries.

        Args:
            limit: approximate number of events wanted; more may be returned.
        """
        cursor = self.layout.stand(head, start, forward=direction == "forward")
        for event in _walk(self, cursor, start, limit).events_and_holes():
            if isinstance(event, Recorded):  # as nearly always
                yield event
            else:
                yield event if isinstance(event, Hole) else _readable(event)

    def page(
        self,
        stream: str,
        start: int | None,
        limit: int,
        direction: Direction,
        max_bytes: int,
        *,
        largest: int = MAX_DECODED,
    ) -> StreamPage:
        """Read one page: events up to `limit`, `max_bytes` or a hole, but at least one if there is any.

        Args:
            largest: an event with a body of more bytes comes without its bodies, as `omitted` says.
        """
        cursor = self._stand(stream, start, direction, limit)
        if cursor is None:
            return StreamPage(events=(), next=None, version=0, low_water=0, exists=False, deleted=False)
        walk = _walk(self.leaving_unopened(), cursor, start, limit)
        hole: Hole | None = None
        events: list[Recorded] = []
        omitted: list[int] = []
        size = 0
        for stored in () if cursor.head.deleted else walk.events_and_holes():
            event_or_hole = stored
            if isinstance(stored, UnopenedEvent):
                room = min(largest, max_bytes - size) if events else largest
                opened = stored.decode(room) if room > 0 else None
                if opened is None and events:
                    break
                if opened is None:
                    omitted.append(stored.index)
                    size += largest
                event_or_hole = opened or stored.outline()
            if events and not isinstance(event_or_hole, Recorded):
                break
            if isinstance(event_or_hole, Hole):
                hole = event_or_hole
                continue
            event = _readable(event_or_hole)
            size += _size(event)
            if events and size > max_bytes:
                break
            events.append(event)
            if len(events) == limit:
                break
        return StreamPage(
            events=tuple(events),
            next=self._next(events[-1].index, walk.cursor) if events else None,
            version=cursor.head.version,
            low_water=walk.cursor.head.low_water,
            exists=True,
            deleted=cursor.head.deleted,
            hole=hole or self._beginning(events, walk.cursor),
            omitted=frozenset(omitted),
        )

    def leaving_unopened(self) -> Reader:
        """Return a copy of the reader that leaves events that may be large undecoded."""
        archive = None if self.archive is None else self.archive.leaving_unopened()
        return replace(self, archive=archive, unopened=True)

    def _begin(self, stream: str, start: int | None, limit: int | None, direction: Direction) -> _Walk | None:
        """Begin a walk through a stream; None if it does not exist or was deleted."""
        cursor = self._stand(stream, start, direction, limit)
        if cursor is None or cursor.head.deleted:
            return None
        return _walk(self, cursor, start, limit)

    def _stand(
        self, stream: str, start: int | None, direction: Direction, limit: int | None
    ) -> ReadCursor | None:
        """Read the head of a stream; return a cursor before event `start`, or None without a stream."""
        steps = self.layout.begin(self.table, stream, start, forward=direction == "forward", limit=limit)
        cursor: ReadCursor | None = self.driver.run(steps)
        return cursor

    def _without_holes(self, walk: _Walk, start: int | None) -> Iterator[Recorded]:
        """Yield the events of a walk; raise `EventsPruned` at a hole, except one allowed at the beginning.

        Without an archive the stream may begin with a hole, unless `start` lies in it.
        """
        for event_or_hole in walk.events_and_holes():
            if isinstance(event_or_hole, Recorded):  # as nearly always
                yield event_or_hole
            elif not isinstance(event_or_hole, Hole):
                yield _readable(event_or_hole)
            elif (
                self.archive is not None
                or event_or_hole.first > 0
                or (start is not None and start < event_or_hole.end)
            ):
                raise EventsPruned(walk.cursor.head.stream, event_or_hole.first, event_or_hole.end)

    def _next(self, last: int, cursor: ReadCursor) -> int | None:
        """Return the index at which the page after event `last` begins; None at the end."""
        if cursor.forward:
            return last + 1 if last + 1 < cursor.head.version else None
        return last - 1 if last > self._lowest(cursor) else None

    def _beginning(self, taken: Sequence[Recorded], cursor: ReadCursor) -> Hole | None:
        """Return the hole below the last page of a backward read; None if nothing is gone."""
        ends = not cursor.forward and taken and 0 < taken[-1].index <= self._lowest(cursor)
        return Hole(first=0, end=taken[-1].index) if ends else None

    def _lowest(self, cursor: ReadCursor) -> int:
        """Return the index of the first event that can be read: 0 with an archive, else the low-water mark."""
        return cursor.head.low_water if self.archive is None else 0


def _walk(reader: Reader, cursor: ReadCursor, start: int | None, limit: int | None) -> _Walk:
    """Begin a walk at a cursor; `start` is the first index wanted, or None."""
    first = (start or 0) if cursor.forward else cursor.at - 1
    return _Walk(reader, cursor, first, limit)


@dataclass(slots=True)
class _Walk:
    """A read of one stream under way, part by part.

    Attributes:
        reader: the reader that runs the requests.
        cursor: position of the read.
        start: forward, index of the first event wanted; backward, of the last one.
        limit: number of events wanted; None for all.
    """

    reader: Reader
    cursor: ReadCursor
    start: int
    limit: int | None

    def events_and_holes(self) -> Iterator[Found | Hole]:
        """Yield every event that is found, and the holes between."""
        return chain.from_iterable(self._rows_and_holes())

    def events(self) -> Iterator[Found]:
        """Yield every event that is found."""
        return chain.from_iterable(self._rows())

    def _rows(self) -> Iterator[Sequence[Found]]:
        """Yield the events in rows of neighbours."""
        return self._forward() if self.cursor.forward else self._backward()

    def _forward(self) -> Iterator[Sequence[Found]]:
        """Yield rows of events from `start` on; the archive fills the gaps."""
        index = self.start
        while not self.cursor.at_end:
            yield from self._archived(index, self.cursor.at)
            index = yield from self._part(self.cursor.at)
        yield from self._archived(index, self.cursor.head.version)

    def _backward(self) -> Iterator[Sequence[Found]]:
        """Yield rows of events from `start` back; the archive continues below the table's events."""
        index = self.start + 1
        while not self.cursor.at_end:
            index = yield from self._part(index)
        if index > 0 and self.reader.archive is not None:
            yield from as_rows(self.reader.archive.found(self.cursor.head.stream, index - 1, "backward"))

    def _rows_and_holes(self) -> Iterator[Sequence[Found | Hole]]:
        """Yield rows of events, with a row for each hole between them."""
        forward = self.cursor.forward
        index = self.start if forward else self.start + 1
        for row in self._rows():
            yield _hole(index, row[0].index) if forward else _hole(row[0].index + 1, index)
            yield row
            index = row[-1].index + forward
            del row  # otherwise it stays in memory until the next one is read
        yield _hole(index, self.cursor.head.version) if forward else _hole(0, index)

    def _part(self, index: int) -> Generator[Sequence[Found], None, int]:
        """Read the next part; yield rows of its events (forward, archived ones too); return its end index.

        A page that was pruned in part shows this only once it is read. No event of a part is held once it has been
        consumed, since in wire form a part is large.

        Args:
            index: index at which the part begins.

        Returns:
            Index at which the part ends.
        """
        reader, stream, forward = self.reader, self.cursor.head.stream, self.cursor.forward
        steps = reader.layout.advance(reader.table, self.cursor, self._left, consistent=reader.consistent)
        part: ReadPart[EventSpan, ReadCursor] = reader.driver.run(steps)
        size = min(_CHUNK, self.limit or _CHUNK)
        plain = framed = bool(part.spans) and _reads_plain(type(part.spans[0]))
        for chunk in _chunks(part.spans, size, forward=forward):
            if forward:
                yield from self._archived(index, chunk[0][0].base + chunk[0][1][0])
            row = plain and _plain(stream, chunk)
            plain = bool(row)  # if one row was plain, the next probably is, too
            together = not framed or not any(
                span.holds_large(offsets)  # type: ignore[attr-defined]  # as above
                for span, offsets in (() if row else chunk)
            )
            rows = (row,) if row else _decoded(reader, stream, chunk, together=together)
            for row in rows:
                yield row
                index = row[-1].index + forward
                del row
            del rows
        self.cursor = part.cursor
        return index

    @property
    def _left(self) -> int | None:
        """Number of events that are still wanted, or `limit` again once it is passed; None for all.

        A caller that continues beyond the limit is assumed to want as many again.
        """
        if self.limit is None:
            return None
        passed = abs(self.cursor.at - self.start)
        return self.limit - passed if passed < self.limit else self.limit

    def _archived(self, first: int, end: int) -> Iterable[Sequence[Found]]:
        """Return rows of the events `first` to `end - 1` that the archive has."""
        if self.reader.archive is None or first >= end:
            return ()
        events = self.reader.archive.found(self.cursor.head.stream, first, limit=end - first)
        return as_rows(takewhile(lambda event: event.index < end, events))


def small_events(stream: str, span: EventSpan, codec: BodyCodec) -> list[Recorded] | None:
    """Decode a span's events; None if one is corrupt or in the bucket, or all are too large together."""
    offsets = range(span.next - span.base)
    if isinstance(span, PlainSpan) and (plain := span.recorded(stream, offsets)) is not None:
        return plain
    try:
        stored = [span.read(offset) for offset in offsets]
        events = recorded_events(
            stream, range(span.base, span.next), stored, codec, fetch=False, limit=ONE_BLOCK
        )
    except CorruptData:
        return None
    if any(isinstance(body, Claim) for event in events for body in (event.data, event.meta)):
        return None
    return events


def _plain_head(head: Head, first: int, end: int) -> list[Recorded] | None:
    """Return events `first` to `end - 1`, with which a head begins, if they are plain; None if one needs more."""
    span = head.span
    if span.base != first or span.next < end or head.deleted or not _reads_plain(type(span)):
        return None
    events: list[Recorded] | None = span.recorded(head.stream, range(end - first))  # type: ignore[attr-defined]  # as above
    return events


@cache
def _reads_plain(kind: type[EventSpan]) -> bool:
    """Whether spans of a class are `PlainSpan`s. To ask this of each span takes longer than decoding an event."""
    return issubclass(kind, PlainSpan)


def as_rows(events: Iterable[Found]) -> Iterator[tuple[Found]]:
    """Put each event into a row of its own, since there may be holes between events."""
    return ((event,) for event in events)


def _plain(stream: str, chunk: list[_Places]) -> Sequence[Found]:
    """Return the events of neighbouring places if none needs the codec; else nothing."""
    row: list[Found] = []
    for span, offsets in chunk:
        some = span.recorded(stream, offsets)  # type: ignore[attr-defined]  # one has it, and so all
        if some is None:
            return ()
        row += some
    return row


def _decoded(
    reader: Reader, stream: str, chunk: list[_Places], *, together: bool
) -> Iterator[Sequence[Found]]:
    """Yield rows of decoded events: all places together if possible, else one by one on demand.

    Events are decoded one by one where one of them cannot be decoded or is large, since megabytes may be stored in a
    few bytes. A reader that leaves large events unopened gets `UnopenedEvent`s.

    Args:
        together: whether to try all of them at once.
    """
    (span, offsets), step = chunk[0], chunk[0][1].step
    first = span.base + offsets[0]
    alone = len(chunk) == len(offsets) == 1 and not reader.unopened
    try:
        if alone or together:
            stored = [span.read(offset) for span, offsets in chunk for offset in offsets]
            indices = range(first, first + step * len(stored), step)
            limit = MAX_DECODED if alone else ONE_BLOCK
            yield recorded_events(stream, indices, stored, reader.codec, fetch=reader.fetch, limit=limit)
            return
    except (CorruptData, MissingBody, DeniedBody) as fault:
        if alone:
            type_, time = span.type(offsets[0]), span.timestamp(offsets[0])
            yield (Unreadable(index=first, type=type_, timestamp=time, fault=fault),)
            return
    for span, offsets in chunk:
        for offset in offsets:
            if reader.unopened:
                yield (
                    UnopenedEvent(
                        stream=stream, span=span, offset=offset, codec=reader.codec, fetch=reader.fetch
                    ),
                )
                continue
            event = [(span, range(offset, offset + 1))]
            yield from _decoded(reader, stream, event, together=True)


def _readable(event: Found) -> Recorded:
    """Return an event, decoded if needed; raise the fault of an event that cannot be read.

    Raises:
        CorruptData, MissingBody, DeniedBody: the fault that keeps the event from being read.
    """
    if isinstance(event, UnopenedEvent):
        return _readable(event.decode() or event)
    if isinstance(event, Unreadable):
        raise event.fault
    return event


def _chunks(spans: Iterable[EventSpan], size: int, *, forward: bool) -> Iterator[list[_Places]]:
    """Yield the places of events in spans, in the order of reading, up to `size` neighbours at a time."""
    chunk: list[_Places] = []
    room, end = size, -1
    for span in spans:
        offsets = range(span.next - span.base)
        remaining = offsets if forward else offsets[::-1]
        if chunk and end != (span.base if forward else span.next):
            yield chunk
            chunk, room = [], size
        end = span.next if forward else span.base
        while remaining:
            taken, remaining = remaining[:room], remaining[room:]
            chunk.append((span, taken))
            room -= len(taken)
            if not room:
                yield chunk
                chunk, room = [], size
    if chunk:
        yield chunk


def _hole(first: int, end: int) -> Sequence[Hole]:
    """Return a row with the hole from `first` to `end - 1`; an empty row if nothing is missing."""
    return (Hole(first=first, end=end),) if first < end else ()


def _size(event: Recorded) -> int:
    """Estimate the bytes of an event: its bodies, and 200 for the other fields."""
    bodies = sum(body.size if isinstance(body, Claim) else len(body) for body in (event.data, event.meta))
    return _FIELDS + bodies


def check_range(start: int | None, limit: int | None, direction: Direction) -> None:
    """Raise `InvalidInput` unless `start`, `limit` and `direction` can be arguments of a read."""
    for name, number, least in (("start", start, 0), ("limit", limit, 1)):
        if number is not None:
            must_be_whole(number, name, least)
    if direction not in ("forward", "backward"):
        raise InvalidInput("direction", "must be forward or backward")
