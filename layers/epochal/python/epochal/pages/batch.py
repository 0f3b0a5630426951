"""A batch of one append, packed.

A batch is packed once for all its tries: neither its content nor who it is depends on where it will be.

Several batches of one stream may be joined, to go out as one write with a frame for each. It is known by the last of
them, since all or none are there. Their stamps are one tick apart, by which the feed knows what one write has appended.
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
"""Bytes after a stamp's time that tell appends apart under a key; the other three are a digest of what was appended."""

MARK_BYTES: Final = 8
"""Bytes of an etag that tell writes without events apart."""

AHEAD: Final = PER_SECOND
"""By how much a stamp's time may be beyond the writer's clock and still be the time of events. Were there no bound, one
clock that was years ahead would date all later events of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One append: all or nothing.

    Attributes:
        before: appends that go out with this one, ahead of it.
        count: how many events, with theirs.
        events: its own, and
        content: theirs, where their time is that of the stamp.
        unfolds: how many there are to replace those stored, and their content; None keeps those.
        rest: what follows the time in the append's stamp,
        mark: and in the stamp of a write without events.
        append_id: as the caller gave it,
        etag: as the caller gave it; of unfolds alone, that they leave (see `layout.once`).
        keyed: `rest` stems from a caller's idempotency key, so another process may have written it.
        dated: the time of one of them is its own, and that of the writer's clock: it is kept exactly.
        ids: of its events, as labels, where all have one and no key tells who it is.
        above: no stamp of it is at this time or before: of the streams that it is for besides this one, or of its key.
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
        """The stamp of this append, above the last one of the stream whatever the clock says."""
        time = _after(self.now, max(self.above, last or self.above))
        return stamp_of(Ticks(time + len(self.before)), self.rest if self.count else self.mark)

    def mark_after(self, last: Ticks) -> bytes:
        """The stamp of a further write that this append needs, above the last one of its stream."""
        return stamp_of(_after(self.now, last), self.mark)

    def frames(self, stamp: bytes) -> tuple[Frame, ...]:
        """The events as a frame, if there are any, after the frames of those before."""
        if not self.count:
            return ()
        first = time_of(stamp) - len(self.before)
        return tuple(
            each._frame(Ticks(first + position))  # noqa: SLF001  its own kind
            for position, each in enumerate((*self.before, self))
        )

    def unfolds_at(self, version: int) -> bytes:
        """The unfolds, made from `version`; empty where there are none."""
        if self.unfolds is None or not self.unfolds[0]:
            return b""
        count, content = self.unfolds
        return Unfolds(version=version, moment=self.now, count=count, content=content).binary()

    @property
    def may_gain(self) -> int:
        """Bytes that `denser` may save."""
        unfolds = 0 if self.unfolds is None else may_gain(self.unfolds[1])
        return may_gain(self.content) + unfolds + sum(batch.may_gain for batch in self.before)

    def denser(self) -> Packed:
        """The same, in as few bytes as CPU can buy."""
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
    """A batch, packed.

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
    """The writer's clock, or a moment above that of the key: another for each call, which so knows its own write."""
    return Ticks(max(batch.now, batch.above + 1 + int(batch.etag[:4], 16))) if batch.above else batch.now


def rest_of(append_id: bytes) -> bytes:
    """What an append's stamp has of its id."""
    return append_id[:WHOSE] + append_id[8 : 16 - WHOSE]


def joined(batches: Sequence[Packed]) -> Packed:
    """Batches of one stream, all of events alone and under no key, as one append."""
    *before, last = batches
    now = max(batch.now for batch in batches)
    if now != last.now and (last.dated or now - last.now > AHEAD):
        last = replace(last, content=pack_events(last.events, now))
    count = sum(len(batch.events) for batch in batches)
    return replace(last, before=tuple(before), count=count, now=now, ids=())


def _after(now: Ticks, last: Ticks | None) -> Ticks:
    return now if last is None else Ticks(max(now, last + 1))
