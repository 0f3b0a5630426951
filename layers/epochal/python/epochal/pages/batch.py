"""The batch of one append in its stored form.

A batch is packed once for all tries of its append: neither its content nor its identity depends on its index.

Several batches of one stream may be joined into one write with a frame for each. Since all of them are applied or none,
the last one identifies the write. Their stamps are one tick apart, which tells the feed what one write has appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from epochal.codec.bodies import EMPTY, Encoded, denser, may_gain
from epochal.layout.streams import IDENTIFIED, NEVER, Batch, EncodedEvent
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import PER_SECOND, Ticks
from epochal.pages.frames import Frame, Unfolds, pack_events, pack_unfolds, stamp_of, time_of

WHOSE: Final = 5
"""Bytes after a stamp's time that an idempotency key determines; the other three are a digest of what was appended."""

MARK_BYTES: Final = 8
"""Bytes of an etag that tell writes without events apart."""

AHEAD: Final = PER_SECOND
"""How far a stamp's time may be ahead of the writer's clock and still be the timestamp of events. Without this limit,
one clock that was years ahead would date all later events of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One append to one stream, encoded for storage; all of it is applied, or nothing.

    Attributes:
        before: joined appends that the same write makes ahead of this one.
        count: number of events, with those of `before`.
        events: the events of this append, without those of `before`.
        content: these events, encoded for a stamp whose time is `now`.
        unfolds: number and content of the unfolds that replace the stored ones; None keeps the stored ones.
        now: time of the writer's clock.
        rest: the bytes after the time in the append's stamp.
        mark: the bytes after the time in the stamp of a write without events.
        append_id: append id that the caller gave.
        etag: etag that the caller gave; for unfolds alone, the etag that they leave (see `layout.once`).
        keyed: whether `rest` comes from an idempotency key, so that another process may have written the same.
        dated: whether an event has a timestamp of its own that equals the writer's clock, which is stored exactly.
        ids: labels with the ids of the events, if all events have an id and there is no key; otherwise empty.
        above: time that all stamps of the append must exceed: that of its key, or of the other streams it writes to.
    """

    stream: str
    count: int
    events: tuple[EncodedEvent, ...]
    content: Encoded
    unfolds: tuple[int, Encoded] | None
    now: Ticks
    rest: bytes
    mark: bytes
    append_id: bytes
    etag: str
    keyed: bool
    dated: bool = False
    ids: tuple[bytes, ...] = ()
    above: Ticks = NEVER
    before: tuple[Packed, ...] = ()

    def stamp(self, last: Ticks | None) -> bytes:
        """Make the stamp of this append, above the last one of the stream even if the clock is behind."""
        time = _after(self.now, max(self.above, last or self.above))
        return stamp_of(Ticks(time + len(self.before)), self.rest if self.count else self.mark)

    def mark_after(self, last: Ticks) -> bytes:
        """Make the stamp of a preparatory write without events, above the last one of the stream."""
        return stamp_of(_after(self.now, last), self.mark)

    def frames(self, stamp: bytes) -> tuple[Frame, ...]:
        """Make the frames of the joined appends and of this one; empty without events."""
        if not self.count:
            return ()
        first = time_of(stamp) - len(self.before)
        return tuple(
            packed._frame(Ticks(first + position))  # noqa: SLF001  its own kind
            for position, packed in enumerate((*self.before, self))
        )

    def unfolds_at(self, version: int) -> bytes:
        """Encode the unfolds as computed from `version`; empty bytes if there are none."""
        if self.unfolds is None or not self.unfolds[0]:
            return b""
        count, content = self.unfolds
        return Unfolds(version=version, moment=self.now, count=count, content=content).binary()

    @property
    def may_gain(self) -> int:
        """Number of bytes that `denser` may save, as an estimate."""
        unfolds = 0 if self.unfolds is None else may_gain(self.unfolds[1])
        return may_gain(self.content) + unfolds + sum(batch.may_gain for batch in self.before)

    def denser(self) -> Packed:
        """Return the same batch, compressed with more effort into fewer bytes."""
        return replace(
            self,
            content=denser(self.content),
            unfolds=None if self.unfolds is None else (self.unfolds[0], denser(self.unfolds[1])),
            before=tuple(batch.denser() for batch in self.before),
        )

    def _frame(self, time: Ticks) -> Frame:
        stamp = stamp_of(time, self.rest)
        return Frame(stamp, len(self.events), *self._dated(time))

    def _dated(self, time: Ticks) -> Encoded:
        if time == self.now or (not self.dated and time - self.now <= AHEAD):
            return self.content
        return pack_events(self.events, time)


def packed(batch: Batch) -> Packed:
    """Encode a batch once, for all tries of its append; raise `TooLarge` if it has too many events.

    Raises:
        TooLarge: it has more events than one append may have.
    """
    now = _above(batch)
    unfolds = None if batch.unfolds is None else (len(batch.unfolds), pack_unfolds(batch.unfolds, now))
    identity = batch.append_id
    labels = () if batch.keyed else tuple([event.label for event in batch.events])
    return Packed(
        stream=batch.stream,
        count=len(batch.events),
        events=batch.events,
        content=pack_events(batch.events, now) if batch.events else EMPTY,
        unfolds=unfolds,
        now=now,
        rest=rest_of(identity),
        mark=bytes.fromhex(batch.etag)[:MARK_BYTES],
        append_id=identity,
        etag=batch.etag,
        keyed=batch.keyed,
        dated=batch.dated,
        ids=labels if all(label.startswith(IDENTIFIED) for label in labels) else (),
        above=batch.above,
    )


def _above(batch: Batch) -> Ticks:
    """Return the writer's clock; under a key at least a time above the key's that differs per call.

    So a call recognizes its own write.
    """
    return Ticks(max(batch.now, batch.above + 1 + int(batch.etag[:4], 16))) if batch.above else batch.now


def rest_of(append_id: bytes) -> bytes:
    """Return the 8 bytes of an append id that its stamp contains."""
    return append_id[:WHOSE] + append_id[8 : 16 - WHOSE]


def joined(batches: Sequence[Packed]) -> Packed:
    """Join batches of one stream into one append; they have no unfolds, and some may have idempotency keys.

    Only the last batch's `above` is kept: `packed` has raised each `now` above its own, and the latest one is taken.
    """
    *before, last = batches
    now = max(batch.now for batch in batches)
    if now != last.now and (last.dated or now - last.now > AHEAD):
        last = replace(last, content=pack_events(last.events, now))
    count = sum(len(batch.events) for batch in batches)
    return replace(last, before=tuple(before), count=count, now=now, ids=())


def _after(now: Ticks, last: Ticks | None) -> Ticks:
    return now if last is None else Ticks(max(now, last + 1))
