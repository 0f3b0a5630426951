"""An append's events as one frame, and unfolds as one binary (FORMATS §8). This outlives the code.

    frame    encoding (1 byte)   stamp (16)   count   content
    unfolds  encoding (1 byte)   count   version   moment (8)   content

    encoding   0: the content is uncompressed   2: it is compressed with brotli, if that makes it smaller
    stamp      the append's id: its time (8 bytes, ticks, big-endian), then 8 bytes that tell appends apart
    moment     time at which the unfolds were written, in the form of a stamp's time

The fields before the content are read without decompressing it: they tell how many events a page holds, and which
appends wrote them. Reading a malicious item raises `CorruptData`, and takes no more memory than `MAX_CONTENT` allows.

The content consists of the events of a frame, or of the unfolds in `u` (FORMATS §8). Each event or unfold is a byte of
flags, followed by the fields that the flags announce, in the order of the flags' bits. The bytes depend neither on the
index of the events nor on the time of the append, so a retry does not encode the events again.

A timestamp is left out if it is the moment of the write, which is stored once beside the content. Any other timestamp
is written as its distance from the one before it; the first one as its distance from 1970.

Numbers, texts and bytes have exactly one encoding each (FORMATS §8). A number is written in groups of seven bits, the
lowest first. Each byte except the last has its high bit set, and no byte is written that adds nothing. A signed number
is doubled first; a negative one becomes twice its absolute value, less one. Texts and bytes are preceded by their
length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from epochal.codec.bodies import BROTLI, DIRECT, EMPTY, ONE_BLOCK, Encoded, encode, unbrotli
from epochal.errors import CorruptData, TooLarge, UnknownEncoding
from epochal.layout.streams import EncodedEvent, EncodedUnfold
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import recorded
from epochal.model.moments import END, Ticks, format_ticks, from_unix_nanoseconds, parse_time
from epochal.model.tokens import MAX_VERSION

if TYPE_CHECKING:
    from epochal.model.events import Recorded


STAMP_BYTES: Final = 16
TIME_BYTES: Final = 8

REFERRED: Final = 4
"""Encoding of a reference to unfolds on another page of the stream."""
_REFERRED: Final = bytes((REFERRED,))

_ENCODINGS: Final = (DIRECT, BROTLI)

_tuple: Final = tuple.__new__
"""Constructor of named tuples that takes half of the time: a replay makes three for each event."""

_STAMPED: Final = 1 + STAMP_BYTES
"""Bytes of a frame up to the end of its stamp."""

MAX_CONTENT: Final = 16 * 1024 * 1024
"""Largest bytes of a content after decompression. A larger one is taken for an attack, so none is ever compressed."""


def stamp_of(time: Ticks, rest: bytes) -> bytes:
    """Make a stamp from a time and 8 further bytes; stamps are ordered by their times."""
    return time.to_bytes(TIME_BYTES, "big") + rest


_NO_TIME: Final = END.to_bytes(TIME_BYTES, "big")
_ticks: Final[Callable[[bytes], tuple[Ticks]]] = Struct(">Q").unpack_from


def time_of(stamp: bytes) -> Ticks:
    """Return the time of a stamp; raise `CorruptData` if the stamp is malformed."""
    if len(stamp) != STAMP_BYTES or stamp >= _NO_TIME:
        raise CorruptData("a stamp is malformed, or its time is out of range")
    return _ticks(stamp)[0]


def stamp_in(data: bytes) -> bytes:
    """Return the stamp of a frame as it is stored, without reading the rest."""
    return bytes(data[1:_STAMPED])


class Frame(NamedTuple):
    """The events of one append in their stored form. A tuple for the reason that `EncodedEvent` is one.

    Attributes:
        stamp: id of the append, which begins with its time.
        count: number of events; at least one.
        encoding, data: the content, with the fields of an `Encoded`, which would be a second tuple for each event.
    """

    stamp: bytes
    count: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    encoding: int
    data: bytes

    def binary(self) -> bytes:
        """Encode the frame as bytes, for the list of frames in an item."""
        out = Writer()
        out.byte(self.encoding)
        out.add(self.stamp)
        out.number(self.count)
        out.add(self.data)
        return out.written()

    @property
    def time(self) -> Ticks:
        """Time of the append, from its stamp."""
        return _ticks(self.stamp)[0]

    def events(self) -> tuple[EncodedEvent, ...]:
        """Decompress and decode the events; raise `CorruptData` if they are malformed."""
        stamp, count, encoding, data = self
        return read_events(_opened(encoding, data), count, stamp, _ticks(stamp)[0])


def pack_events(events: Sequence[EncodedEvent], moment: Ticks) -> Encoded:
    """Encode events as a frame's content, compressed if that is smaller; raise `TooLarge` for too many.

    An event whose timestamp is `moment`, the time of the writer's clock, is read back with the time of the stamp.

    Raises:
        TooLarge: there are more events than one append may have.
    """
    content = write_events(events, moment)
    return encode(content, compress=len(content) <= MAX_CONTENT)


def read_frame(data: bytes) -> Frame:
    """Decode a frame except for its content; raise `CorruptData` if it is malformed."""
    count, offset = number_at(data, _STAMPED)
    stamp = data[1:_STAMPED]
    if stamp >= _NO_TIME:
        raise CorruptData("the time of a stamp is out of range")
    if not 0 < count <= MAX_EVENTS:
        raise CorruptData(f"a frame has {count} events, not 1 to {MAX_EVENTS:,}")
    encoding = data[0]
    if encoding not in _ENCODINGS:
        raise UnknownEncoding(encoding)
    return _tuple(Frame, (stamp, count, encoding, data[offset:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfolds:
    """The unfolds of one write in their stored form.

    Attributes:
        version: version of the stream that they were computed from.
        moment: time of the write.
        count: number of unfolds; at least one.
        content: the encoded unfolds.
    """

    version: int
    moment: Ticks
    count: int
    content: Encoded

    def binary(self) -> bytes:
        """Encode the unfolds as bytes, for an attribute of an item."""
        out = Writer()
        out.byte(self.content.encoding)
        out.number(self.count)
        out.number(self.version)
        out.add(self.moment.to_bytes(TIME_BYTES, "big"))
        out.add(self.content.data)
        return out.written()

    def unfolds(self) -> tuple[EncodedUnfold, ...]:
        """Decompress and decode the unfolds; raise `CorruptData` if they are malformed."""
        return decode_unfolds(_opened(*self.content), self.count, self.version, self.moment)


def pack_unfolds(unfolds: Sequence[EncodedUnfold], moment: Ticks) -> Encoded:
    """Encode the unfolds of a write at `moment`, compressed if that helps; raise `TooLarge` if too many."""
    content = write_unfolds(unfolds, moment)
    return encode(content, compress=len(content) <= MAX_CONTENT)


def read_unfolds(data: bytes) -> Unfolds:
    """Decode unfolds except for their content; raise `CorruptData` if they are malformed."""
    source = ByteReader(data)
    encoding, count, version = source.byte(), source.number(), source.number()
    moment = int.from_bytes(source.take(TIME_BYTES), "big")
    if not 0 < count <= MAX_EVENTS or version > MAX_VERSION or moment >= END:
        raise CorruptData("the count, version or time of the unfolds is out of range")
    if encoding not in _ENCODINGS:
        raise UnknownEncoding(encoding)
    content = Encoded(encoding, source.rest())
    return Unfolds(version=version, moment=Ticks(moment), count=count, content=content)


def refer_to(index: int) -> bytes:
    """Make the reference that a page stores in place of unfolds on the earlier page at `index`."""
    out = Writer()
    out.byte(REFERRED)
    out.number(index)
    return out.written()


def referred(data: bytes) -> int | None:
    """Return the index of the page that a reference names; None if `data` is no reference.

    Raises:
        CorruptData: the reference is malformed.
    """
    if data[:1] != _REFERRED:
        return None
    index, offset = number_at(data, 1)
    if offset != len(data):
        raise CorruptData("there are extra bytes after the reference to another page's unfolds")
    return index


def _opened(encoding: int, data: bytes) -> bytes:
    return unbrotli(data, MAX_CONTENT) if encoding == BROTLI else data


MAX_EVENTS: Final = 10_000
"""Largest number of events in an append, and of unfolds in a write: as many as fit an item uncompressed. Without this
limit, a few bytes could announce millions."""

_META: Final = 1
_TIMED: Final = 2
_CORRELATED: Final = 4
_CAUSED: Final = 8
_DATA_ENCODED: Final = 16
_META_ENCODED: Final = 32
_LABELLED: Final = 64
_OF_EVENTS: Final = 127
_OF_UNFOLDS: Final = _META | _TIMED | _DATA_ENCODED | _META_ENCODED

_FIRST: Final = from_unix_nanoseconds(0)


def write_events(events: Sequence[EncodedEvent], moment: Ticks) -> bytes:
    """Encode the events of an append at `moment`, without append ids; raise `TooLarge` for too many.

    Raises:
        TooLarge: there are more events than one append may have.
    """
    _check_count("events", len(events))
    out = Writer()
    times = _WrittenTimes(out, moment)
    for event in events:
        ids = (event.correlation_id, event.causation_id)
        out.byte(
            _flags(event, times)
            | (_CORRELATED if ids[0] is not None else 0)
            | (_CAUSED if ids[1] is not None else 0)
            | (_LABELLED if event.label else 0)
        )
        out.text(event.type)
        times.write(event.timestamp)
        for event_id in ids:
            if event_id is not None:
                out.text(event_id)
        _write_bodies(out, event)
        if event.label:
            out.blob(event.label)
    return out.written()


def read_events(
    content: bytes, count: int, stamp: bytes, moment: Ticks, allowed: int = _OF_EVENTS
) -> tuple[EncodedEvent, ...]:
    """Decode events that `write_events` encoded; only the first gets the stamp as its append id.

    Args:
        moment: timestamp of the events that store none.
        allowed: flags that an event may have.

    Raises:
        CorruptData: the content is malformed.
    """
    now, last, offset = format_ticks(moment), _FIRST, 0
    append_id: bytes | None = stamp
    events: list[EncodedEvent] = []
    try:
        for _ in range(count):
            flags, end = content[offset], offset + 2 + content[offset + 1]
            if end - offset < _MORE and end < len(content):  # as in nearly all events
                kind, offset = content[offset + 2 : end].decode(), end
            else:
                kind, offset = text_at(content, offset + 1)
            if flags:
                if flags & ~allowed or (flags & _META_ENCODED and not flags & _META):
                    raise CorruptData(f"the flags {flags:#x} are unknown or contradictory")
                if flags & _TIMED:
                    distance, offset = signed_at(content, offset)
                    last = Ticks(last + distance)
                    if not 0 <= last < END:
                        raise CorruptData("a timestamp is outside the years 1 to 9999")
                time = format_ticks(last) if flags & _TIMED else now
                data, meta, correlation, causation, label, offset = _read_flagged(content, offset, flags)
                own = stamp if label else b""
                event = (kind, data, time, meta, correlation, causation, append_id, label, own)
            else:  # as most events are
                body, offset = blob_at(content, offset)
                data = _tuple(Encoded, (DIRECT, body))
                event = (kind, data, now, EMPTY, None, None, append_id, b"", b"")
            events.append(_tuple(EncodedEvent, event))
            append_id = None
    except IndexError:
        raise CorruptData(_CUT_OFF) from None
    except UnicodeDecodeError as error:
        raise CorruptData(_NOT_TEXT) from error
    if offset != len(content):
        raise CorruptData("there are extra bytes after the last event or unfold")
    return tuple(events)


def plain_events(stream: str, indices: range, frames: Iterable[Frame]) -> list[Recorded] | None:
    """Decode frames of one plain event each, in one fast loop; None if any event is not plain.

    A plain event has a type, ids and bodies without an encoding of their own, and is not large. For any other event,
    and for a corrupt one, the caller uses `read_events`. A replay spends most of its time in this loop.
    """
    events: list[Recorded] = []
    try:
        for index, (stamp, count, encoding, packed) in zip(indices, frames, strict=True):
            content = unbrotli(packed, ONE_BLOCK) if encoding == BROTLI else packed
            meta, correlation, causation = b"", None, None
            flags, offset = content[0], 2 + content[1]
            if count != 1 or flags & ~_PLAIN or offset > _MORE:
                return None
            kind = content[2:offset].decode()
            if flags:
                (_, data), (_, meta), correlation, causation, _, offset = _read_flagged(
                    content, offset, flags
                )
            elif content[offset] >= _MORE > content[offset + 1] > 0:  # two bytes, as of most lengths
                data, offset = (
                    content[offset + 2 :],
                    offset + 2 + content[offset] - _MORE + (content[offset + 1] << 7),
                )
            else:
                data, offset = blob_at(content, offset)
            if offset != len(content):
                return None
            time = format_ticks(_ticks(stamp)[0])
            events.append(recorded(
                stream, index, kind, data, meta, time, correlation, causation, stamp, (), "", "", None,
            ))  # fmt: skip
    except (CorruptData, IndexError, UnicodeDecodeError):
        return None
    return events


_PLAIN: Final = _META | _CORRELATED | _CAUSED


def _read_flagged(
    content: bytes, offset: int, flags: int
) -> tuple[Encoded, Encoded, str | None, str | None, bytes, int]:
    """Decode the fields of an event that `flags` announce; return them and the offset after the event.

    The fields are data, metadata, correlation id, causation id and label.
    """
    correlation, causation, meta, label = None, None, EMPTY, b""
    if flags & _CORRELATED:
        correlation, offset = text_at(content, offset)
    if flags & _CAUSED:
        causation, offset = text_at(content, offset)
    data, offset = _read_body(content, offset, flags & _DATA_ENCODED)
    if flags & _META:
        meta, offset = _read_body(content, offset, flags & _META_ENCODED)
        if meta == EMPTY:
            raise CorruptData("empty metadata must not be stored")
    if flags & _LABELLED:
        label, offset = blob_at(content, offset)
        if not label:
            raise CorruptData("an empty label must not be stored")
    return data, meta, correlation, causation, label, offset


def write_unfolds(unfolds: Sequence[EncodedUnfold], moment: Ticks) -> bytes:
    """Encode the unfolds of a write made at `moment`, without their version.

    Raises:
        TooLarge: there are more unfolds than one write may have.
    """
    _check_count("unfolds", len(unfolds))
    out = Writer()
    times = _WrittenTimes(out, moment)
    for unfold in unfolds:
        out.byte(_flags(unfold, times))
        out.text(unfold.type)
        times.write(unfold.timestamp)
        _write_bodies(out, unfold)
    return out.written()


def decode_unfolds(content: bytes, count: int, version: int, moment: Ticks) -> tuple[EncodedUnfold, ...]:
    """Decode unfolds that `write_unfolds` encoded; raise `CorruptData` if they are malformed."""
    return tuple(
        EncodedUnfold(version=version, type=kind, data=data, meta=meta, timestamp=time)
        for kind, data, time, meta, *_ in read_events(content, count, b"", moment, _OF_UNFOLDS)
    )


class _WrittenTimes:
    """Writes the timestamps of a content, each as its distance from the one before."""

    def __init__(self, out: Writer, moment: Ticks) -> None:
        self._out = out
        self._moment = format_ticks(moment)
        self._last = _FIRST

    def must_write(self, timestamp: str) -> bool:
        """Whether a timestamp has to be written, because it is not the moment of the write."""
        return timestamp != self._moment

    def write(self, timestamp: str) -> None:
        """Write a timestamp, unless it is the moment of the write."""
        if self.must_write(timestamp):
            time = parse_time(timestamp)
            self._out.signed(time - self._last)
            self._last = time


def _flags(entry: EncodedEvent | EncodedUnfold, times: _WrittenTimes) -> int:
    return (
        (_META if entry.meta != EMPTY else 0)
        | (_TIMED if times.must_write(entry.timestamp) else 0)
        | (_DATA_ENCODED if entry.data.encoding != DIRECT else 0)
        | (_META_ENCODED if entry.meta.encoding != DIRECT else 0)
    )


def _write_bodies(out: Writer, entry: EncodedEvent | EncodedUnfold) -> None:
    for body in (entry.data,) if entry.meta == EMPTY else (entry.data, entry.meta):
        if body.encoding != DIRECT:
            out.byte(body.encoding)
        out.blob(body.data)


def _read_body(content: bytes, offset: int, encoded: int) -> tuple[Encoded, int]:
    """Decode a body, which names its encoding if `encoded`; return it and the offset after it."""
    encoding = DIRECT
    if encoded:
        encoding, offset = content[offset], offset + 1
        if encoding == DIRECT:
            raise CorruptData("the encoding of an unencoded body must not be stored")
    body, offset = blob_at(content, offset)
    return Encoded(encoding, body), offset


def _check_count(field: str, count: int) -> None:
    if count > MAX_EVENTS:
        raise TooLarge(field, count, MAX_EVENTS, "items")


_MORE: Final = 0x80
_BITS: Final = 63
"""Largest number of bits in a number, so that it takes at most nine bytes."""

_CUT_OFF: Final = "the data ends too early"
_NOT_TEXT: Final = "a text is not UTF-8"


class Writer:
    """Encodes numbers, texts and bytes one after another."""

    __slots__ = ("_out",)

    def __init__(self) -> None:
        self._out = bytearray()

    def byte(self, value: int) -> None:
        """Write a number below 256 as one byte."""
        self._out.append(value)

    def number(self, value: int) -> None:
        """Write a number of at least 0."""
        while value >= _MORE:
            self._out.append(value & 0x7F | _MORE)
            value >>= 7
        self._out.append(value)

    def signed(self, value: int) -> None:
        """Write a number that may be below 0."""
        self.number(value << 1 if value >= 0 else (-value << 1) - 1)

    def blob(self, value: bytes) -> None:
        """Write bytes, preceded by their length."""
        self.number(len(value))
        self._out += value

    def text(self, value: str) -> None:
        """Write a text as UTF-8, preceded by its length."""
        self.blob(value.encode())

    def add(self, value: bytes) -> None:
        """Write bytes without their length."""
        self._out += value

    def written(self) -> bytes:
        """Return all bytes that were written."""
        return bytes(self._out)


def number_at(data: bytes, offset: int) -> tuple[int, int]:
    """Read a number of at least 0, seven bits a byte; return it and the offset after it.

    Raises:
        CorruptData: the number is cut off, too long, or not in its shortest form.
    """
    try:
        byte = data[offset]
        if byte < _MORE:  # as for nearly all numbers
            return byte, offset + 1
        value, shift = byte & 0x7F, 0
        while byte >= _MORE:
            offset, shift = offset + 1, shift + 7
            if shift >= _BITS:
                raise CorruptData("a number is too long")
            byte = data[offset]
            value |= (byte & 0x7F) << shift
    except IndexError:
        raise CorruptData(_CUT_OFF) from None
    if not byte:
        raise CorruptData("a number is not in its shortest form")
    return value, offset + 1


def signed_at(data: bytes, offset: int) -> tuple[int, int]:
    """Read a number that may be below 0; return it and the offset after it."""
    doubled, offset = number_at(data, offset)
    return doubled >> 1 if doubled % 2 == 0 else -(doubled + 1 >> 1), offset


def blob_at(data: bytes, offset: int) -> tuple[bytes, int]:
    """Read bytes that follow their length; return them and the offset after them."""
    try:
        length = data[offset]
        if length < _MORE:
            offset += 1
        elif 0 < data[offset + 1] < _MORE:  # two bytes, as of most bodies
            length += (data[offset + 1] << 7) - _MORE
            offset += 2
        else:
            length, offset = number_at(data, offset)
    except IndexError:
        raise CorruptData(_CUT_OFF) from None
    end = offset + length
    if end > len(data):
        raise CorruptData(_CUT_OFF)
    return data[offset:end], end


def text_at(data: bytes, offset: int) -> tuple[str, int]:
    """Read a text in UTF-8 that follows its length; return it and the offset after it."""
    value, offset = blob_at(data, offset)
    try:
        return value.decode(), offset
    except UnicodeDecodeError as error:
        raise CorruptData(_NOT_TEXT) from error


class ByteReader:
    """Reads numbers, texts and bytes one after another; raises `CorruptData` if one is malformed."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether all bytes have been read."""
        return self._at == len(self._data)

    def byte(self) -> int:
        """Read one byte as a number."""
        return self.take(1)[0]

    def number(self) -> int:
        """Read a number of at least 0."""
        value, self._at = number_at(self._data, self._at)
        return value

    def text(self) -> str:
        """Read a text in UTF-8 that follows its length."""
        value, self._at = text_at(self._data, self._at)
        return value

    def take(self, length: int) -> bytes:
        """Read the next `length` bytes."""
        end = self._at + length
        if end > len(self._data):
            raise CorruptData(_CUT_OFF)
        data, self._at = self._data[self._at : end], end
        return data

    def rest(self) -> bytes:
        """Read all remaining bytes."""
        return self.take(len(self._data) - self._at)
