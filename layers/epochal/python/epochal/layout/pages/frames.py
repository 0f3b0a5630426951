"""An append's events as one frame, and unfolds as one binary (FORMATS §8). This outlives the code.

    frame    encoding (1 byte)   stamp (16)   count   content
    unfolds  encoding (1 byte)   count   version   moment (8)   content

    encoding   0: the content as it is   2: under brotli   3: a frame's under a dictionary   each where that gains
    stamp      the append's id: its time (8 bytes, ticks, big-endian), then 8 bytes that tell appends apart
    moment     when the unfolds were written, as a stamp's time

What stands before the content is read without opening it: how many events a page holds, and whose they are. Whatever a
hostile item says, reading it ends in `CorruptData`, and takes no more memory than `MAX_CONTENT` allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from epochal.codec.bodies import BROTLI, DIRECT, MIN_GAIN, MIN_SIZE, TRAINED, Encoded, decode_inline, encode
from epochal.errors import CorruptData, UnknownEncoding
from epochal.layout.pages import contents
from epochal.layout.pages.values import ByteReader, Writer, number_at
from epochal.layout.stored import EncodedEvent, EncodedUnfold
from epochal.model.times import END, Ticks
from epochal.model.versions import MAX_VERSION

if TYPE_CHECKING:
    from epochal.codec.dictionaries import Dictionary

STAMP_BYTES: Final = 16
_TIME_BYTES: Final = 8

REFERRED: Final = 4
"""Encoding of unfolds that are on another page of the stream."""
_REFERRED: Final = bytes((REFERRED,))

_STAMPED: Final = 1 + STAMP_BYTES
"""Bytes of a frame up to the end of its stamp."""

DICTIONARY_BYTES: Final = 4
"""Of a dictionary's id."""

MAX_CONTENT: Final = 16 * 1024 * 1024
"""What inflates past this is taken for an attack; so larger contents are not compressed, and fit no item."""


def stamp_of(time: Ticks, rest: bytes) -> bytes:
    """A stamp; stamps are ordered as their times are. `rest` has 8 bytes."""
    return time.to_bytes(_TIME_BYTES, "big") + rest


def time_of(stamp: bytes) -> Ticks:
    """Its time. Raises `CorruptData` where it has none."""
    time = int.from_bytes(stamp[:_TIME_BYTES], "big")
    if len(stamp) != STAMP_BYTES or time >= END:
        raise CorruptData("a stamp has no time")
    return Ticks(time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """An append's events, packed.

    Attributes:
        count: how many; at least one.
        content: all of them.
    """

    stamp: bytes
    count: int
    content: Encoded

    def binary(self) -> bytes:
        """As stored."""
        out = Writer()
        out.byte(self.content.encoding)
        out.add(self.stamp)
        out.number(self.count)
        out.add(self.content.data)
        return out.written()

    @property
    def time(self) -> Ticks:
        """Of its stamp."""
        return Ticks(int.from_bytes(self.stamp[:_TIME_BYTES], "big"))

    @property
    def dictionary(self) -> bytes | None:
        """The id of what packed it, where that is a dictionary."""
        return self.content.data[:DICTIONARY_BYTES] if self.content.encoding == TRAINED else None

    def events(self) -> tuple[EncodedEvent, ...]:
        """Open it. Raises `CorruptData`; `UnknownDictionary`, where its own has not been loaded."""
        return contents.read_events(_opened(self.content), self.count, self.stamp, self.time)


def pack_events(
    events: Sequence[EncodedEvent],
    moment: Ticks,
    *,
    compress: bool = True,
    dictionary: Dictionary | None = None,
) -> Encoded:
    """A frame's content. Events whose time is `moment`, the writer's clock, will have that of the stamp.

    Raises:
        TooLarge: more events than one append may have.
    """
    content = contents.write_events(events, moment)
    if dictionary is not None and compress and MIN_SIZE <= len(content) <= MAX_CONTENT:
        packed = dictionary.pack(content)
        if packed is not None and len(packed) < len(content) - MIN_GAIN:
            return Encoded(TRAINED, packed)
    return _packed(content, compress=compress)


def read_frame(data: bytes) -> Frame:
    """A frame, its content unopened. Raises `CorruptData`."""
    count, at = number_at(data, _STAMPED)
    stamp = data[1:_STAMPED]
    time_of(stamp)
    if not 0 < count <= contents.MAX_EVENTS:
        raise CorruptData(f"a frame of {count} events")
    content = Encoded(data[0], data[at:])
    if content.encoding == TRAINED:
        if len(content.data) < DICTIONARY_BYTES:
            raise CorruptData("a frame names its dictionary in part")
    elif content.encoding not in (DIRECT, BROTLI):
        raise UnknownEncoding(content.encoding)
    return Frame(stamp=stamp, count=count, content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfolds:
    """What one write left of unfolds, packed.

    Attributes:
        version: the stream's, that they were made from.
        moment: when.
    """

    version: int
    moment: Ticks
    count: int
    content: Encoded

    def binary(self) -> bytes:
        """As stored."""
        out = Writer()
        out.byte(self.content.encoding)
        out.number(self.count)
        out.number(self.version)
        out.add(self.moment.to_bytes(_TIME_BYTES, "big"))
        out.add(self.content.data)
        return out.written()

    def unfolds(self) -> tuple[EncodedUnfold, ...]:
        """Open them. Raises `CorruptData`."""
        return contents.read_unfolds(_opened(self.content), self.count, self.version, self.moment)


def pack_unfolds(unfolds: Sequence[EncodedUnfold], moment: Ticks, *, compress: bool = True) -> Encoded:
    """Content of the unfolds of a write at `moment`. Raises as `pack_events` does."""
    return _packed(contents.write_unfolds(unfolds, moment), compress=compress)


def read_unfolds(data: bytes) -> Unfolds:
    """Unfolds, their content unopened. Raises `CorruptData`."""
    source = ByteReader(data)
    encoding, count, version = source.byte(), source.number(), source.number()
    moment = int.from_bytes(source.take(_TIME_BYTES), "big")
    if not 0 < count <= contents.MAX_EVENTS or version > MAX_VERSION or moment >= END:
        raise CorruptData("unfolds of an impossible count, version or moment")
    return Unfolds(version=version, moment=Ticks(moment), count=count, content=_content(encoding, source))


def refer_to(index: int) -> bytes:
    """What stands for unfolds that are on the page that begins at `index`."""
    out = Writer()
    out.byte(REFERRED)
    out.number(index)
    return out.written()


def referred(data: bytes) -> int | None:
    """The index of the page that unfolds are on, if `data` says so. Raises `CorruptData`."""
    if data[:1] != _REFERRED:
        return None
    index, at = number_at(data, 1)
    if at != len(data):
        raise CorruptData("something follows what says where unfolds are")
    return index


def _packed(content: bytes, *, compress: bool) -> Encoded:
    return encode(content, compress=compress and len(content) <= MAX_CONTENT)


def _content(encoding: int, source: ByteReader) -> Encoded:
    if encoding not in (DIRECT, BROTLI):
        raise UnknownEncoding(encoding)
    return Encoded(encoding, source.rest())


def _opened(content: Encoded) -> bytes:
    if content.encoding == TRAINED:
        return _unpacks()(content.data, MAX_CONTENT)
    return decode_inline(content, limit=MAX_CONTENT)


@cache
def _unpacks() -> Callable[[bytes, int], bytes]:
    """Loaded when first needed, since most stores have no dictionaries, and looked for once."""
    from epochal.codec import dictionaries  # noqa: PLC0415

    return dictionaries.unpack
