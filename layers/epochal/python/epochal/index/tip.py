"""How the index stores streams: each is a Tip and calves, in one table (FORMATS §1 and §4).

    Tip     sort key 2147483647: takes every append, and is read first by every read
    calf    events that were in the Tip, all of them, contiguous, from its sort key on; it never changes

The layout is Equinox DynamoStore's. Epochs, the series, states of consumer groups and records that were set aside are
such streams. This module defines how their items store events, and reads them forward; `tip_append` writes them. The
format outlives the code: see FORMATS before touching a name.

Events stay in their wire form inside a Tip, so that a calf is a copy to the byte, also of attributes that
another library put there. They are decoded only where someone wants to see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from epochal.codec.bodies import DIRECT, EMPTY, Encoded
from epochal.errors import CorruptData
from epochal.index.checkpoints import calf_key, is_tip, tip_key
from epochal.layout.streams import EncodedEvent, EncodedUnfold, ReadPart
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.tokens import Token
from epochal.plan.ops import Get, Query, Steps
from epochal.plan.values import (
    AttributeValue,
    Item,
    Key,
    attribute_size,
    binary,
    decodes,
    item_size,
    mapping,
    number,
    read_list,
    read_number,
    sequence,
    text,
    value_size,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpan:
    """Consecutive events as an item stores them: from index `base` on, undecoded, with their types."""

    base: int
    events: tuple[AttributeValue, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def next(self) -> int:
        """Index after the last event."""
        return self.base + len(self.events)

    @property
    def pairs(self) -> Iterator[tuple[str, AttributeValue]]:
        """The types and undecoded events in pairs."""
        return zip(self.types, self.events, strict=True)

    def read(self, offset: int) -> EncodedEvent:
        """Decode the event at `base + offset`; raise `CorruptData` if it is malformed."""
        return read_event(self.types[offset], self.events[offset])

    def type(self, offset: int) -> str:
        """Return the type of the event at an offset."""
        return self.types[offset]

    def timestamp(self, offset: int) -> str:
        """Return the time of the event at an offset as stored; it may be malformed."""
        return read_timestamp(self.events[offset])

    def since(self, index: int) -> StoredSpan:
        """Return the span without the events below `index`."""
        cut = max(0, index - self.base)
        return StoredSpan(base=self.base + cut, events=self.events[cut:], types=self.types[cut:])

    def before(self, index: int) -> StoredSpan:
        """Return the span without the events at or above `index`."""
        keep = max(0, index - self.base)
        return StoredSpan(base=self.base, events=self.events[:keep], types=self.types[:keep])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """The head of a stream.

    Attributes:
        stream: name of the stream.
        span: events in the Tip; `span.next` is the stream's version.
        unfolds: undecoded unfolds.
        etag: etag of the latest write.
        calved: bytes of events in calves (`b`).
        latest: number of events that the latest write appended (`a`).
        low_water: index below which everything is pruned (`l`).
        deleted: whether it is a tombstone (`z`).
        size: bytes of the whole item.
    """

    stream: str
    span: StoredSpan
    unfolds: tuple[AttributeValue, ...] = ()
    etag: str | None = None
    calved: int = 0
    latest: int = 0
    low_water: int = 0
    deleted: bool = False
    size: int = 0

    @property
    def version(self) -> int:
        """The stream's next index."""
        return self.span.next

    @property
    def earlier_spans(self) -> tuple[StoredSpan, ...]:
        """Always empty: events before those in the Tip are in calves, which are read separately."""
        return ()

    @property
    def appends(self) -> int:
        """Number of appends that the Tip's events came in; events of other libraries count singly."""
        marked = sum("k" in event["M"] for event in self.span.events)
        return marked or len(self.span.events)

    def read_unfolds(self) -> tuple[EncodedUnfold, ...]:
        """Decode the unfolds; raise `CorruptData` if one is malformed."""
        return tuple(map(read_unfold, self.unfolds))

    def token(self) -> Token:
        """Return the token with which an append on exactly this Tip takes one request."""
        return Token(
            version=self.version,
            etag=self.etag,
            size=self.size,
            carried=span_size(self.span),
            unfolds=unfolds_size(self.unfolds),
            events=len(self.span.events),
            appends=self.appends,
        )


@decodes("Tip")
def read_tip(item: Item) -> Tip:
    """Decode a Tip; raise `CorruptData` if it is malformed, or its counts contradict each other."""
    return Tip(
        stream=item["p"]["S"],
        span=read_span(item),
        unfolds=tuple(read_list(item, "u")),
        etag=item["etag"]["S"] if "etag" in item else None,
        calved=read_number(item, "b") or 0,
        latest=read_number(item, "a") or 0,
        low_water=read_number(item, "l") or 0,
        deleted=bool(read_number(item, "z")),
        size=item_size(item),
    )


@decodes("Tip")
def read_span(item: Item) -> StoredSpan:
    """Decode the events of a Tip's or calf's item; raise `CorruptData` if its attributes are inconsistent."""
    events, types = read_list(item, "e"), read_list(item, "c")
    following = read_number(item, "n")
    base = -1 if following is None else following - len(events)
    if base < 0 or len(types) != len(events) or (base != int(item["i"]["N"]) and not is_tip(item)):
        raise CorruptData(f"{item['p']['S']}: item {item['i']['N']} has contradictory i, n, e and c")
    return StoredSpan(base=base, events=tuple(events), types=tuple(kind["S"] for kind in types))


def events_attributes(span: StoredSpan) -> dict[str, AttributeValue]:
    """Return the attributes `e` and `c` of an item; none if the span is empty."""
    if not span.events:
        return {}
    return {"e": sequence(span.events), "c": sequence(map(text, span.types))}


def write_event(event: EncodedEvent) -> AttributeValue:
    """Encode an event, except for its type, in its stored form, without absent or empty fields."""
    fields = {
        "t": text(event.timestamp),
        **_write_body("d", "D", event.data),
        **_write_body("m", "M", event.meta),
    }
    if event.correlation_id is not None:
        fields["x"] = text(event.correlation_id)
    if event.causation_id is not None:
        fields["y"] = text(event.causation_id)
    if event.append_id is not None:
        fields["k"] = binary(event.append_id)
    return mapping(fields)


def read_event(kind: str, event: AttributeValue) -> EncodedEvent:
    """Decode a stored event; raise `CorruptData` if it is not of this layout."""
    try:
        fields = event["M"]
        return EncodedEvent(
            type=kind,
            data=_read_body(fields, "d", "D"),
            meta=_read_body(fields, "m", "M"),
            timestamp=fields["t"]["S"] if "t" in fields else "",
            correlation_id=fields["x"]["S"] if "x" in fields else None,
            causation_id=fields["y"]["S"] if "y" in fields else None,
            append_id=append_id(event),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"an event of type {kind} lacks attributes of the Tip layout") from error


def read_timestamp(event: AttributeValue) -> str:
    """Return the time of a stored event, or empty text if the event is malformed."""
    try:
        return str(event["M"]["t"]["S"])
    except (KeyError, TypeError):
        return ""


@decodes("Tip")
def read_data(event: AttributeValue) -> Encoded:
    """Decode only the data of a stored event; raises `CorruptData` as `read_event` does."""
    return _read_body(event["M"], "d", "D")


@decodes("Tip")
def read_meta(event: AttributeValue) -> Encoded | None:
    """Decode only the metadata of a stored event; None if it has none."""
    return _read_body(event["M"], "m", "M") if "m" in event["M"] else None


def append_id(event: AttributeValue) -> bytes | None:
    """Return the id of the append whose first event this is, or None."""
    key = event["M"].get("k")
    return None if key is None else _bytes(key)


def write_unfold(unfold: EncodedUnfold) -> AttributeValue:
    """Encode an unfold in its stored form."""
    return mapping(
        {
            "i": number(unfold.version),
            "c": text(unfold.type),
            "t": text(unfold.timestamp),
            **_write_body("d", "D", unfold.data),
            **_write_body("m", "M", unfold.meta),
        }
    )


def read_unfold(unfold: AttributeValue) -> EncodedUnfold:
    """Decode a stored unfold."""
    fields = unfold["M"]
    return EncodedUnfold(
        version=int(fields["i"]["N"]),
        type=fields["c"]["S"],
        data=_read_body(fields, "d", "D"),
        meta=_read_body(fields, "m", "M"),
        timestamp=fields["t"]["S"] if "t" in fields else "",
    )


def span_size(span: StoredSpan) -> int:
    """Return the bytes that a span takes in an item."""
    return sum(attribute_size(name, value) for name, value in events_attributes(span).items())


def unfolds_size(unfolds: tuple[AttributeValue, ...]) -> int:
    """Return the bytes that unfolds take in an item."""
    return attribute_size("u", sequence(unfolds)) if unfolds else 0


def event_bytes(span: StoredSpan) -> int:
    """Return the bytes of the events alone, which `b` counts."""
    return sum(map(value_size, span.events))


def _write_body(data: str, encoding: str, body: Encoded) -> dict[str, AttributeValue]:
    """Return the attributes of a body; none if it is empty."""
    if not body.data and body.encoding == DIRECT:
        return {}
    fields = {data: binary(body.data)}
    if body.encoding != DIRECT:
        fields[encoding] = number(body.encoding)
    return fields


def _read_body(fields: dict[str, AttributeValue], data: str, encoding: str) -> Encoded:
    """Read a body from the attributes of an event or unfold."""
    if data not in fields:
        return EMPTY
    kind = int(fields[encoding]["N"]) if encoding in fields else DIRECT
    return Encoded(kind, _bytes(fields[data]))


def _bytes(value: AttributeValue) -> bytes:
    """Return a binary attribute as bytes."""
    content: Any = value["B"]
    return content if isinstance(content, bytes) else bytes(content)


# Reading, forward, a part at a time. The Tip is read first and fixes what the read is of: its version is the end, its
# own events need no further request, and what lies below its base is in calves.


@dataclass(frozen=True, slots=True, kw_only=True)
class TipCursor:
    """Position of a read in the stream of `head`.

    Attributes:
        head: Tip of the stream, which fixes where the read ends.
        at: forward, the next index to read; backward, the index after the next one to read.
        forward: direction of the read.
        located: forward, whether a calf should begin at `at`; otherwise the calf that contains it must be found first.
    """

    head: Tip
    at: int
    forward: bool = True
    located: bool = False

    @property
    def at_end(self) -> bool:
        """Whether nothing is left to read."""
        return self.at >= self.head.version if self.forward else self.at <= self.head.low_water

    @property
    def wanted(self) -> int:
        """Index of the next event to read."""
        return self.at if self.forward else self.at - 1


TipPart: TypeAlias = ReadPart[StoredSpan, TipCursor]


def load_tip(table: str, stream: str, *, consistent: bool = True) -> Steps[Tip | None]:
    """Read the Tip of a stream; None if the stream does not exist.

    An inconsistent read may return an earlier Tip.
    """
    reply = yield Get(table=table, key=tip_key(stream), consistent=consistent)
    return None if reply.item is None else read_tip(reply.item)


def cursor_at(tip: Tip, start: int) -> TipCursor:
    """Return a cursor before event `start` of a stream, by its Tip."""
    return TipCursor(head=tip, at=start, located=start == 0)


def advance(table: str, cursor: TipCursor, limit: int | None = None) -> Steps[TipPart]:
    """Read the next part of a stream forward, from its Tip or calves; raise `CorruptData` if none has it.

    It takes one request, or two if the first calf must be found; none for the Tip's own events.

    Args:
        limit: number of events wanted; more may come, since calves are read whole.

    Raises:
        CorruptData: an event is in no item.
    """
    part = yield from next_part(table, cursor, limit)
    if part is None:
        raise CorruptData(f"{cursor.head.stream}: event {cursor.at} is in no item, but was not pruned")
    return part


def read_all(table: str, stream: str) -> Steps[list[EncodedEvent]]:
    """Return every event of a stream, decoded and in order; none if the stream does not exist."""
    tip = yield from load_tip(table, stream)
    cursor = None if tip is None else cursor_at(tip, 0)
    events: list[EncodedEvent] = []
    while cursor is not None and not cursor.at_end:
        part = yield from advance(table, cursor)
        events += [span.read(offset) for span in part.spans for offset in range(len(span.events))]
        cursor = part.cursor
    return events


def next_part(
    table: str, cursor: TipCursor, limit: int | None, *, consistent: bool = True
) -> Steps[TipPart | None]:
    """Read the next part of a stream forward; return None if no item holds the next event."""
    if cursor.at_end:
        return ReadPart(spans=(), cursor=cursor)
    base = cursor.head.span.base
    if cursor.at >= base:
        own = cursor.head.span.since(cursor.at)
        return ReadPart(spans=(own,), cursor=replace(cursor, at=cursor.head.version))
    if cursor.located:
        reply = yield query_calves(
            table, cursor.head.stream, cursor.at, base - 1, limit=limit, consistent=consistent
        )
        spans: list[StoredSpan] = []
        index = cursor.at
        for span in readable_spans(reply.items):
            if span.base > index:
                break
            if span.next > index:
                spans.append(span.since(index))
                index = span.next
        if spans:
            return ReadPart(spans=tuple(spans), cursor=replace(cursor, at=index))
    calf = yield from find_calf(table, cursor.head.stream, cursor.at, consistent=consistent)
    if calf is None:
        return None
    return ReadPart(spans=(calf.since(cursor.at),), cursor=replace(cursor, at=calf.next, located=True))


def find_calf(table: str, stream: str, index: int, *, consistent: bool = True) -> Steps[StoredSpan | None]:
    """Find the calf that contains an event; None if there is none.

    It is not always the last to begin at or before the event, since calves may overlap.
    """
    last: Key | None = None
    while True:
        reply = yield query_calves(
            table, stream, 0, index, forward=False, limit=1, after=last, consistent=consistent
        )
        for span in map(read_span, reply.items):
            if span.next > index:
                return span
        if reply.last is None:
            return None
        last = reply.last


def readable_spans(items: Iterable[Item]) -> Iterator[StoredSpan]:
    """Decode calves up to the first unreadable one, which is an error only if it comes first."""
    for position, item in enumerate(items):
        try:
            span = read_span(item)
        except CorruptData:
            if position:
                return
            raise
        yield span


def query_calves(
    table: str,
    stream: str,
    lowest: int,
    highest: int,
    *,
    forward: bool = True,
    limit: int | None,
    after: Key | None = None,
    consistent: bool = True,
) -> Query:
    """Build a query for the calves whose first events have indices in a range.

    Each has at least one event, so no more of them than events are needed.
    """
    return Query(
        table=table,
        partition=("p", calf_key(stream, 0)["p"]),
        sort=("i", number(lowest), number(highest)),
        forward=forward,
        limit=limit,
        after=after,
        consistent=consistent,
    )
