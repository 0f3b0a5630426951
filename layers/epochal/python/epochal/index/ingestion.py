"""Indexes a batch with one write; if the state has changed meanwhile, decides again on the new state.

    load          the active epoch and its predecessor, kept between batches
    decide        drop what is indexed; heal gaps from the store; marks for streams that neither epoch knows
    removals      are known by their marks, which are kept as the next indices of streams are: so each comes once, after
                  all events that it has removed
    write         one append to the active epoch, on its etag
    refused       another invocation has written: take in what it wrote, decide again, after a pause of random length
    crowded       once others have been met, look at the epoch before writing: a read of a Tip of 1 KB costs a fifth of
                  a refused write, of 4 KB a twentieth
    unhealed      the store lacks or cannot show what a gap holds: that stream stops, its neighbours go on
    large gaps    are healed and written piece by piece, each decided upon what the one before it left
    marks         before each entry, for as large a part of what will be forgotten as the epoch is full; the entry
                  says how far they have come, so that no other invocation writes them again
    full          `Closed` in the same append as the last entry

Several invocations may work on one partition, and batches may come twice; deciding is pure, so nothing is
indexed twice, and nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Final

from epochal.errors import CorruptData
from epochal.index.checkpoints import Checkpoint, epoch_stream
from epochal.index.crowding import Crowding
from epochal.index.entries import (
    Entry,
    EntryPart,
    closing_entry,
    epoch_tip,
    merge_removals,
    merge_spans,
    removals_in,
    spans_in,
    split_entry,
    with_own_metadata,
    write_entry,
)
from epochal.index.epoch_loading import LoadedEpochs, load_newest, load_next, refresh
from epochal.index.epochs import STANDARD, EpochLimits, decide, unknown_streams
from epochal.index.marks import Leaves, begin_marks, hash_of, read_marks, write_marks
from epochal.index.series import start_epoch
from epochal.index.tip import Tip, event_bytes
from epochal.index.tip_append import append_on, tip_after
from epochal.index.wire_batch import Ids, batch_of
from epochal.layout.changes import Change, Removal, Span
from epochal.layout.healing import PIECE, Gap, Heal, Healed
from epochal.layout.outcomes import refusing_head
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.moments import Ticks
from epochal.model.outcomes import Conflict
from epochal.plan.ops import Steps

MARKS_AT_ONCE: Final = 40_000
"""Largest number of streams considered for marks with one entry; closing waits for the rest. An entry fills less than
a sixth of an epoch, so within the standard limits nothing ever waits, only after a larger epoch."""

MARKS_TOGETHER: Final = 256
"""Smallest number of streams in a round of marks, except the last: a leaf costs the same for one mark or hundreds."""

MARK_ROUNDS: Final = 32
"""Largest number of rounds in which an epoch writes its marks; only leaves at round borders are written twice."""

FIRST_MARKED: Final = 2
"""Number of the first epoch that is not among the two oldest, so that streams may be older than its predecessor."""

MAX_REFRESHES: Final = 3
"""Largest number of reads of the active epoch before a write, if each finds more new entries than the Tip has."""

LEAST_SPREAD: Final = 0.02
"""Seconds over which the first refusal spreads an invocation's next try: three requests' time."""

MOST_SPREAD: Final = 0.25
"""Largest seconds over which tries are spread: enough for forty writers of 6 ms, one after another. A longer spread
would cost money, and delay readers. If a partition is so crowded that its indexers rest, tries are spread over half a
rest."""

CALMER: Final = 4
"""Divisor of the spread after a batch, since crowding comes and goes."""


Times = Callable[[], Mapping[tuple[str, int], Ticks]]
"""When the changes of a batch were made, by stream and next index; called only if events were read from the store."""


def no_times() -> Mapping[tuple[str, int], Ticks]:
    """Return no times: the default when the times of changes are unknown."""
    return {}


def no_pause(_longest: float) -> bool:
    """Do not wait: the default pause after a refused write."""
    return False


@dataclass(slots=True, kw_only=True)
class Partition:
    """The state of one partition that an indexer keeps between batches.

    Attributes:
        number: number of the partition.
        loaded: the two newest epochs, once they have been read.
        forgotten: streams of the predecessor, in the order of their hashes, so that a leaf's marks are written
            together.
        leaves: leaves of marks that were read.
        marked: marks of streams that were asked for. While the epoch is active nobody raises the mark of a stream which
            neither it nor its predecessor contains.
        shared: whether others have written since the loaded state.
        spread: seconds over which tries are spread, so that writers do not collide: a refusal doubles it, and the next
            batch begins with a quarter.
        crowding: what others write to the partition.
    """

    number: int
    loaded: LoadedEpochs | None = None
    forgotten: tuple[str, ...] = ()
    leaves: Leaves = field(default_factory=Leaves)
    marked: dict[str, int] = field(default_factory=dict)
    shared: bool = False
    spread: float = 0.0
    crowding: Crowding = field(default_factory=Crowding, repr=False)

    @property
    def state(self) -> LoadedEpochs:
        """The loaded epochs; an error before they are loaded."""
        if self.loaded is None:
            raise RuntimeError("the partition has not been loaded")
        return self.loaded

    @property
    def position(self) -> Checkpoint:
        """Checkpoint after the last entry."""
        return Checkpoint.of(self.state.active.number, self.state.active.version)

    def hold(self, loaded: LoadedEpochs) -> None:
        """Replace the loaded epochs; if another epoch is active now, start over with leaves and marks."""
        if self.loaded is None or self.loaded.active.number != loaded.active.number:
            self.forgotten = (
                () if loaded.previous is None else tuple(sorted(loaded.previous.next, key=hash_of))
            )
            self.leaves, self.marked = Leaves(), {}
        self.loaded = loaded

    def refused(self) -> None:
        """Double the spread of tries after a refused write."""
        most = max(MOST_SPREAD, self.crowding.rest / 2)
        self.spread = min(most, max(LEAST_SPREAD, 2 * self.spread))

    def calm(self) -> None:
        """Reduce the spread of tries after a batch."""
        self.spread = self.spread / CALMER if self.spread > LEAST_SPREAD else 0.0

    def due(self, fullness: float) -> int:
        """Return how many of the forgotten streams must be marked once the epoch is this full."""
        marked = self.state.active.marked
        target = ceil(len(self.forgotten) * min(1.0, fullness))
        if fullness < 1:
            target -= target % max(MARKS_TOGETHER, ceil(len(self.forgotten) / MARK_ROUNDS))
        return max(marked, min(target, marked + MARKS_AT_ONCE))

    def marks(self, due: int) -> list[tuple[str, int]]:
        """List the marks that are missing up to that number, each a stream and its next index."""
        active, previous = self.state.active, self.state.previous
        if previous is None:
            return []
        streams = self.forgotten[active.marked : due]
        return [(stream, previous.next[stream]) for stream in streams if stream not in active.next]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unhealed:
    """A stream that could not be indexed from `index` on, because its store is corrupt."""

    index: int
    cause: CorruptData


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What indexing a batch has done.

    Attributes:
        events: number of events that this call indexed.
        healed: number of events that were read from the store, because the batch lacked them. They count in `events`,
            unless others indexed them.
        pruned: number of events that were gone from the store before they could be indexed.
        removals: number of removals that this call indexed.
        unhealed: streams of which nothing was indexed from an index on, with the cause.
    """

    events: int = 0
    healed: int = 0
    pruned: int = 0
    removals: int = 0
    unhealed: Mapping[str, Unhealed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewParts:
    """The part of a batch that the index lacks.

    Attributes:
        parts: new spans and removals, in order.
        healed: number of events that were read from the store.
        pruned: number of events that are gone.
        unhealed: streams that could not be read.
        whole: whether it is all of the batch, not only as much as may be healed at once.
    """

    parts: list[EntryPart]
    healed: int
    pruned: int
    unhealed: dict[str, Unhealed]
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """Indexes batches of changes into a table.

    Attributes:
        table: index table.
        heal: reads missing events from the store.
        ids: draws the identity of a write.
        limits: when epochs close.
        pause: waits for a random part of so many seconds, and returns whether any time has passed.
    """

    table: str
    heal: Heal
    ids: Callable[[], Ids]
    limits: EpochLimits = STANDARD
    pause: Callable[[float], bool] = no_pause

    def ingest(
        self, partition: Partition, changes: Sequence[Change], times: Times = no_times
    ) -> Steps[Ingested]:
        """Index a batch of changes in the order of their appends, and return what was done.

        When this returns, the whole batch is indexed except for streams that are `unhealed`. Events read from the store
        are placed among the others by time, where `times` has theirs.
        """
        yield from self._open(partition, changes)
        events, removals, healed, pruned = 0, 0, 0, 0
        least_healed = least_pruned = 0
        while True:
            new = yield from self._resolve(partition, changes, times)
            rest = yield from self._write_all(partition, new.parts)
            written = _events_in(new.parts) - _events_in(rest)
            events += written
            removals += len(removals_in(new.parts)) - len(removals_in(rest))
            complete = not rest
            if written or complete:
                # Deciding again finds what is left of the gaps of before: they are not counted twice. Those of a
                # round that wrote nothing were none: what was held was out of date.
                least_healed, least_pruned = max(least_healed, new.healed), max(least_pruned, new.pruned)
            if not complete:
                continue
            healed, pruned = healed + least_healed, pruned + least_pruned
            least_healed = least_pruned = 0
            if new.whole:
                partition.calm()
                return Ingested(
                    events=events, healed=healed, pruned=pruned, removals=removals, unhealed=new.unhealed
                )

    def _open(self, partition: Partition, changes: Sequence[Change]) -> Steps[None]:
        """Load a partition's epochs, unless held; if others write too, read marks, pause, and refresh them."""
        if partition.loaded is None:
            partition.hold((yield from load_newest(self.table, partition.number)))
        elif partition.shared:
            # What else must be read is read first: so hardly anybody can write between the look and the write.
            yield from self._read_marks(partition, changes)
            self.pause(partition.spread)
            yield from self._refresh(partition)

    def _refresh(self, partition: Partition, tip: Tip | None = None) -> Steps[None]:
        """Apply others' writes to the partition, reading at most thrice; note whether there were any."""
        first = partition.state.active
        number, version = first.number, first.version
        for _ in range(MAX_REFRESHES):
            active = partition.state.active
            if tip is None:
                tip = yield from epoch_tip(self.table, partition.number, active.number)
            if tip is None and active.tip is None:
                break
            near = tip is not None and tip.span.base <= active.version
            partition.hold((yield from refresh(self.table, partition.number, partition.state, tip)))
            if near and partition.state.active is active:
                break
            tip = None
        active = partition.state.active
        partition.shared = (active.number, active.version) != (number, version)
        partition.crowding.count_others(active.version - (version if active.number == number else 0))

    def _read_marks(self, partition: Partition, changes: Sequence[Change]) -> Steps[None]:
        """Read into the partition the marks of streams that neither epoch has; nothing before the third epoch."""
        loaded = partition.state
        if loaded.active.number < FIRST_MARKED:
            return
        unknown = [
            stream
            for stream in unknown_streams(changes, loaded.active, loaded.previous)
            if stream not in partition.marked
        ]
        marks = yield from read_marks(self.table, partition.number, partition.leaves, unknown)
        partition.marked.update((stream, marks.get(stream, 0)) for stream in unknown)

    def _resolve(self, partition: Partition, changes: Sequence[Change], times: Times) -> Steps[_NewParts]:
        """Return what the index lacks of a batch, or a first piece, with gaps filled from the store.

        The result is in the order of the writes. Marks are read after the epochs.
        """
        yield from self._read_marks(partition, changes)
        loaded, marks = partition.state, partition.marked
        new_spans: list[Span] = []
        removals: dict[tuple[str, int, str], Removal] = {}
        healed_at: dict[int, Ticks] = {}
        whole = True
        healed = pruned = size = 0
        unhealed: dict[str, Unhealed] = {}
        for step in decide(changes, lambda stream: next_of(stream, loaded, marks)):
            if step.stream in unhealed:
                continue
            if isinstance(step, Span):
                new_spans.append(step)
                continue
            if isinstance(step, Removal):
                # A prune of many pages is one, where they come together.
                key = step.stream, step.next, step.kind
                removals[key] = step._replace(first=removals.pop(key, step).first)
                continue
            try:
                piece = yield from self.heal(step)
            except CorruptData as cause:
                unhealed[step.stream] = Unhealed(index=step.index, cause=cause)
                continue
            healed, pruned = healed + piece.events, pruned + _pruned_events(step, piece)
            healed_at.update(
                (place, time) for place, time in enumerate(piece.times, len(new_spans)) if time is not None
            )
            new_spans += piece.spans
            size += piece.size
            if not piece.whole or size >= PIECE:
                whole = False
                break
        spans = merge_spans(sort_by_time(new_spans, healed_at, times()) if healed_at else new_spans)
        parts = merge_removals(spans, removals.values())
        return _NewParts(parts=parts, healed=healed, pruned=pruned, unhealed=unhealed, whole=whole)

    def _write_all(self, partition: Partition, parts: list[EntryPart]) -> Steps[list[EntryPart]]:
        """Append the parts as entries until a write is refused or the epochs change; return what is left."""
        decided_on = partition.state
        while parts:
            first, rest = split_entry(parts)
            if not (yield from self._write(partition, decided_on, first)):
                break
            parts = rest
            if partition.state is not decided_on:
                break
        return parts

    def _write(self, partition: Partition, loaded: LoadedEpochs, parts: list[EntryPart]) -> Steps[bool]:
        """Write due marks, then append one entry, and `Closed` if full; return False if others wrote first.

        After a refusal the epoch is refreshed.
        """
        active, ids = loaded.active, self.ids()
        spans, removals = spans_in(parts), removals_in(parts)
        entry = write_entry(spans, active.next.keys(), ids.timestamp)
        fullness = active.fullness(self.limits, len(entry.data.data), parts)
        due = partition.due(fullness)
        if due > active.marked:
            yield from self._write_due_marks(partition, due)
        content = Entry(spans, due, removals)
        new = _new_streams(content, parts, lambda stream: next_of(stream, loaded, partition.marked))
        entry = with_own_metadata(entry, due if due > active.marked else 0, removals, new)
        closes = fullness >= 1 and due >= len(partition.forgotten)
        events = [entry, closing_entry(ids.timestamp)] if closes else [entry]
        batch = batch_of(
            epoch_stream(partition.number, active.number), events, etag=ids.etag, append_id=ids.append_id
        )
        result = yield from append_on(self.table, batch, active.tip)
        if isinstance(result, Conflict):
            partition.refused()
            if self.pause(partition.spread):
                yield from self._refresh(partition)
            else:
                yield from self._refresh(partition, refusing_head(result))
            partition.shared = True
            return False
        active.add(content, event_bytes(batch.span), tip_after(batch, active.tip, result.token))
        if closes:
            active.fold(None)
            yield from start_epoch(self.table, partition.number, active.number + 1, self.ids())
            partition.hold((yield from load_next(self.table, partition.number, active)))
        return True

    def _write_due_marks(self, partition: Partition, due: int) -> Steps[None]:
        """Write the marks that are missing up to a number of forgotten streams."""
        marks, number = partition.marks(due), partition.state.active.number
        if number == 1 and not marks:
            yield from begin_marks(self.table, partition.number)
        yield from write_marks(self.table, partition.number, partition.leaves, marks, single=number > 1)


def _new_streams(entry: Entry, parts: Iterable[EntryPart], next_of: Callable[[str], int]) -> list[int]:
    """List the positions of an entry's streams that are new to the index but do not begin at 0."""
    begins: dict[str, bool] = {}
    for part in parts:
        begins.setdefault(part.stream, isinstance(part, Span) and not part.index)
    unknown = {stream for stream, begins_at_0 in begins.items() if not begins_at_0 and next_of(stream) == 0}
    return [number for number, stream in enumerate(entry.streams) if stream in unknown] if unknown else []


def sort_by_time(
    spans: Sequence[Span], healed_at: Mapping[int, Ticks], times: Mapping[tuple[str, int], Ticks]
) -> list[Span]:
    """Place healed spans before the first other span of a later time, and return all in order.

    The other spans stay in their order, which is that of a shard, and so do the spans of a stream.
    """
    recorded = [place for place in range(len(spans)) if place not in healed_at]
    write_times = [times.get((spans[place].stream, spans[place].next)) for place in recorded]
    rank = {place: number for number, place in enumerate(recorded)}
    following: dict[str, int] = {}
    ends: dict[int, int] = {}
    for place in reversed(range(len(spans))):
        if place in rank:
            following[spans[place].stream] = rank[place]
        else:
            ends[place] = following.get(spans[place].stream, len(recorded))
    keys: list[tuple[int, bool, int, int]] = []
    reached: dict[str, tuple[int, int]] = {}
    for place, (stream, _, _) in enumerate(spans):
        number, time = reached.get(stream, (0, 0))
        if place in rank:
            number = rank[place]
            keys.append((number, True, 0, place))
            reached[stream] = (number + 1, time)
            continue
        time = max(time, healed_at[place])
        while number < ends[place] and (write_times[number] or 0) <= time:
            number += 1
        keys.append((number, False, time, place))
        reached[stream] = (number, time)
    return [spans[place] for *_, place in sorted(keys)]


def _events_in(parts: Iterable[EntryPart]) -> int:
    """Count the events in parts of an entry."""
    return sum(len(part.types) for part in parts)


def _pruned_events(gap: Gap, piece: Healed) -> int:
    """Count the events of a gap that the store no longer has; they count up to the end of the piece."""
    reached = piece.spans[-1].next if piece.spans else gap.index
    if piece.whole and gap.end is not None:
        reached = gap.end
    return reached - gap.index - piece.events


def next_of(stream: str, loaded: LoadedEpochs, marks: dict[str, int]) -> int:
    """Return the next index of a stream to be indexed, from the epochs or its mark."""
    if stream in loaded.active.next:
        return loaded.active.next[stream]
    if loaded.previous is not None and stream in loaded.previous.next:
        return loaded.previous.next[stream]
    return marks.get(stream, 0)
