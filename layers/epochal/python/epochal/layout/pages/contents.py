"""Events and unfolds to bytes and back: what frames and `u` hold, before it is compressed (FORMATS §8).

This outlives the code. Each event or unfold is a byte of flags and what these say is there, in the order of the flags'
bits. The bytes do not depend on where in a stream the events will be, nor on when the append comes to pass, so that an
append that has to be tried again is not put together again.

A time is left out where it is the moment of the write, which stands once beside the content. Any other is written as
its distance from the one before it, the first from 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from epochal.codec.bodies import DIRECT, EMPTY, Encoded
from epochal.errors import CorruptData, TooLarge
from epochal.layout.pages.values import Writer, blob_at, byte_at, signed_at, text_at
from epochal.layout.stored import EncodedEvent, EncodedUnfold
from epochal.model.times import END, Ticks, format_ticks, from_unix_nanoseconds, parse_time

MAX_EVENTS: Final = 10_000
"""Of one append, and unfolds of one write: as many as fit an item uncompressed. Without it a few bytes could name
millions."""

_META: Final = 1
_TIMED: Final = 2
_CORRELATED: Final = 4
_CAUSED: Final = 8
_DATA_ENCODED: Final = 16
_META_ENCODED: Final = 32
_OF_EVENTS: Final = 63
_OF_UNFOLDS: Final = _META | _TIMED | _DATA_ENCODED | _META_ENCODED

_FIRST: Final = from_unix_nanoseconds(0)


def write_events(events: Sequence[EncodedEvent], moment: Ticks) -> bytes:
    """Events of an append, at `moment`; their append ids are not in it."""
    _check_count("events", len(events))
    out = Writer()
    times = _WrittenTimes(out, moment)
    for event in events:
        ids = (event.correlation_id, event.causation_id)
        out.byte(
            _flags(event, times)
            | (_CORRELATED if ids[0] is not None else 0)
            | (_CAUSED if ids[1] is not None else 0)
        )
        out.text(event.type)
        times.write(event.timestamp)
        for each in ids:
            if each is not None:
                out.text(each)
        _write_bodies(out, event)
    return out.written()


def read_events(content: bytes, count: int, stamp: bytes, moment: Ticks) -> tuple[EncodedEvent, ...]:
    """The inverse; the append's stamp is its first event's append id. Raises `CorruptData`."""
    times, at = _ReadTimes(moment), 0
    events: list[EncodedEvent] = []
    for number in range(count):
        event, at = _read_event(content, at, times, None if number else stamp)
        events.append(event)
    _check_end(content, at)
    return tuple(events)


def write_unfolds(unfolds: Sequence[EncodedUnfold], moment: Ticks) -> bytes:
    """Unfolds of a write, at `moment`; their version is not in it."""
    _check_count("unfolds", len(unfolds))
    out = Writer()
    times = _WrittenTimes(out, moment)
    for unfold in unfolds:
        out.byte(_flags(unfold, times))
        out.text(unfold.type)
        times.write(unfold.timestamp)
        _write_bodies(out, unfold)
    return out.written()


def read_unfolds(content: bytes, count: int, version: int, moment: Ticks) -> tuple[EncodedUnfold, ...]:
    """The inverse. Raises `CorruptData`."""
    times, at = _ReadTimes(moment), 0
    unfolds: list[EncodedUnfold] = []
    for _ in range(count):
        unfold, at = _read_unfold(content, at, times, version)
        unfolds.append(unfold)
    _check_end(content, at)
    return tuple(unfolds)


class _WrittenTimes:
    """The times of a content, each by its distance from the one before."""

    def __init__(self, out: Writer, moment: Ticks) -> None:
        self._out = out
        self._moment = format_ticks(moment)
        self._last = _FIRST

    def told(self, timestamp: str) -> bool:
        """Whether it has to be written."""
        return timestamp != self._moment

    def write(self, timestamp: str) -> None:
        """Write it, if it has to be."""
        if self.told(timestamp):
            time = parse_time(timestamp)
            self._out.signed(time - self._last)
            self._last = time


class _ReadTimes:
    """The inverse.

    Attributes:
        moment: of the write; that of whatever says no other.
    """

    __slots__ = ("_last", "moment")

    def __init__(self, moment: Ticks) -> None:
        self.moment = format_ticks(moment)
        self._last = _FIRST

    def read(self, content: bytes, at: int) -> tuple[str, int]:
        """One that was written."""
        distance, at = signed_at(content, at)
        self._last = Ticks(self._last + distance)
        if not 0 <= self._last < END:
            raise CorruptData("a time is not within the years 1 to 9999")
        return format_ticks(self._last), at


def _flags(entry: EncodedEvent | EncodedUnfold, times: _WrittenTimes) -> int:
    return (
        (_META if entry.meta != EMPTY else 0)
        | (_TIMED if times.told(entry.timestamp) else 0)
        | (_DATA_ENCODED if entry.data.encoding != DIRECT else 0)
        | (_META_ENCODED if entry.meta.encoding != DIRECT else 0)
    )


def _write_bodies(out: Writer, entry: EncodedEvent | EncodedUnfold) -> None:
    for body in (entry.data,) if entry.meta == EMPTY else (entry.data, entry.meta):
        if body.encoding != DIRECT:
            out.byte(body.encoding)
        out.blob(body.data)


def _read_event(
    content: bytes, at: int, times: _ReadTimes, append_id: bytes | None
) -> tuple[EncodedEvent, int]:
    flags, at = byte_at(content, at)
    kind, at = text_at(content, at)
    if not flags:  # as most events are
        body, at = blob_at(content, at)
        return EncodedEvent(
            type=kind, data=Encoded(DIRECT, body), timestamp=times.moment, append_id=append_id
        ), at
    _check_flags(flags, _OF_EVENTS)
    timestamp, correlation, causation = times.moment, None, None
    if flags & _TIMED:
        timestamp, at = times.read(content, at)
    if flags & _CORRELATED:
        correlation, at = text_at(content, at)
    if flags & _CAUSED:
        causation, at = text_at(content, at)
    data, meta, at = _read_bodies(content, at, flags)
    return EncodedEvent(
        type=kind,
        data=data,
        meta=meta,
        timestamp=timestamp,
        correlation_id=correlation,
        causation_id=causation,
        append_id=append_id,
    ), at


def _read_unfold(content: bytes, at: int, times: _ReadTimes, version: int) -> tuple[EncodedUnfold, int]:
    flags, at = byte_at(content, at)
    _check_flags(flags, _OF_UNFOLDS)
    kind, at = text_at(content, at)
    timestamp = times.moment
    if flags & _TIMED:
        timestamp, at = times.read(content, at)
    data, meta, at = _read_bodies(content, at, flags)
    return EncodedUnfold(version=version, type=kind, data=data, meta=meta, timestamp=timestamp), at


def _check_flags(flags: int, allowed: int) -> None:
    if flags & ~allowed or (flags & _META_ENCODED and not flags & _META):
        raise CorruptData(f"flags {flags:#x} mean nothing")


def _read_bodies(content: bytes, at: int, flags: int) -> tuple[Encoded, Encoded, int]:
    data, at = _read_body(content, at, flags & _DATA_ENCODED)
    if not flags & _META:
        return data, EMPTY, at
    meta, at = _read_body(content, at, flags & _META_ENCODED)
    if meta == EMPTY:
        raise CorruptData("metadata that says nothing is left out")
    return data, meta, at


def _read_body(content: bytes, at: int, encoded: int) -> tuple[Encoded, int]:
    encoding = DIRECT
    if encoded:
        encoding, at = byte_at(content, at)
        if encoding == DIRECT:
            raise CorruptData("a body as it is has no encoding")
    body, at = blob_at(content, at)
    return Encoded(encoding, body), at


def _check_count(field: str, count: int) -> None:
    if count > MAX_EVENTS:
        raise TooLarge(field, count, MAX_EVENTS, "items")


def _check_end(content: bytes, at: int) -> None:
    if at != len(content):
        raise CorruptData("something follows the last of it")
