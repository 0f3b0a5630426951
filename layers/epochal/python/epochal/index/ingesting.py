"""Indexing a batch: one write for all of it, decided against what is there, decided again when that has
changed.

    load          the active epoch and its predecessor, kept between batches
    decide        drop what is indexed; heal gaps from the store; marks for streams that neither epoch knows
    write         one append to the active epoch, on its etag
    refused       another invocation was here: take in what it wrote, decide again
    full          marks for what is about to be forgotten, then `Closed` in the same append as the last entry

Several invocations may work on one partition, and batches may come twice; deciding is pure, so nothing is
indexed twice, and nothing is skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from epochal.index.entries import closing_entry, merged, split, write_entry
from epochal.index.epochs import STANDARD, Epoch, EpochLimits, Gap, decide, unknown_streams
from epochal.index.loading import Loaded, load, load_next, refresh
from epochal.index.marks import read_marks, write_marks
from epochal.index.names import epoch_stream
from epochal.index.series import Ids, read_series, start_epoch
from epochal.layout.tips.append import append
from epochal.layout.tips.batch import Written, batch_of
from epochal.layout.tips.calving import ByCost
from epochal.layout.tips.items import Tip, event_bytes
from epochal.model.spans import Span
from epochal.model.versions import NO_STREAM
from epochal.plan.ops import Steps

MARKS_AT_ONCE: Final = 500
"""Marks written for one entry at most; closing waits for the rest. They are spread over the epoch's life."""

Heal = Callable[[Gap], Steps[list[Span]]]
"""Reads from the source the events of a gap; those pruned meanwhile are missing from the answer."""


@dataclass(slots=True, kw_only=True)
class Partition:
    """One partition as an indexer holds it between batches.

    Attributes:
        number: which.
        loaded: the two newest epochs, once they have been read.
        unmarked: streams of the predecessor, with their next index, whose marks are still to be considered.
        forgotten: how many `unmarked` held at first.
    """

    number: int
    loaded: Loaded | None = None
    unmarked: deque[tuple[str, int]] = field(default_factory=deque)
    forgotten: int = 0

    @property
    def state(self) -> Loaded:
        """What has been loaded; an error before that."""
        if self.loaded is None:
            raise RuntimeError("the partition has not been loaded")
        return self.loaded

    def hold(self, loaded: Loaded) -> None:
        """Take `loaded` for the state; a new epoch brings a new predecessor to mark."""
        if self.loaded is None or self.loaded.active.number != loaded.active.number:
            self.unmarked = deque(loaded.previous.next.items() if loaded.previous is not None else ())
            self.forgotten = len(self.unmarked)
        self.loaded = loaded

    def due(self, active: Epoch, fullness: float) -> list[tuple[str, int]]:
        """Marks to write now, so that all are written when the epoch is full."""
        left = self.forgotten - ceil(self.forgotten * min(1.0, fullness))
        marks: list[tuple[str, int]] = []
        while len(self.unmarked) > left and len(marks) < MARKS_AT_ONCE:
            stream, following = self.unmarked.popleft()
            if stream not in active.next:
                marks.append((stream, following))
        return marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What a batch came to.

    Attributes:
        events: indexed by this call.
        healed: read from the store, because the batch lacked them (part of `events` unless others indexed
            them). pruned: gone from the store before they could be indexed.
    """

    events: int = 0
    healed: int = 0
    pruned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _New:
    """What of a batch the index lacks."""

    spans: list[Span]
    healed: int
    pruned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """How to index: the table, where gaps are healed from, and what pure code must be given."""

    table: str
    heal: Heal
    ids: Callable[[], Ids]
    limits: EpochLimits = STANDARD

    def ingest(self, partition: Partition, spans: Sequence[Span]) -> Steps[Ingested]:
        """Index a batch of spans, in the order of their appends. All of it is indexed when this returns."""
        yield from self._open(partition)
        events, healed, pruned = 0, 0, 0
        while True:
            loaded = partition.state
            new = yield from self._resolve(partition.number, loaded, spans)
            healed, pruned = healed + new.healed, pruned + new.pruned
            if not new.spans:
                return Ingested(events=events, healed=healed, pruned=pruned)
            chunk = split(new.spans)
            if (yield from self._write(partition, loaded, chunk)):
                events += sum(len(span.types) for span in chunk)
                if len(chunk) == len(new.spans):
                    return Ingested(events=events, healed=healed, pruned=pruned)
            else:
                partition.hold((yield from refresh(self.table, partition.number, loaded)))

    def _open(self, partition: Partition) -> Steps[None]:
        """Read the state, if it is not at hand, from where the series says that the partition has got to."""
        if partition.loaded is None:
            series = yield from read_series(self.table)
            epoch = series.active.get(partition.number, 0)
            partition.hold((yield from load(self.table, partition.number, epoch)))

    def _resolve(self, partition: int, loaded: Loaded, spans: Sequence[Span]) -> Steps[_New]:
        """What the index lacks of a batch, gaps healed. Marks are read after the epochs, and never kept."""
        unknown = unknown_streams(spans, loaded.active, loaded.previous)
        marks = yield from read_marks(self.table, partition, unknown)
        found: list[Span] = []
        healed = pruned = 0
        for step in decide(spans, lambda stream: _next_of(stream, loaded, marks)):
            if isinstance(step, Span):
                found.append(step)
                continue
            missing = yield from self.heal(step)
            count = sum(len(span.types) for span in missing)
            healed, pruned = healed + count, pruned + step.end - step.index - count
            found += missing
        return _New(spans=merged(found), healed=healed, pruned=pruned)

    def _write(self, partition: Partition, loaded: Loaded, spans: list[Span]) -> Steps[bool]:
        """Append one entry, and `Closed` where that fills the epoch. False: the epoch is not as it was
        held.
        """
        active, ids = loaded.active, self.ids()
        entry = write_entry(spans, active.next.keys(), ids.timestamp)
        fullness = active.fullness(self.limits, len(entry.data.data), spans)
        yield from write_marks(self.table, partition.number, partition.due(active, fullness))
        closes = fullness >= 1 and not partition.unmarked
        events = [entry, closing_entry(ids.timestamp)] if closes else [entry]
        batch = batch_of(
            epoch_stream(partition.number, active.number), events, etag=ids.etag, append_id=ids.append_id
        )
        known = active.known
        expected = NO_STREAM if known is None else known.token() if isinstance(known, Tip) else known
        result = yield from append(self.table, batch, expected, ByCost(), known)
        if not isinstance(result, Written):
            return False
        active.add(spans, event_bytes(batch.span), result.token)
        if closes:
            active.fold(None)
            yield from start_epoch(self.table, partition.number, active.number + 1, self.ids())
            partition.hold((yield from load_next(self.table, partition.number, active)))
        return True


def _next_of(stream: str, loaded: Loaded, marks: dict[str, int]) -> int:
    if stream in loaded.active.next:
        return loaded.active.next[stream]
    if loaded.previous is not None and stream in loaded.previous.next:
        return loaded.previous.next[stream]
    return marks.get(stream, 0)
