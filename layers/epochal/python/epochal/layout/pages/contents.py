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
from epochal.layout.pages.values import Reader, Writer
from epochal.layout.stored import StoredEvent, StoredUnfold
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


def write_events(events: Sequence[StoredEvent], moment: Ticks) -> bytes:
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


def read_events(content: bytes, count: int, stamp: bytes, moment: Ticks) -> tuple[StoredEvent, ...]:
    """The inverse; the append's stamp is its first event's append id. Raises `CorruptData`."""
    source = Reader(content)
    times = _ReadTimes(source, moment)
    events = [_read_event(source, times, stamp)]
    events += [_read_event(source, times, None) for _ in range(count - 1)]
    _check_end(source)
    return tuple(events)


def write_unfolds(unfolds: Sequence[StoredUnfold], moment: Ticks) -> bytes:
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


def read_unfolds(content: bytes, count: int, version: int, moment: Ticks) -> tuple[StoredUnfold, ...]:
    """The inverse. Raises `CorruptData`."""
    source = Reader(content)
    times = _ReadTimes(source, moment)
    unfolds = tuple(_read_unfold(source, times, version) for _ in range(count))
    _check_end(source)
    return unfolds


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
    """The inverse."""

    def __init__(self, source: Reader, moment: Ticks) -> None:
        self._source = source
        self._moment = format_ticks(moment)
        self._last = _FIRST

    def read(self, flags: int) -> str:
        """The next one."""
        if not flags & _TIMED:
            return self._moment
        self._last = Ticks(self._last + self._source.signed())
        if not 0 <= self._last < END:
            raise CorruptData("a time is not within the years 1 to 9999")
        return format_ticks(self._last)


def _flags(entry: StoredEvent | StoredUnfold, times: _WrittenTimes) -> int:
    return (
        (_META if entry.meta != EMPTY else 0)
        | (_TIMED if times.told(entry.timestamp) else 0)
        | (_DATA_ENCODED if entry.data.encoding != DIRECT else 0)
        | (_META_ENCODED if entry.meta.encoding != DIRECT else 0)
    )


def _write_bodies(out: Writer, entry: StoredEvent | StoredUnfold) -> None:
    for body in (entry.data,) if entry.meta == EMPTY else (entry.data, entry.meta):
        if body.encoding != DIRECT:
            out.byte(body.encoding)
        out.blob(body.data)


def _read_event(source: Reader, times: _ReadTimes, append_id: bytes | None) -> StoredEvent:
    flags = _read_flags(source, _OF_EVENTS)
    kind, timestamp = source.text(), times.read(flags)
    correlation = source.text() if flags & _CORRELATED else None
    causation = source.text() if flags & _CAUSED else None
    data = _read_body(source, flags & _DATA_ENCODED)
    return StoredEvent(
        type=kind,
        data=data,
        meta=_read_meta(source, flags) if flags & _META else EMPTY,
        timestamp=timestamp,
        correlation_id=correlation,
        causation_id=causation,
        append_id=append_id,
    )


def _read_unfold(source: Reader, times: _ReadTimes, version: int) -> StoredUnfold:
    flags = _read_flags(source, _OF_UNFOLDS)
    kind, timestamp = source.text(), times.read(flags)
    data = _read_body(source, flags & _DATA_ENCODED)
    return StoredUnfold(
        version=version, type=kind, data=data, meta=_read_meta(source, flags), timestamp=timestamp
    )


def _read_flags(source: Reader, allowed: int) -> int:
    flags = source.byte()
    if flags & ~allowed or (flags & _META_ENCODED and not flags & _META):
        raise CorruptData(f"flags {flags:#x} mean nothing")
    return flags


def _read_meta(source: Reader, flags: int) -> Encoded:
    if not flags & _META:
        return EMPTY
    meta = _read_body(source, flags & _META_ENCODED)
    if meta == EMPTY:
        raise CorruptData("metadata that says nothing is left out")
    return meta


def _read_body(source: Reader, encoded: int) -> Encoded:
    encoding = source.byte() if encoded else DIRECT
    if encoded and encoding == DIRECT:
        raise CorruptData("a body as it is has no encoding")
    return Encoded(encoding, source.blob())


def _check_count(field: str, count: int) -> None:
    if count > MAX_EVENTS:
        raise TooLarge(field, count, MAX_EVENTS, "items")


def _check_end(source: Reader) -> None:
    if not source.at_end:
        raise CorruptData("something follows the last of it")
