"""Tips, calves and events to items and back. This outlives the code: see FORMATS §1 before touching a name.

Events stay in their wire form inside a Tip, so that a calf is a copy to the byte, also of attributes that
another library put there. They are decoded only where someone wants to see them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from epochal.codec.bodies import DIRECT, EMPTY, Encoded
from epochal.errors import CorruptData
from epochal.layout.stored import EncodedEvent, EncodedUnfold
from epochal.model.versions import Token
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

TIP: Final = 2_147_483_647
"""Sort key of the Tip (Int32.MaxValue, as Equinox has it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpan:
    """Consecutive events as an item holds them: index `base` on, in wire form, with their types."""

    base: int
    events: tuple[AttributeValue, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def next(self) -> int:
        """Index after the last."""
        return self.base + len(self.events)

    @property
    def pairs(self) -> Iterator[tuple[str, AttributeValue]]:
        """Each event with its type."""
        return zip(self.types, self.events, strict=True)

    def read(self, offset: int) -> EncodedEvent:
        """The event at `base + offset`. Raises `CorruptData`."""
        return read_event(self.types[offset], self.events[offset])

    def type(self, offset: int) -> str:
        """Its type, which is told beside it."""
        return self.types[offset]

    def timestamp(self, offset: int) -> str:
        """When it happened, as far as its wire form tells; it may be broken."""
        return read_timestamp(self.events[offset])

    def since(self, index: int) -> StoredSpan:
        """Without the events below `index`."""
        cut = max(0, index - self.base)
        return StoredSpan(base=self.base + cut, events=self.events[cut:], types=self.types[cut:])

    def before(self, index: int) -> StoredSpan:
        """Without the events at or above `index`."""
        keep = max(0, index - self.base)
        return StoredSpan(base=self.base, events=self.events[:keep], types=self.types[:keep])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """A stream's head.

    Attributes:
        span: the events it carries; `span.next` is the stream's version.
        calved: bytes of events in calves (`b`).
        latest: events that the latest write appended (`a`).
        low_water: everything below is pruned (`l`).
        deleted: a tombstone (`z`).
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
    def appends(self) -> int:
        """Appends that the carried events came in, by their append ids; events of other libraries count singly."""
        marked = sum("k" in event["M"] for event in self.span.events)
        return marked or len(self.span.events)

    def read_unfolds(self) -> tuple[EncodedUnfold, ...]:
        """The unfolds, decoded. Raises `CorruptData`."""
        return tuple(map(read_unfold, self.unfolds))

    def token(self) -> Token:
        """What makes an append on exactly this Tip one request."""
        return Token(
            version=self.version,
            etag=self.etag,
            size=self.size,
            carried=span_size(self.span),
            unfolds=unfolds_size(self.unfolds),
            events=len(self.span.events),
            appends=self.appends,
        )


def tip_key(stream: str) -> Key:
    """Primary key of a stream's Tip."""
    return calf_key(stream, TIP)


def calf_key(stream: str, base: int) -> Key:
    """Primary key of the calf whose first event has index `base`."""
    return {"p": text(stream), "i": number(base)}


def is_tip(item: Item) -> bool:
    """Whether an item of the table is a Tip."""
    return bool(item["i"]["N"] == str(TIP))


@decodes("tips")
def read_tip(item: Item) -> Tip:
    """Decode a Tip. Raises `CorruptData` where counts contradict each other."""
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


@decodes("tips")
def read_span(item: Item) -> StoredSpan:
    """The events of a Tip or calf. Raises `CorruptData` where `n`, `e` and `c`, or a calf's `i`, do not agree."""
    events, types = read_list(item, "e"), read_list(item, "c")
    following = read_number(item, "n")
    base = -1 if following is None else following - len(events)
    if base < 0 or len(types) != len(events) or (base != int(item["i"]["N"]) and not is_tip(item)):
        raise CorruptData(f"{item['p']['S']}: item {item['i']['N']} has i, n, e and c that do not agree")
    return StoredSpan(base=base, events=tuple(events), types=tuple(kind["S"] for kind in types))


def write_calf(stream: str, span: StoredSpan) -> Item:
    """The calf that holds a Tip's events."""
    return {**calf_key(stream, span.base), "n": number(span.next), **events_attributes(span)}


def events_attributes(span: StoredSpan) -> dict[str, AttributeValue]:
    """`e` and `c`, omitted when empty."""
    if not span.events:
        return {}
    return {"e": sequence(span.events), "c": sequence(map(text, span.types))}


def write_event(event: EncodedEvent) -> AttributeValue:
    """An event in wire form; what is absent or empty is omitted."""
    fields = {"t": text(event.timestamp), **_body("d", "D", event.data), **_body("m", "M", event.meta)}
    if event.correlation_id is not None:
        fields["x"] = text(event.correlation_id)
    if event.causation_id is not None:
        fields["y"] = text(event.causation_id)
    if event.append_id is not None:
        fields["k"] = binary(event.append_id)
    return mapping(fields)


def read_event(kind: str, event: AttributeValue) -> EncodedEvent:
    """Decode an event from its wire form. Raises `CorruptData` where that is not of this layout."""
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
        raise CorruptData(
            f"an event of type {kind} has attributes that are not of the tips layout"
        ) from error


def read_timestamp(event: AttributeValue) -> str:
    """When an event happened, as far as its wire form tells; for one that may be broken."""
    try:
        return str(event["M"]["t"]["S"])
    except (KeyError, TypeError):
        return ""


@decodes("tips")
def read_data(event: AttributeValue) -> Encoded:
    """An event's data alone, from its wire form. Raises `CorruptData` as `read_event` does."""
    return _read_body(event["M"], "d", "D")


def append_id(event: AttributeValue) -> bytes | None:
    """The id of the append whose first event this is."""
    marked = event["M"].get("k")
    return None if marked is None else _bytes(marked)


def write_unfold(unfold: EncodedUnfold) -> AttributeValue:
    """An unfold in wire form."""
    return mapping(
        {
            "i": number(unfold.version),
            "c": text(unfold.type),
            "t": text(unfold.timestamp),
            **_body("d", "D", unfold.data),
            **_body("m", "M", unfold.meta),
        }
    )


def read_unfold(unfold: AttributeValue) -> EncodedUnfold:
    """Decode an unfold from its wire form."""
    fields = unfold["M"]
    return EncodedUnfold(
        version=int(fields["i"]["N"]),
        type=fields["c"]["S"],
        data=_read_body(fields, "d", "D"),
        meta=_read_body(fields, "m", "M"),
        timestamp=fields["t"]["S"] if "t" in fields else "",
    )


def span_size(span: StoredSpan) -> int:
    """Bytes that a span takes in an item."""
    return sum(attribute_size(name, value) for name, value in events_attributes(span).items())


def unfolds_size(unfolds: tuple[AttributeValue, ...]) -> int:
    """Bytes that unfolds take in an item."""
    return attribute_size("u", sequence(unfolds)) if unfolds else 0


def event_bytes(span: StoredSpan) -> int:
    """Bytes of the events alone: what `b` counts."""
    return sum(map(value_size, span.events))


def _body(data: str, encoding: str, body: Encoded) -> dict[str, AttributeValue]:
    if not body.data and body.encoding == DIRECT:
        return {}
    fields = {data: binary(body.data)}
    if body.encoding != DIRECT:
        fields[encoding] = number(body.encoding)
    return fields


def _read_body(fields: dict[str, AttributeValue], data: str, encoding: str) -> Encoded:
    if data not in fields:
        return EMPTY
    kind = int(fields[encoding]["N"]) if encoding in fields else DIRECT
    return Encoded(kind, _bytes(fields[data]))


def _bytes(value: AttributeValue) -> bytes:
    content: Any = value["B"]
    return content if isinstance(content, bytes) else bytes(content)
