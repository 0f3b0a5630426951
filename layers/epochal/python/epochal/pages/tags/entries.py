"""The events on the pages of tags: their labels, and the bodies that a page only refers to.

The body of an event is on the page of its first tag; the pages of its other tags may contain a reference to it. All
were written in one transaction, but a read may see one page before another. So a missing body is read again, once no
append to its page is under way.

A tagged event has a label, which is stored in the place of its metadata (FORMATS §8). This outlives the code.

    flags (1 byte)   number   tags   id (16)   user   page   home   metadata: encoding (1 byte), bytes

    number    number of the event within its append
    tags      number of tags, then each tag, without the tag of the page's own stream
    flags     1 a caller chose the id   2 there is a user   4 the body is on another page   8 there are metadata
              16 the data are text   32 the metadata are text   64 there is a home (2, 16 and 32 are no longer written)
    page      index at which the page with the body begins, in the stream of the first tag
    home      named stream that the event was appended to, and its index there

In its home, an event has its metadata in the usual place, and beside them a label with all its tags, without page and
home.

An id that the store chose is not stored: it is computed from the append's stamp and the event's number.

Each tag is a stream of pages, whose name no stream of a user can have:

    $tag-<tag>          events with the tag; events without tags are in `$tag-`
    $tag-$type:<type>   events of the type, if the store was opened for it
    $tag-$all           all events, if the store was opened for it
    $event-<uuid>       i = 0: record of an id that a caller chose (s: stream of the event's first tag, n: index there)
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

from epochal.codec import json
from epochal.codec.bodies import (
    DIRECT,
    EMPTY,
    MAX_DECODED,
    ONE_BLOCK,
    Encoded,
    OversizedBody,
    decode,
    may_be_large,
)
from epochal.errors import CorruptData
from epochal.layout.streams import EncodedEvent
from epochal.layout.tag_streams import TagStreams
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Body, Claim
from epochal.model.events import OutlinedEvent, Recorded
from epochal.model.positions import Reached
from epochal.model.stream_names import EVENT_IDS, TAG_STREAMS
from epochal.model.tags import EVERYTHING, RANDOM_DIGITS, UNTAGGED, Trail, is_reserved, type_tag
from epochal.pages.frames import ByteReader, Writer, time_of
from epochal.pages.items import Page, PageSpan, page_key, read_page
from epochal.plan.batches import get_all, settled
from epochal.plan.conditions import Absent
from epochal.plan.ops import Put, Steps
from epochal.plan.values import Item, Key, binary, number, text


# No slots, so that cached properties can be stored.
@dataclass(frozen=True, kw_only=True)
class EventOfTag:
    """An event in a tag's stream.

    Attributes:
        tag: tag of the stream.
        index: index of the event in that stream.
        stamp: stamp of the append.
        event: the event as it is stored there.
    """

    tag: str
    index: int
    stamp: bytes
    event: EncodedEvent

    @property
    def type(self) -> str:
        """Type of the event."""
        return self.event.type

    @cached_property
    def label(self) -> Label:
        """Label of the event, decoded."""
        return read_label(self.event.meta)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags of the event, sorted."""
        own = () if is_reserved(self.tag) else (self.tag,)
        return tuple(sorted((*self.label.others, *own)))

    @cached_property
    def place(self) -> str:
        """Place of the event among all events."""
        return stamped_place(self.stamp, self.label.number)

    @cached_property
    def id(self) -> str:
        """Id of the event."""
        return event_id(self.stamp, self.label)

    @property
    def key(self) -> str:
        """Key by which events are ordered, as that of a recorded event: place and id."""
        return f"{self.place}#{self.id}"

    @property
    def reached(self) -> Reached:
        """End of a read of the tag whose last event is this one."""
        return Reached(self.index + 1, self.place)

    @property
    def body(self) -> tuple[Key, bytes, int] | None:
        """Page, append and number of the entry that holds the body; None if this entry does."""
        if self.label.page is None:
            return None
        first = self.tags[0] if self.tags else UNTAGGED
        return page_key(stream_of(first), self.label.page), self.stamp, self.label.number


def entries_of(span: PageSpan) -> Iterator[EventOfTag]:
    """Yield the events in a span of a tag's page."""
    page, index = span.page, span.page.base
    for position, frame in enumerate(page.frames):
        if index < span.next and index + frame.count > span.base:
            yield from (
                entry for entry in _of_frame(page, position, index) if span.base <= entry.index < span.next
            )
        index += frame.count


def last_entry(page: Page) -> EventOfTag:
    """Return the last event of a tag's page; raise `CorruptData` if the page has none."""
    if not page.frames:
        raise CorruptData(f"{page.stream}: page {page.index} has no events, unlike any valid page of a tag")
    event = page.read_frame(len(page.frames) - 1)[-1]
    tag = page.stream.removeprefix(TAG_STREAMS)
    return EventOfTag(tag=tag, index=page.version - 1, stamp=page.frames[-1].stamp, event=event)


def reached_by(page: Page | None) -> Reached:
    """Return the end of a tag whose last page this is; None is a tag without events."""
    if page is None:
        return Reached()
    reached = last_entry(page).reached
    return Reached(reached.count, reached.last, page.token())


def recorded_all(site: TagStreams, entries: Sequence[EventOfTag]) -> Steps[list[Recorded]]:
    """Read the events with their bodies, in the order of the entries.

    Raises:
        CorruptData: a body is not where it must be.
    """
    return list((yield from recorded_each(site, entries)))


def recorded_each(site: TagStreams, entries: Sequence[EventOfTag]) -> Steps[Iterator[Recorded]]:
    """Read the events of entries, in order; an event's bodies are decoded when it is consumed.

    Raises:
        CorruptData: a body is not where it must be.
    """
    places = [place for entry in entries if (place := entry.body) is not None]
    bodies = (yield from _bodies(site, places)) if places else {}
    return (
        _recorded(entry, entry if entry.body is None else bodies[entry.id], site.largest) for entry in entries
    )


def placed(event: Recorded, entry: EventOfTag) -> Recorded:
    """Return an event with the position that its entry has in one tag."""
    return replace(event, trail=Trail.in_tags({entry.tag: entry.index + 1}, event.place))


def label_of(tags: Iterable[str], place: int) -> bytes:
    """Encode the label with which an event is stored in its named stream: its tags and its number."""
    return Label(number=place, others=tuple(sorted(set(tags)))).encoded().data


def parts_of_label(event: EncodedEvent) -> tuple[tuple[str, ...], str, str]:
    """Return the tags, the id and the place that the label of an event in a named stream contains."""
    label = read_label(Encoded(DIRECT, event.label))
    return label.others, event_id(event.stamp, label), stamped_place(event.stamp, label.number)


def _bodies(site: TagStreams, places: Sequence[tuple[Key, bytes, int]]) -> Steps[dict[str, EventOfTag]]:
    """Read the entries that hold the bodies, by event id; raise `CorruptData` if one is missing."""
    keys = {_name(key): key for key, _, _ in places}
    items = yield from get_all(site.table, keys.values())
    bodies = _held([read_page(item, site.table) for item in items], places)
    late = {_name(key): key for key, stamp, number in places if (stamp, number) not in bodies}
    for read in settled((site.table, key) for key in late.values()):
        reply = yield read
        bodies |= _held([read_page(item, site.table) for item in reply.items if item is not None], places)
    for key, stamp, numbered in places:
        if (stamp, numbered) not in bodies:
            raise CorruptData(
                f"{key['p']['S']}: page {key['i']['N']} has no body of event {numbered} of an append"
            )
    return {entry.id: entry for entry in bodies.values()}


def _held(
    pages: Sequence[Page], places: Sequence[tuple[Key, bytes, int]]
) -> dict[tuple[bytes, int], EventOfTag]:
    """Return the entries in these pages that hold the wanted bodies, by append and number."""
    sought = {(stamp, number) for _, stamp, number in places}
    stamps = {stamp for stamp, _ in sought}
    return {
        (frame.stamp, entry.label.number): entry
        for page in pages
        for position, frame in enumerate(page.frames)
        if frame.stamp in stamps
        for entry in _of_frame(page, position)
        if (frame.stamp, entry.label.number) in sought and entry.label.page is None
    }


def _of_frame(page: Page, position: int, first: int = 0) -> Iterator[EventOfTag]:
    """Yield the events of one frame of a tag's page."""
    tag, stamp = page.stream.removeprefix(TAG_STREAMS), page.frames[position].stamp
    for index, event in enumerate(page.read_frame(position), first):
        yield EventOfTag(tag=tag, index=index, stamp=stamp, event=event)


def _name(key: Key) -> str:
    return f"{key['p']['S']}\0{key['i']['N']}"


def _recorded(entry: EventOfTag, holder: EventOfTag, largest: int = MAX_DECODED) -> Recorded:
    """Make an entry's recorded event with the bodies of `holder`; an outline if one is above `largest`."""
    label, data, fields = holder.label, holder.event.data, _fields_of(entry)
    if largest > ONE_BLOCK or not (may_be_large(data) or may_be_large(label.meta)):
        try:
            meta = decode(label.meta, largest)
            return Recorded(
                data=decode(data, largest),
                meta=meta if label.user is None else _with_user(meta, label.user),
                **fields,
            )
        except OversizedBody:
            if largest >= MAX_DECODED:
                raise
    stored = len(data.data) + len(label.meta.data)
    return OutlinedEvent(data=b"", stored_bytes=stored, decode=partial(_recorded, entry, holder), **fields)


def _fields_of(entry: EventOfTag) -> dict[str, Any]:
    """Return the fields of an entry's recorded event, without its bodies."""
    home = entry.label.home or ("", 0)
    return {
        "id": entry.id,
        "place": entry.place,
        "type": entry.type,
        "tags": entry.tags,
        "timestamp": entry.event.timestamp,
        "causation_id": entry.event.causation_id,
        "correlation_id": entry.event.correlation_id,
        "stream": home[0],
        "index": home[1],
    }


def _with_user(meta: Body, user: str) -> Body:
    """Add the user of an old label to metadata; return metadata that are no object unchanged."""
    members = None if isinstance(meta, Claim) else json.with_members(meta, {"user": user})
    return meta if members is None else members


_ID: Final = 1
_USER: Final = 2  # only read: a user is now stored among the metadata
_ELSEWHERE: Final = 4
_META: Final = 8
_HOME: Final = 64
_ALL: Final = 127

_ID_BYTES: Final = 16
_NUMBER_DIGITS: Final = 5
"""Digits of the event's number in a place: enough for the events of one append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The label of a tagged event, which is stored in the place of its metadata.

    Attributes:
        number: number of the event within its append.
        others: tags of the event, without that of the stream.
        id: id that the caller chose; None if the store chose it.
        user: user of the event, in labels of earlier versions.
        page: index of the page with the event's body; None if the body is beside the label.
        home: named stream of the event, and its index there; None if it has none.
        meta: encoded metadata of the event.
    """

    number: int
    others: tuple[str, ...] = ()
    id: str | None = None
    user: str | None = None
    page: int | None = None
    home: tuple[str, int] | None = None
    meta: Encoded = EMPTY

    def encoded(self) -> Encoded:
        """Encode the label in its stored form."""
        out = Writer()
        parts = (
            (_ID, self.id is not None),
            (_ELSEWHERE, self.page is not None),
            (_META, self.meta != EMPTY),
            (_HOME, self.home is not None),
        )
        out.byte(sum(flag for flag, is_present in parts if is_present))
        out.number(self.number)
        out.number(len(self.others))
        for tag in self.others:
            out.text(tag)
        if self.id is not None:
            out.add(uuid.UUID(self.id).bytes)
        if self.page is not None:
            out.number(self.page)
        if self.home is not None:
            out.text(self.home[0])
            out.number(self.home[1])
        if self.meta != EMPTY:
            out.byte(self.meta.encoding)
            out.add(self.meta.data)
        return Encoded(DIRECT, out.written())


def read_label(encoded: Encoded) -> Label:
    """Decode a label that `Label.encoded` made; raise `CorruptData` if it is malformed."""
    if encoded.encoding != DIRECT:
        raise CorruptData("the label of a tagged event has an unexpected encoding")
    source = ByteReader(encoded.data)
    flags = source.byte()
    if flags & ~_ALL:
        raise CorruptData(f"the label has unknown flags {flags:#x}")
    label = Label(
        number=source.number(),
        others=tuple(source.text() for _ in range(source.number())),
        id=str(uuid.UUID(bytes=source.take(_ID_BYTES))) if flags & _ID else None,
        user=source.text() if flags & _USER else None,
        page=source.number() if flags & _ELSEWHERE else None,
        home=(source.text(), source.number()) if flags & _HOME else None,
        meta=Encoded(source.byte(), source.rest()) if flags & _META else EMPTY,
    )
    if not source.at_end:
        raise CorruptData("there are extra bytes after the label")
    return label


def event_id(stamp: bytes, label: Label) -> str:
    """Return an event's id: the caller's, or one derived from its append and its number in that."""
    if label.id is not None:
        return label.id
    digest = hashlib.sha256(stamp + label.number.to_bytes(4, "big")).digest()
    return str(uuid.UUID(bytes=digest[:_ID_BYTES], version=5))


def stamped_place(stamp: bytes, number: int) -> str:
    """Return an event's place: time of its append, digits of the append, and its number in that."""
    others = int.from_bytes(stamp[8:], "big") % 10 ** (RANDOM_DIGITS - _NUMBER_DIGITS)
    return f"{time_of(stamp):019d}{others:06d}{number:0{_NUMBER_DIGITS}d}"


def reserved_tags(types: Collection[str], *, everything: bool) -> frozenset[str]:
    """Return the reserved tags of these types, and of everything if wanted."""
    return frozenset(map(type_tag, types)) | ({EVERYTHING} if everything else set())


def stream_of(tag: str) -> str:
    """Return the name of a tag's stream."""
    return f"{TAG_STREAMS}{tag}"


def id_key(event_id: str) -> Key:
    """Return the primary key of the record of an id that a caller chose."""
    return {"p": text(f"{EVENT_IDS}{event_id}"), "i": number(0)}


def id_record(table: str, event_id: str, tag: str, index: int, beside: bytes = b"") -> Put:
    """Make the write of an event id's record, refused if there is one: an id is appended once.

    It keeps what went beside the event.
    """
    item = {**id_key(event_id), "s": text(stream_of(tag)), "n": number(index)}
    if beside:
        item["a"] = binary(beside)
    return Put(table=table, item=item, condition=Absent("i"))


def beside_of(item: Item) -> bytes:
    """Return the digest of the writes to a caller's tables in an id's record; empty if there were none."""
    return bytes(item["a"]["B"]) if "a" in item else b""


def read_id_record(item: Item) -> tuple[str, str, int]:
    """Decode an id's record: the id, and the stream and index of its event."""
    return item["p"]["S"].removeprefix(EVENT_IDS), item["s"]["S"], int(item["n"]["N"])
