"""Pages as items of the table, with their etags and spans. This outlives the code: read FORMATS §8 before a change.

The frames of a page stay encoded until a caller reads their events. All other attributes are checked against each
other: an item that contradicts itself is corrupt, and no part of it is used.

The etag of a page is all that a writer must know of the page to append to it (FORMATS §8):

    index (4 bytes)   full (1 bit, then 31 of 0)   time of the latest stamp (8 bytes)      as 32 hex digits

A `PageSpan` is a range of a page's events. It decodes a frame when the first of the frame's events is read.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final

from epochal.codec.bodies import Encoded, may_be_large
from epochal.errors import CorruptData
from epochal.layout.streams import EncodedEvent, EncodedUnfold
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Recorded, fast_constructor
from epochal.model.moments import END, Ticks
from epochal.model.tokens import MAX_VERSION, Token
from epochal.pages.frames import (
    STAMP_BYTES,
    TIME_BYTES,
    Frame,
    plain_events,
    read_frame,
    read_unfolds,
    referred,
    time_of,
)
from epochal.plan.tables import KeyAttribute, PlacedName, TableSpec
from epochal.plan.values import (
    AttributeValue,
    Item,
    Key,
    attribute_size,
    binary,
    item_size,
    number,
    read_list,
    sequence,
    text,
)

STREAMS: Final = TableSpec(
    kind="streams",
    help="Table of streams that are stored as pages",
    partition=KeyAttribute(name="p", type="S"),
    sort=KeyAttribute(name="i", type="N"),
    ttl="ttl",
    stream=True,
)
"""Table of streams, each a chain of pages. Only records of idempotency keys have `ttl`."""

ARCHIVE: Final = TableSpec(kind="streams-archive", partition=STREAMS.partition, sort=STREAMS.sort)
"""Table of events that were copied before they were pruned. Other layouts have tables of their own, since streams of
two layouts may have the same name."""


REMOVING: Final = bytes.fromhex("dead")
"""Last bytes of `w` after a write that removed events, from which the feed recognizes such a write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a stream, with the contents of its item when it was read.

    Attributes:
        stream: name of the stream (`p`).
        index: index of the page's first event (`i`).
        version: index after the page's last event (`n`); on the last page this is the stream's version.
        frames: frames of the page's events (`f`), without those that were pruned.
        unfolds: encoded unfolds (`u`), or a reference to the page that has them; empty if there are none.
        full: whether no append may extend the page (`x`).
        deleted: whether the page is a tombstone (`z`).
        low_water: index below which all events are pruned (`l`); 0 if the item has none.
        stamp: stamp of the latest write, if that added no frame (`w`); None otherwise.
        table: table that the page was read from.
        before: earlier pages of the stream that were read together with this one, in order and without gaps.
        found: encoded unfolds from the page that `unfolds` refers to, once they have been read there.
        count: number of events in `frames`.
    """

    stream: str
    index: int
    version: int
    frames: tuple[Frame, ...] = ()
    unfolds: bytes = b""
    full: bool = False
    deleted: bool = False
    low_water: int = 0
    stamp: bytes | None = None
    table: str = ""
    before: tuple[Page, ...] = field(default=(), compare=False, repr=False)
    found: bytes = field(default=b"", compare=False, repr=False)
    count: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Set `count`, which every reader needs."""
        object.__setattr__(self, "count", sum([frame.count for frame in self.frames]))

    @property
    def size(self) -> int:
        """Size of the whole item in bytes."""
        return item_size(write_page(self))

    @property
    def base(self) -> int:
        """Index of the first event that the page still has; its version if it has none."""
        return self.version - self.count

    @property
    def unfolds_at(self) -> int | None:
        """Index of the page that `unfolds` refers to; None if it is no reference."""
        return referred(self.unfolds)

    @property
    def span(self) -> PageSpan:
        """Span of the page's events that are not pruned."""
        return _span(self, min(max(self.base, self.low_water), self.version), self.version, {})

    @property
    def earlier_spans(self) -> tuple[PageSpan, ...]:
        """Spans of the small events that came with this page and precede its own, without gaps, oldest first."""
        spans, first = list[PageSpan](), max(self.base, self.low_water)
        if first != self.index:
            return ()
        for page in reversed(self.before):
            span = page.span.since(self.low_water)
            if page.version != first or span.base == first or any(map(_may_be_large, page.frames)):
                break
            spans.append(span)
            first = span.base
            if first != page.index:
                break
        return tuple(reversed(spans))

    @property
    def latest(self) -> bytes:
        """Stamp of the latest write to the page."""
        return self.stamp if self.stamp is not None else self.frames[-1].stamp

    @property
    def removing(self) -> bool:
        """Whether the latest write removed events or unfolds.

        One in 65,536 of the other writes without events looks like a removal; the feed then repeats what is known.
        """
        return self.stamp is not None and self.stamp.endswith(REMOVING)

    @property
    def time(self) -> Ticks:
        """Time of the latest stamp (`r`), which increases with each write, so it identifies the page's state."""
        return time_of(self.latest)

    @property
    def state(self) -> PageState:
        """State of the page that its etag encodes.

        The state of a tombstone is not full: a token of a full page would let an append begin the next page.
        """
        return PageState(index=self.index, full=self.full and not self.deleted, time=self.time)

    @property
    def etag(self) -> str:
        """Etag of the page, which each write changes."""
        return self.state.etag()

    def token(self) -> Token:
        """Make the token with which an append to exactly this page takes one request.

        Its size is without `w`, which an append removes.
        """
        item = write_page(self)
        return Token(
            version=self.version,
            etag=self.etag,
            size=item_size(item) - stamp_size(self.stamp),
            carried=frames_size(item["f"]) if self.frames else 0,
            unfolds=unfolds_size(self.unfolds),
            events=self.count,
            appends=len(self.frames),
            of=origin(self.table, self.stream),
            low_water=self.low_water,
        )

    def read_frame(self, position: int) -> tuple[EncodedEvent, ...]:
        """Decode the events of the frame at `position`; raise `CorruptData` if it is malformed."""
        try:
            return self.frames[position].events()
        except CorruptData as error:
            raise CorruptData(f"{self.stream}: page {self.index}, frame {position}: {error}") from error

    def read_unfolds(self) -> tuple[EncodedUnfold, ...]:
        """Decode the unfolds of the page; raise `CorruptData` if they are malformed."""
        try:
            data = self.found or self.unfolds
            return read_unfolds(data).unfolds() if data else ()
        except CorruptData as error:
            raise CorruptData(f"{self.stream}: page {self.index}, unfolds: {error}") from error


def _may_be_large(frame: Frame) -> bool:
    """Whether the events of a frame may decode to more than `ONE_BLOCK` bytes."""
    return may_be_large(Encoded(frame.encoding, frame.data))


def origin(table: str, stream: str) -> str:
    """Return the text that identifies the table and the stream to which a token belongs."""
    place = table.place if isinstance(table, PlacedName) else ""
    return f"{place}\0{table}\0{stream}"


def page_key(stream: str, index: int) -> Key:
    """Return the primary key of the page whose first event has index `index`."""
    return {"p": text(stream), "i": number(index)}


def is_page(item: Item) -> bool:
    """Whether an item of the table is a page: no other kind of item has both `n` and `r`."""
    return item.keys() >= {"p", "i", "n", "r"}


def read_page(item: Item, table: str = "", before: tuple[Page, ...] = ()) -> Page:
    """Decode a page from its item; raise `CorruptData` if the item is no page or contradicts itself."""
    try:
        page = _read(item, table, before)
        _check(page)
        _check_stamps(page, _number(item, "r"))
    except CorruptData as error:
        raise CorruptData(f"{_shown(item, 'p')}: page {_shown(item, 'i')}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        shown = f"{_shown(item, 'p')}: item {_shown(item, 'i')}"
        raise CorruptData(f"{shown} is not of the pages layout: {error!r}") from error
    return page


def write_page(page: Page) -> Item:
    """Encode a page as its item, from which `read_page` decodes it."""
    item: dict[str, AttributeValue] = {
        **page_key(page.stream, page.index),
        "n": number(page.version),
        "r": number(page.time),
    }
    if page.frames:
        item["f"] = write_frames(page.frames)
    if page.unfolds:
        item["u"] = binary(page.unfolds)
    if page.full:
        item["x"] = number(1)
    if page.deleted:
        item["z"] = number(1)
    if page.low_water:
        item["l"] = number(page.low_water)
    if page.stamp is not None:
        item["w"] = binary(page.stamp)
    return item


def write_frames(frames: tuple[Frame, ...]) -> AttributeValue:
    """Encode frames as the value of `f`, or as the list that an append adds to it."""
    return sequence(binary(frame.binary()) for frame in frames)


def frames_size(frames: AttributeValue) -> int:
    """Compute the bytes that a list of encoded frames takes in an item; 0 for an empty one."""
    return attribute_size("f", frames) if frames["L"] else 0


def unfolds_size(unfolds: bytes) -> int:
    """Compute the bytes that encoded unfolds take in an item."""
    return attribute_size("u", binary(unfolds)) if unfolds else 0


def stamp_size(stamp: bytes | None) -> int:
    """Compute the bytes that a stamp takes in an item as `w`; 0 for None."""
    return 0 if stamp is None else attribute_size("w", binary(stamp))


def _read(item: Item, table: str, before: tuple[Page, ...]) -> Page:
    """Build a page from an item's attributes; `read_page` then checks whether these fit each other."""
    frames = tuple(
        [
            read_frame(member["B"] if type(member["B"]) is bytes else _bytes(member))
            for member in read_list(item, "f")
        ]
    )
    return _page(
        _text(item, "p"), int(item["i"]["N"]), int(item["n"]["N"]), frames,
        _unfolds(item) if "u" in item else b"", "x" in item and _flag(item, "x"), "z" in item and _flag(item, "z"),
        _number(item, "l") if "l" in item else 0, _bytes(item["w"]) if "w" in item else None,
        table, before, b"", sum([frame.count for frame in frames]),
    )  # fmt: skip


_page: Final = fast_constructor(Page)


def _check(page: Page) -> None:
    """Raise `CorruptData` if the attributes of a page contradict each other."""
    if not 0 <= page.index <= page.version <= MAX_VERSION:
        raise CorruptData("i or n is out of range")
    base = page.base
    if base < page.index:
        raise CorruptData("f has more events than i and n allow")
    if page.index < base < page.version and page.low_water < base:
        raise CorruptData("f lacks events between i and n that l does not mark as pruned")
    if page.low_water < 0:
        raise CorruptData("l below 0")
    # Only the low-water mark of the first page may be of the whole stream; that of any other is of the page itself.
    if page.index and page.low_water > page.version:
        raise CorruptData("l beyond n")
    if page.deleted and not page.full:
        raise CorruptData("the page is a tombstone (z), but not full (x)")
    if page.full and not page.deleted and page.index == page.version:
        raise CorruptData("the page is full (x), but has never had an event")


def _check_stamps(page: Page, revision: int) -> None:
    """Raise `CorruptData` unless the stamps of a page increase, and `r` is the time of the latest."""
    times = [frame[0][:TIME_BYTES] for frame in page.frames]
    if page.stamp is not None:
        if len(page.stamp) != STAMP_BYTES:
            raise CorruptData(f"w has {len(page.stamp)} bytes, not {STAMP_BYTES}")
        times.append(page.stamp[:TIME_BYTES])
    if not times:
        raise CorruptData("f has no frames, and w is missing")
    if any(map(operator.ge, times, times[1:])):
        raise CorruptData("the stamps do not increase")
    if revision != page.time:
        raise CorruptData("r is not the time of the latest stamp")


def _unfolds(item: Item) -> bytes:
    """Return the unfolds in a page's item; raise `CorruptData` if they cannot be that page's."""
    data = _bytes(item["u"])
    offset = referred(data)
    if offset is not None:
        if offset >= _number(item, "i"):
            raise CorruptData("u refers to unfolds on a page that does not precede this one")
    elif read_unfolds(data).version > _number(item, "n"):
        raise CorruptData("the version of the unfolds is greater than n")
    return data


def _shown(item: Item, name: str) -> str:
    value = item.get(name)
    return str(next(iter(value.values()), "?")) if isinstance(value, Mapping) else "?"


def _text(item: Item, name: str) -> str:
    text: Any = item[name]["S"]
    if not isinstance(text, str):
        raise TypeError(f"{name} is no text")
    return text


def _number(item: Item, name: str) -> int:
    return int(item[name]["N"])


def _flag(item: Item, name: str) -> bool:
    if _number(item, name) != 1:
        raise CorruptData(f"{name} must be 1 or absent")
    return True


def _bytes(value: AttributeValue) -> bytes:
    data: Any = value["B"]
    if isinstance(data, bytes):
        return data
    if isinstance(data, str | int) or data is None:
        raise TypeError("a binary attribute has a value that is not bytes")
    return bytes(data)


_FULL: Final = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """The state of a page after a write, which its etag encodes.

    Attributes:
        index: index of the page's first event.
        full: whether no append may extend the page.
        time: time of the latest stamp. Each write increases it, so index and time identify one state.
    """

    index: int
    full: bool
    time: Ticks

    def etag(self) -> str:
        """Encode the state as an etag of 32 hex digits."""
        return f"{self.index:08x}{_FULL if self.full else 0:08x}{self.time:016x}"


def state_of(etag: str) -> PageState | None:
    """Decode the page state in an etag; None if the etag is not of a page.

    An etag may come from outside, so the state may be false.
    """
    try:
        index, second, time = int(etag[:8], 16), int(etag[8:16], 16), int(etag[16:], 16)
    except ValueError:
        return None
    if index > MAX_VERSION or second not in (0, _FULL) or time >= END:
        return None
    return PageState(index=index, full=bool(second), time=Ticks(time))


@dataclass(frozen=True, slots=True)
class PageSpan:
    """A range of a page's events: those with the indices `base` to `next - 1`."""

    page: Page
    base: int
    next: int
    _opened: dict[int, EncodedEvent] = field(default_factory=dict, compare=False, repr=False)
    """Decoded events by index, shared by all spans of a page. The events of a frame that may be large are kept alone:
    otherwise, a few bytes of a page could fill the reader's memory.
    """

    @property
    def types(self) -> Sequence[str]:
        """Types of the events in order. Raises `CorruptData` if a frame is malformed."""
        return tuple(self.read(offset).type for offset in range(self.next - self.base))

    def since(self, index: int) -> PageSpan:
        """Return the span without the events below `index`."""
        if index <= self.base:
            return self
        return PageSpan(self.page, min(max(self.base, index), self.next), self.next, self._opened)

    def before(self, index: int) -> PageSpan:
        """Return the span without the events at or above `index`."""
        if index >= self.next:
            return self
        return PageSpan(self.page, self.base, max(min(self.next, index), self.base), self._opened)

    def read(self, offset: int) -> EncodedEvent:
        """Decode the event at `base + offset`; raise `CorruptData` if its frame is malformed."""
        page, index = self.page, self.base + offset
        place = index - page.version + page.count
        if page.count == len(page.frames) and place >= 0:
            # Each event has a frame of its own, as of most writers, so no decoded frame need be kept.
            return page.read_frame(place)[0]
        event = self._opened.get(index)
        return self._open(index) if event is None else event

    def recorded(self, stream: str, offsets: range) -> list[Recorded] | None:
        """Decode the events at `offsets`, if each is plain and has a frame of its own; otherwise None.

        This is `PlainSpan.recorded`.
        """
        page, first = self.page, self.base - self.page.base
        if page.count != len(page.frames) or first < 0:
            return None
        indices = range(self.base + offsets.start, self.base + offsets.stop, offsets.step)
        return plain_events(stream, indices, map(page.frames[first:].__getitem__, offsets))

    def holds_large(self, offsets: range) -> bool:
        """Return whether an event at `offsets` may be large; False unless each event has a frame of its own.

        This is `PlainSpan.holds_large`.
        """
        page, first = self.page, self.base - self.page.base
        if page.count != len(page.frames) or first < 0:
            return False
        frames = map(page.frames[first:].__getitem__, offsets)
        return any(map(_may_be_large, frames))

    def type(self, offset: int) -> str:
        """Return the type of the event at `base + offset`; empty if its frame is malformed."""
        event = self._found(offset)
        return "" if event is None else event.type

    def timestamp(self, offset: int) -> str:
        """Return the timestamp of the event at `base + offset`; empty if its frame is malformed."""
        event = self._found(offset)
        return "" if event is None else event.timestamp

    def _found(self, offset: int) -> EncodedEvent | None:
        try:
            return self.read(offset)
        except CorruptData:
            return None

    def _open(self, index: int) -> EncodedEvent:
        """Decode the frame with event `index` and return the event; raise `IndexError` if no frame has it."""
        page, end = self.page, self.page.base
        for place, frame in enumerate(page.frames):
            first, end = end, end + frame.count
            if first <= index < end:
                if _may_be_large(frame):
                    self._opened.clear()
                self._opened.update(enumerate(page.read_frame(place), first))
                return self._opened[index]
        raise IndexError(index)


_span: Final = fast_constructor(PageSpan)
