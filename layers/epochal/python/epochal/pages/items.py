"""Pages to items and back. This outlives the code: see FORMATS §8 before touching a name.

The frames of a page stay packed until someone wants their events. What the item says besides must fit together, or it
is no page: an item that contradicts itself is corrupt, and is never read half.

The etag of a page: what a writer that holds nothing else must know to append (FORMATS §8).

index (4 bytes)   full (1 bit, then 31 of 0)   time of the latest stamp (8 bytes)      as 32 hex digits

A page's events as a span: a frame is opened when the first of its events is wanted, and once.
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
from epochal.model.versions import MAX_VERSION, Token
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
"""Streams of events as chains of pages. `ttl` is set on idempotency records only."""

ARCHIVE: Final = TableSpec(kind="streams-archive", partition=STREAMS.partition, sort=STREAMS.sort)
"""Streams as copied before they were pruned. Those of other layouts have their own: names may be the same."""


REMOVING: Final = bytes.fromhex("dead")
"""What `w` ends with where the write took events away, so that the feed knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, as it was read.

    Attributes:
        index: of its first event (`i`).
        version: index of the next event after it (`n`); the stream's version, on the last page.
        frames: its events that are still there (`f`), the last ones of those that it was given.
        unfolds: those that its latest write left (`u`), packed, or which page has them; empty for none.
        full: no append extends it (`x`).
        deleted: a tombstone (`z`).
        low_water: everything below is pruned (`l`); 0 where it does not say.
        stamp: of its latest write where that added no frame (`w`).
        table: that it was read from.
        before: pages of the stream before it that were read on the way to it, in a row.
        found: the unfolds that another page has, once they are read there.
        count: events that it holds.
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
        """Count once what every reader asks for."""
        object.__setattr__(self, "count", sum([frame.count for frame in self.frames]))

    @property
    def size(self) -> int:
        """Bytes of the whole item."""
        return item_size(write_page(self))

    @property
    def base(self) -> int:
        """Index of the first event that it holds; its version, where it holds none."""
        return self.version - self.count

    @property
    def unfolds_at(self) -> int | None:
        """Index of the page that has its unfolds, where that is another."""
        return referred(self.unfolds)

    @property
    def span(self) -> PageSpan:
        """Those of them that are not pruned."""
        return _span(self, min(max(self.base, self.low_water), self.version), self.version, {})

    @property
    def latest(self) -> bytes:
        """Stamp of its latest write."""
        return self.stamp if self.stamp is not None else self.frames[-1].stamp

    @property
    def removing(self) -> bool:
        """Whether its latest write took events or unfolds away. Of other writes one in 65,536 looks so, and says again
        what is known.
        """
        return self.stamp is not None and self.stamp.endswith(REMOVING)

    @property
    def time(self) -> Ticks:
        """Of its latest stamp (`r`): above that of every earlier write, so that it names the page as it is."""
        return time_of(self.latest)

    @property
    def state(self) -> PageState:
        """What its etag says. No append follows a tombstone, so a token of one must not say that it is full."""
        return PageState(index=self.index, full=self.full and not self.deleted, time=self.time)

    @property
    def etag(self) -> str:
        """Of its latest write."""
        return self.state.etag()

    def token(self) -> Token:
        """What makes an append on exactly this page one request. Its size is without `w`, which an append removes."""
        return Token(
            version=self.version,
            etag=self.etag,
            size=self.size - stamp_size(self.stamp),
            carried=frames_size(self.frames),
            unfolds=unfolds_size(self.unfolds),
            events=self.count,
            appends=len(self.frames),
            of=origin(self.table, self.stream),
            low_water=self.low_water,
        )

    def read_frame(self, position: int) -> tuple[EncodedEvent, ...]:
        """The events of a frame. Raises `CorruptData`."""
        try:
            return self.frames[position].events()
        except CorruptData as error:
            raise CorruptData(f"{self.stream}: page {self.index}, frame {position}: {error}") from error

    def read_unfolds(self) -> tuple[EncodedUnfold, ...]:
        """Its unfolds. Raises `CorruptData`."""
        try:
            data = self.found or self.unfolds
            return read_unfolds(data).unfolds() if data else ()
        except CorruptData as error:
            raise CorruptData(f"{self.stream}: page {self.index}, unfolds: {error}") from error


def origin(table: str, stream: str) -> str:
    """The table and the stream that a token belongs to, as one text."""
    place = table.place if isinstance(table, PlacedName) else ""
    return f"{place}\0{table}\0{stream}"


def page_key(stream: str, index: int) -> Key:
    """Primary key of the page whose first event has index `index`."""
    return {"p": text(stream), "i": number(index)}


def is_page(item: Item) -> bool:
    """Whether an item is a page: nothing else that has such keys counts its writes."""
    return item.keys() >= {"p", "i", "n", "r"}


def read_page(item: Item, table: str = "", before: tuple[Page, ...] = ()) -> Page:
    """Decode a page. Raises `CorruptData` where it is none, or contradicts itself."""
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
    """The item of a page; the inverse of `read_page`."""
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
    """`f`, or what an append adds to it."""
    return sequence(binary(frame.binary()) for frame in frames)


def frames_size(frames: tuple[Frame, ...]) -> int:
    """Bytes that frames take in an item."""
    return attribute_size("f", write_frames(frames)) if frames else 0


def unfolds_size(unfolds: bytes) -> int:
    """Bytes that unfolds take in an item."""
    return attribute_size("u", binary(unfolds)) if unfolds else 0


def stamp_size(stamp: bytes | None) -> int:
    """Bytes that `w` takes in an item."""
    return 0 if stamp is None else attribute_size("w", binary(stamp))


def _read(item: Item, table: str, before: tuple[Page, ...]) -> Page:
    frames = tuple(
        [read_frame(each["B"] if type(each["B"]) is bytes else _bytes(each)) for each in read_list(item, "f")]
    )
    return _page(
        _text(item, "p"), int(item["i"]["N"]), int(item["n"]["N"]), frames,
        _unfolds(item) if "u" in item else b"", "x" in item and _flag(item, "x"), "z" in item and _flag(item, "z"),
        _number(item, "l") if "l" in item else 0, _bytes(item["w"]) if "w" in item else None,
        table, before, b"", sum([frame.count for frame in frames]),
    )  # fmt: skip


_page: Final = fast_constructor(Page)


def _check(page: Page) -> None:
    """Raise `CorruptData` for what no writer of this layout leaves."""
    if not 0 <= page.index <= page.version <= MAX_VERSION:
        raise CorruptData("i and n that no page has")
    base = page.base
    if base < page.index:
        raise CorruptData("more events in f than from i to n")
    if page.index < base < page.version and page.low_water < base:
        raise CorruptData("fewer events in f than from i to n, and l does not say why")
    if page.low_water < 0:
        raise CorruptData("l below 0")
    # The first page may say of the whole stream what is pruned; every other speaks for itself.
    if page.index and page.low_water > page.version:
        raise CorruptData("l beyond n")
    if page.deleted and not page.full:
        raise CorruptData("a tombstone that is not full")
    if page.full and not page.deleted and page.index == page.version:
        raise CorruptData("full, though it has had no events")


def _check_stamps(page: Page, revision: int) -> None:
    """Check that the times of its writes increase; those of its frames were read with them."""
    times = [frame[0][:TIME_BYTES] for frame in page.frames]
    if page.stamp is not None:
        if len(page.stamp) != STAMP_BYTES:
            raise CorruptData("w is no stamp")
        times.append(page.stamp[:TIME_BYTES])
    if not times:
        raise CorruptData("neither f nor w")
    if any(map(operator.ge, times, times[1:])):
        raise CorruptData("stamps that do not increase")
    if revision != page.time:
        raise CorruptData("r is not the time of its latest stamp")


def _unfolds(item: Item) -> bytes:
    data = _bytes(item["u"])
    offset = referred(data)
    if offset is not None:
        if offset >= _number(item, "i"):
            raise CorruptData("unfolds on a page that is not before it")
    elif read_unfolds(data).version > _number(item, "n"):
        raise CorruptData("unfolds of a version beyond n")
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
        raise CorruptData(f"{name} is 1 or absent")
    return True


def _bytes(value: AttributeValue) -> bytes:
    data: Any = value["B"]
    if isinstance(data, bytes):
        return data
    if isinstance(data, str | int) or data is None:
        raise TypeError("bytes of another kind")
    return bytes(data)


_FULL: Final = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """Which page was written last, and what its latest write left.

    Attributes:
        index: of the page's first event.
        time: of its latest stamp. The next one is above it, so page and time name one state.
    """

    index: int
    full: bool
    time: Ticks

    def etag(self) -> str:
        """32 hex digits."""
        return f"{self.index:08x}{_FULL if self.full else 0:08x}{self.time:016x}"


def state_of(etag: str) -> PageState | None:
    """The inverse; None for what is no page's etag. An etag comes from outside, and what it says may be false."""
    try:
        index, second, time = int(etag[:8], 16), int(etag[8:16], 16), int(etag[16:], 16)
    except ValueError:
        return None
    if index > MAX_VERSION or second not in (0, _FULL) or time >= END:
        return None
    return PageState(index=index, full=bool(second), time=Ticks(time))


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Events `base` to `next - 1` of a page that holds them."""

    page: Page
    base: int
    next: int
    _opened: dict[int, EncodedEvent] = field(default_factory=dict, compare=False, repr=False)
    """What all spans of a page have opened of it, by index. A frame that may be large is kept alone: a few bytes of a
    page could otherwise hold all of a reader's memory.
    """

    @property
    def types(self) -> Sequence[str]:
        """Of each, its type. Raises `CorruptData`."""
        return tuple(self.read(offset).type for offset in range(self.next - self.base))

    def since(self, index: int) -> PageSpan:
        """Without the events below `index`."""
        if index <= self.base:
            return self
        return PageSpan(self.page, min(max(self.base, index), self.next), self.next, self._opened)

    def before(self, index: int) -> PageSpan:
        """Without the events at or above `index`."""
        if index >= self.next:
            return self
        return PageSpan(self.page, self.base, max(min(self.next, index), self.base), self._opened)

    def read(self, offset: int) -> EncodedEvent:
        """The event at `base + offset`. Raises `CorruptData`."""
        page, index = self.page, self.base + offset
        place = index - page.version + page.count
        if page.count == len(page.frames) and place >= 0:
            # A frame for each event, as most writers append: nothing is opened twice, so nothing need be kept.
            return page.read_frame(place)[0]
        event = self._opened.get(index)
        return self._open(index) if event is None else event

    def recorded(self, stream: str, offsets: range) -> list[Recorded] | None:
        """`PlainSpan.recorded`."""
        page, first = self.page, self.base - self.page.base
        if page.count != len(page.frames) or first < 0:
            return None
        indices = range(self.base + offsets.start, self.base + offsets.stop, offsets.step)
        return plain_events(stream, indices, map(page.frames[first:].__getitem__, offsets))

    def holds_large(self, offsets: range) -> bool:
        """`PlainSpan.holds_large`."""
        page, first = self.page, self.base - self.page.base
        if page.count != len(page.frames) or first < 0:
            return False
        frames = map(page.frames[first:].__getitem__, offsets)
        return any(may_be_large(Encoded(frame.encoding, frame.data)) for frame in frames)

    def type(self, offset: int) -> str:
        """Its type; empty where the frame that holds it is broken."""
        event = self._found(offset)
        return "" if event is None else event.type

    def timestamp(self, offset: int) -> str:
        """When it happened; empty where the frame that holds it is broken."""
        event = self._found(offset)
        return "" if event is None else event.timestamp

    def _found(self, offset: int) -> EncodedEvent | None:
        try:
            return self.read(offset)
        except CorruptData:
            return None

    def _open(self, index: int) -> EncodedEvent:
        """Open the frame that holds event `index`; the event. Raises `IndexError`."""
        page, end = self.page, self.page.base
        for place, frame in enumerate(page.frames):
            first, end = end, end + frame.count
            if first <= index < end:
                if may_be_large(Encoded(frame.encoding, frame.data)):
                    self._opened.clear()
                self._opened.update(enumerate(page.read_frame(place), first))
                return self._opened[index]
        raise IndexError(index)


_span: Final = fast_constructor(PageSpan)
