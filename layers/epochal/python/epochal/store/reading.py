"""Reading events: pages as they are needed, bodies decoded, an archive where the table was pruned.

Nothing is left out in silence. Where events are gone, pruned and in no archive, a walk through the stream says so, and
what a caller gets is made of that:

    events    an error; without an archive a stream may begin with a hole, which is how one that was pruned looks,
              unless the read is asked to begin at an index in it
    page      ends before the hole, and the next page names it; one that ends backward above the beginning does itself
    onward    the hole, for a state to be made or refused
    found     nothing: the caller counts the indices

A stream that was deleted has no events, whatever its archive holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice, takewhile
from typing import Final, Literal

from epochal.codec.bodies import DIRECT, EMPTY, MAX_DECODED, ONE_BLOCK, Oversized
from epochal.errors import CorruptData, DeniedBody, EventsPruned, InvalidInput, MissingBody
from epochal.layout.streams import (
    AnyStreamLayout,
    EncodedEvent,
    EventSpan,
    Head,
    PlainSpan,
    ReadCursor,
    ReadPart,
)
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Claim, Recorded, RecordedUnfold, Ticks, parse_time, read_moment
from epochal.model.kinds import must_be_names
from epochal.model.versions import NOTHING, Capacity, Token
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec, recorded_events

# What a store answers with, besides the outcomes of appends.


Direction = Literal["forward", "backward"]
"""From the first event on, or from the last one back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """What a stream's head has.

    Attributes:
        version: the stream's next index.
        token: names this state; expecting it makes the next append one request.
        unfolds: all that are stored.
        events: with `since` those from there on; else those in the head, which are the stream's newest.
        deleted: the stream takes no more events.
        low_water: events below are pruned. Another library's pruning leaves no mark, and a prune under way tells at its
            end: a read tells what is gone.
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
    """Events `first` to `end - 1` of a stream: pruned, and in no archive."""

    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An event that is there, and whose contents cannot be decoded or fetched; `fault` is the error."""

    index: int
    type: str
    timestamp: str = ""
    fault: CorruptData | MissingBody | DeniedBody


@dataclass(frozen=True, slots=True, kw_only=True)
class UnopenedEvent:
    """An event that may be large, as it is stored: it is opened only by those who have room for it.

    Attributes:
        span: that holds it, at `offset`.
        fetch: bodies that lie in the bucket are fetched.
    """

    stream: str
    span: EventSpan
    offset: int
    codec: BodyCodec
    fetch: bool

    @property
    def index(self) -> int:
        """Its index in the stream."""
        return self.span.base + self.offset

    def open(self, largest: int = MAX_DECODED) -> Recorded | Unreadable | None:
        """The event; None where its data or its metadata have more than `largest` bytes."""
        try:
            stored = self.span.read(self.offset)
            if any(
                len(body.data) > largest for body in (stored.data, stored.meta) if body.encoding == DIRECT
            ):
                return None
            return self._recorded(stored, largest)
        except (CorruptData, MissingBody, DeniedBody) as fault:
            if isinstance(fault, Oversized) and largest < MAX_DECODED:
                return None
            type_, time = self.span.type(self.offset), self.span.timestamp(self.offset)
            return Unreadable(index=self.index, type=type_, timestamp=time, fault=fault)

    def outline(self) -> Recorded:
        """The event without its bodies. Raises `CorruptData`."""
        return self._recorded(self.span.read(self.offset)._replace(data=EMPTY, meta=EMPTY), ONE_BLOCK)

    def _recorded(self, stored: EncodedEvent, largest: int) -> Recorded:
        indices = range(self.index, self.index + 1)
        (event,) = recorded_events(
            self.stream, indices, [stored], self.codec, fetch=self.fetch, limit=largest
        )
        return event


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some events of a stream, in the order asked for, none left out between them.

    Attributes:
        next: index to ask for next; None at the end of the stream (or its beginning, backward).
        hole: events that were asked for before these, and are gone; None where there are none. A page ends where a hole
            begins, and the next one tells of it.
        version: the stream's next index when the page was read.
        low_water: events below are pruned.
        exists: False where there is no such stream.
        deleted: the stream carries a tombstone, and has no events any more.
        omitted: indices of events that come without their bodies, since these are larger than was asked for.
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
    """Which events of a stream are wanted: of these types, and of these times of their own, which an append may give
    as it likes. So no place in the stream follows from a time, and all events between are read.

    Attributes:
        since: what happened then or later.
        until: what happened before.
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
        """What is asked for; None for all. Raises `InvalidInput` for what is no list of types or no time."""
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
        """Whether an event is wanted; one whose time cannot be read is of every time."""
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
    """Events below `low_water` are gone for readers. Call again until `done`: items are deleted a part at a time."""

    low_water: int
    deleted: int
    done: bool
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Found = Recorded | Unreadable | UnopenedEvent

_CHUNK = 16
"""Events whose bodies are decoded at once: enough to fetch them in parallel, few enough where each has megabytes."""

_FIELDS = 200
"""Bytes reckoned for an event's fields besides its bodies, where a page is measured."""

_Places = tuple[EventSpan, range]
"""Neighbouring events: a span, and their places in it, in the order of reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads one table of streams, and its archive.

    Attributes:
        consistent: False reads what is before a head that is in hand for half, where a replica has all of it.
        unopened: events that may be large come as `UnopenedEvent`s.
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
        """Events from `start` on, at most `limit`. Raises `EventsPruned` at a hole, `CorruptData` and `MissingBody`."""
        walk = self._begin(stream, start, limit, direction)
        found = iter(()) if walk is None else self._without_holes(walk, start)
        return found if limit is None else islice(found, limit)

    def found(
        self, stream: str, start: int, direction: Direction = "forward", limit: int | None = None
    ) -> Iterator[Found]:
        """Events from `start` on, those that cannot be read too, and none where one is gone.

        Args:
            limit: about so many are wanted; more may come.
        """
        walk = self._begin(stream, start, limit, direction)
        return iter(()) if walk is None else walk.found()

    def onward(
        self, head: Head, start: int | None, direction: Direction, limit: int | None = None
    ) -> Iterator[Recorded | Hole]:
        """Events from `start` on of the stream that `head` heads: no request for what the head itself carries.

        Args:
            limit: about so many are wanted; more may come.
        """
        cursor = self.layout.stand(head, start, forward=direction == "forward")
        for each in _walk(self, cursor, start, limit).told():
            yield each if isinstance(each, Hole) else _readable(each)

    def page(
        self,
        stream: str,
        start: int | None,
        limit: int,
        direction: Direction,
        max_bytes: int,
        *,
        largest: int = MAX_DECODED,
    ) -> Page:
        """Events up to a limit or a size, at least one. Bodies of more than `largest` bytes are left out."""
        cursor = self._stand(stream, start, direction, limit)
        if cursor is None:
            return Page(events=(), next=None, version=0, low_water=0, exists=False, deleted=False)
        walk = _walk(self.leaving_unopened(), cursor, start, limit)
        hole: Hole | None = None
        taken: list[Recorded] = []
        omitted: list[int] = []
        size = 0
        for found in () if cursor.head.deleted else walk.told():
            each = found
            if isinstance(found, UnopenedEvent):
                room = min(largest, max_bytes - size) if taken else largest
                opened = found.open(room) if room > 0 else None
                if opened is None and taken:
                    break
                if opened is None:
                    omitted.append(found.index)
                    size += largest
                each = opened or found.outline()
            if taken and not isinstance(each, Recorded):
                break
            if isinstance(each, Hole):
                hole = each
                continue
            event = _readable(each)
            size += _size(event)
            if taken and size > max_bytes:
                break
            taken.append(event)
            if len(taken) == limit:
                break
        return Page(
            events=tuple(taken),
            next=self._next(taken[-1].index, walk.cursor) if taken else None,
            version=cursor.head.version,
            low_water=walk.cursor.head.low_water,
            exists=True,
            deleted=cursor.head.deleted,
            hole=hole or self._beginning(taken, walk.cursor),
            omitted=frozenset(omitted),
        )

    def leaving_unopened(self) -> Reader:
        """The same reader, which leaves events that may be large unopened."""
        archive = None if self.archive is None else self.archive.leaving_unopened()
        return replace(self, archive=archive, unopened=True)

    def _begin(self, stream: str, start: int | None, limit: int | None, direction: Direction) -> _Walk | None:
        """A walk through a stream that has events."""
        cursor = self._stand(stream, start, direction, limit)
        if cursor is None or cursor.head.deleted:
            return None
        return _walk(self, cursor, start, limit)

    def _stand(
        self, stream: str, start: int | None, direction: Direction, limit: int | None
    ) -> ReadCursor | None:
        steps = self.layout.begin(self.table, stream, start, forward=direction == "forward", limit=limit)
        cursor: ReadCursor | None = self.driver.run(steps)
        return cursor

    def _without_holes(self, walk: _Walk, start: int | None) -> Iterator[Recorded]:
        for each in walk.told():
            if not isinstance(each, Hole):
                yield _readable(each)
            elif self.archive is not None or each.first > 0 or (start is not None and start < each.end):
                raise EventsPruned(walk.cursor.head.stream, each.first, each.end)

    def _next(self, last: int, cursor: ReadCursor) -> int | None:
        """The index at which the page after event `last` begins; None at the end."""
        if cursor.forward:
            return last + 1 if last + 1 < cursor.head.version else None
        return last - 1 if last > self._lowest(cursor) else None

    def _beginning(self, taken: Sequence[Recorded], cursor: ReadCursor) -> Hole | None:
        """The hole below the last page of a backward read; None where nothing is gone."""
        ends = not cursor.forward and taken and 0 < taken[-1].index <= self._lowest(cursor)
        return Hole(first=0, end=taken[-1].index) if ends else None

    def _lowest(self, cursor: ReadCursor) -> int:
        return cursor.head.low_water if self.archive is None else 0


def _walk(reader: Reader, cursor: ReadCursor, start: int | None, limit: int | None) -> _Walk:
    first = (start or 0) if cursor.forward else cursor.at - 1
    return _Walk(reader, cursor, first, limit)


@dataclass(slots=True)
class _Walk:
    """A walk under way.

    Attributes:
        start: forward, the first event wanted; backward, the last.
    """

    reader: Reader
    cursor: ReadCursor
    start: int
    limit: int | None

    def told(self) -> Iterator[Found | Hole]:
        """Everything wanted: what is found, and the holes between."""
        return chain.from_iterable(self._told())

    def found(self) -> Iterator[Found]:
        """Everything that is found."""
        return chain.from_iterable(self._rows())

    def _rows(self) -> Iterator[Sequence[Found]]:
        """The same, in rows of neighbours."""
        return self._forward() if self.cursor.forward else self._backward()

    def _forward(self) -> Iterator[Sequence[Found]]:
        at = self.start
        while not self.cursor.at_end:
            yield from self._archived(at, self.cursor.at)
            at = yield from self._part(self.cursor.at)
        yield from self._archived(at, self.cursor.head.version)

    def _backward(self) -> Iterator[Sequence[Found]]:
        at = self.start + 1
        while not self.cursor.at_end:
            at = yield from self._part(at)
        if at > 0 and self.reader.archive is not None:
            yield from _singly(self.reader.archive.found(self.cursor.head.stream, at - 1, "backward"))

    def _told(self) -> Iterator[Sequence[Found | Hole]]:
        forward = self.cursor.forward
        at = self.start if forward else self.start + 1
        for row in self._rows():
            yield _hole(at, row[0].index) if forward else _hole(row[0].index + 1, at)
            yield row
            at = row[-1].index + forward
            del row  # or it would be held until the next one is read
        yield _hole(at, self.cursor.head.version) if forward else _hole(0, at)

    def _part(self, at: int) -> Generator[Sequence[Found], None, int]:
        """One part more, from `at` on, in rows, and forward what the archive has of what the part lacks: a page that
        was pruned in part shows it only once it is read. Nothing of a part is held once it has been consumed: in wire
        form it is large.

        Returns:
            where the part ends.
        """
        reader, stream, forward = self.reader, self.cursor.head.stream, self.cursor.forward
        steps = reader.layout.advance(reader.table, self.cursor, self._left, consistent=reader.consistent)
        part: ReadPart[EventSpan, ReadCursor] = reader.driver.run(steps)
        size = min(_CHUNK, self.limit or _CHUNK)
        plain = framed = isinstance(next(iter(part.spans), None), PlainSpan)
        for chunk in _chunks(part.spans, size, forward=forward):
            if forward:
                yield from self._archived(at, chunk[0][0].base + chunk[0][1][0])
            row = plain and _plain(stream, chunk)
            plain = bool(row)  # the events of a stream are much alike
            together = not framed or not any(
                span.holds_large(offsets)  # type: ignore[attr-defined]  # as above
                for span, offsets in (() if row else chunk)
            )
            rows = (row,) if row else _decoded(reader, stream, chunk, together=together)
            for row in rows:
                yield row
                at = row[-1].index + forward
                del row
            del rows
        self.cursor = part.cursor
        return at

    @property
    def _left(self) -> int | None:
        """How many events of those wanted are still to be read. Whoever goes on beyond them wants as many again."""
        if self.limit is None:
            return None
        passed = abs(self.cursor.at - self.start)
        return self.limit - passed if passed < self.limit else self.limit

    def _archived(self, first: int, end: int) -> Iterable[Sequence[Found]]:
        """The events `first` to `end - 1` that the archive has."""
        if self.reader.archive is None or first >= end:
            return ()
        found = self.reader.archive.found(self.cursor.head.stream, first, limit=end - first)
        return _singly(takewhile(lambda each: each.index < end, found))


_singly: Final[Callable[[Iterable[Found]], Iterator[tuple[Found]]]] = zip
"""What may have holes between, each in a row of its own."""


def _plain(stream: str, chunk: list[_Places]) -> Sequence[Found]:
    """Neighbours that take no codec; nothing where one of them may."""
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
    """Neighbours together. Where one of them cannot be decoded, or is large, one by one, as they are wanted, or
    unopened: spaces by the megabyte are stored in a few bytes.
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


def _readable(found: Found) -> Recorded:
    """An event that was found; raises what keeps it from being read."""
    if isinstance(found, UnopenedEvent):
        return _readable(found.open() or found)
    if isinstance(found, Unreadable):
        raise found.fault
    return found


def _chunks(spans: Iterable[EventSpan], size: int, *, forward: bool) -> Iterator[list[_Places]]:
    """The events of spans, in the order of reading, so many neighbours at a time."""
    chunk: list[_Places] = []
    room, end = size, -1
    for span in spans:
        offsets = range(span.next - span.base)
        left = offsets if forward else offsets[::-1]
        if chunk and end != (span.base if forward else span.next):
            yield chunk
            chunk, room = [], size
        end = span.next if forward else span.base
        while left:
            taken, left = left[:room], left[room:]
            chunk.append((span, taken))
            room -= len(taken)
            if not room:
                yield chunk
                chunk, room = [], size
    if chunk:
        yield chunk


def _hole(first: int, end: int) -> Sequence[Hole]:
    return (Hole(first=first, end=end),) if first < end else ()


def _size(event: Recorded) -> int:
    bodies = sum(body.size if isinstance(body, Claim) else len(body) for body in (event.data, event.meta))
    return _FIELDS + bodies
