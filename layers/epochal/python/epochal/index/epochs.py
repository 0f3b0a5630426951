"""The state of an epoch: how far each of its streams is indexed. Folds entries, and decides what a batch adds.

    next of a stream = in the active epoch, else in its predecessor, else its mark, else 0

What is below `next` is already indexed and dropped; what is above it leaves a gap, which is healed from the store
before the span is written. An unknown stream is never assumed to be new (DESIGN §5.9, §5.10).

The mark of a stream's latest removal is kept in the same way, as the `next` of a stream of another name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from epochal.codec.bodies import decode_inline, encode
from epochal.errors import CorruptData, InvalidInput
from epochal.index.checkpoints import SERIES, removal_name
from epochal.index.entries import Entry, EntryPart, epoch_tip, read_entry, stored_entries
from epochal.index.tip import Tip, advance, cursor_at, event_bytes, load_tip, read_event, read_unfold
from epochal.layout.changes import Change, Removal, Touched, end_of_mark
from epochal.layout.healing import Gap
from epochal.layout.registry import base_of
from epochal.layout.streams import EncodedEvent, EncodedUnfold, Written
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.plan.ops import Steps

if TYPE_CHECKING:
    from epochal.index.tip_append import Ids


MAX_ENTRIES: Final = 1_000_000
"""A checkpoint's offset counts to 1,048,575; what is left is for entries that come while marks are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochLimits:
    """The limits of an epoch: it closes when any of them is exceeded.

    Attributes:
        bytes: bytes of the epoch's entries. A cold indexer must read twice as many (active epoch and predecessor).
        entries: number of entries; far below the million that a checkpoint's offset can hold.
        streams: number of streams. An indexer holds twice as many in memory. The leaves of a million streams' marks are
            written once an epoch, so the more streams an epoch has, the less that costs per event.
    """

    bytes: int = 2 * 1024 * 1024
    entries: int = 5_000
    streams: int = 200_000

    def __post_init__(self) -> None:
        """Check that all limits are at least 1, and entries at most what a checkpoint counts."""
        for name in ("bytes", "entries", "streams"):
            if getattr(self, name) < 1:
                raise InvalidInput(name, "must be at least 1")
        if self.entries > MAX_ENTRIES:
            raise InvalidInput(
                "entries", f"must be at most {MAX_ENTRIES:,}: a checkpoint counts no more in an epoch"
            )


STANDARD: Final = EpochLimits()


@dataclass(slots=True, kw_only=True)
class Epoch:
    """The state of one epoch in an indexer. It is mutable, because it grows batch by batch to 200,000 streams.

    Attributes:
        number: number of the epoch in its partition.
        next: next index to be indexed, by stream; and under `removal_name` of a stream, the mark of its latest removal.
        version: number of entries in the epoch.
        size: bytes of these entries, as stored.
        closed: whether it has its `Closed` entry.
        marked: number of its predecessor's streams, in the order of their hashes, that need no mark any more.
        known: its Tip, on which the next append relies.
    """

    number: int
    next: dict[str, int] = field(default_factory=dict)
    version: int = 0
    size: int = 0
    closed: bool = False
    marked: int = 0
    known: Tip | None = None

    def fold(self, entry: Entry | None) -> None:
        """Apply one entry to the state; None is `Closed`."""
        self.version += 1
        if entry is None:
            self.closed = True
            return
        self.marked = max(self.marked, entry.marked)
        for span in entry.spans:
            self.next[span.stream] = span.next
        for removal in entry.removals:
            self.next[removal_name(removal.stream)] = removal.mark
            # What was gone before it could be indexed is not told when its record comes after all.
            self.next[removal.stream] = max(removal.next, self.next.get(removal.stream, 0))

    def add(self, entry: Entry, size: int, tip: Tip) -> None:
        """Apply an entry that was just written, with its size in bytes and the Tip that it left."""
        self.fold(entry)
        self.size += size
        self.known = tip

    def fullness(self, limits: EpochLimits, size: int, spans: Iterable[EntryPart]) -> float:
        """Return how full the epoch would be after an entry with these spans: 1 is full."""
        fresh = {span.stream for span in spans if span.stream not in self.next}
        return max(
            (self.size + size) / limits.bytes,
            (self.version + 1) / limits.entries,
            (len(self.next) + len(fresh)) / limits.streams,
        )


def unknown_streams(spans: Iterable[Change], active: Epoch, previous: Epoch | None) -> list[str]:
    """List the streams of a batch that neither epoch contains, so that their marks must be read."""
    names = dict.fromkeys(name for change in spans for name in names_of(change))
    return [
        stream
        for stream in names
        if stream not in active.next and (previous is None or stream not in previous.next)
    ]


def names_of(change: Change) -> tuple[str, ...]:
    """Return the names whose next index must be known to decide on a change."""
    return (change.stream, removal_name(change.stream)) if isinstance(change, Removal) else (change.stream,)


def decide(spans: Iterable[Change], next_of: Callable[[str], int]) -> list[EntryPart | Gap]:
    """Decide which changes of a batch are new to the index, in order, and the gaps before them.

    Pure, so that it can be repeated. A stream that is read to its end brings what later records of the batch say: these
    events were appended before.
    """
    reached: dict[str, int] = {}
    new_marks: dict[str, int] = {}
    read_to_end: set[str] = set()
    steps: list[EntryPart | Gap] = []
    for span in spans:
        next_index = reached[span.stream] if span.stream in reached else next_of(span.stream)
        if isinstance(span, Removal):
            mark = new_marks.get(span.stream) or next_of(removal_name(span.stream))
            if span.mark <= mark:
                continue
            at = max(span.next, span.end)
            if at > next_index and span.stream not in read_to_end:
                # What is gone cannot be read any more, and what is not comes before it.
                steps.append(Gap(stream=span.stream, index=next_index, end=at))
                reached[span.stream] = at
            at = max(at, next_index)
            steps.append(span._replace(first=end_of_mark(mark), next=at))
            new_marks[span.stream] = span.mark
            continue
        if span.stream in read_to_end:
            continue
        if isinstance(span, Touched):
            steps.append(Gap(stream=span.stream, index=next_index, end=None))
            read_to_end.add(span.stream)
            continue
        if span.next <= next_index:
            continue
        if span.index > next_index:
            steps.append(Gap(stream=span.stream, index=next_index, end=span.index))
        steps.append(span.since(next_index))
        reached[span.stream] = span.next
    return steps


# Reading epochs back: whole ones for an indexer, what is new since a version, or the entries from a checkpoint on.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedEpochs:
    """The part of a partition that an indexer holds: the active epoch and its predecessor."""

    active: Epoch
    previous: Epoch | None


def load_newest(table: str, partition: int) -> Steps[LoadedEpochs]:
    """Load a partition's active epoch and its predecessor, starting where the series says it is."""
    series = yield from read_series(table)
    return (yield from load(table, partition, series.active.get(partition, 0)))


def load(table: str, partition: int, epoch: int) -> Steps[LoadedEpochs]:
    """Load the first epoch at or after `epoch` that is not closed, and its predecessor."""
    if epoch > 0:
        return (yield from load_next(table, partition, (yield from _load_epoch(table, partition, epoch - 1))))
    first = yield from _load_epoch(table, partition, 0)
    if not first.closed:
        return LoadedEpochs(active=first, previous=None)
    return (yield from load_next(table, partition, first))


def refresh(table: str, partition: int, loaded: LoadedEpochs, tip: Tip | None = None) -> Steps[LoadedEpochs]:
    """Apply entries that others have written since, and move on if they closed the epoch.

    If the epoch has been deleted, begin from nothing: only the loaded state says that it ever existed.

    Args:
        tip: Tip of the active epoch, if a refused write has returned it.
    """
    number = loaded.active.number
    if tip is None:
        tip = yield from epoch_tip(table, partition, number)
    if tip is None and loaded.active.known is not None:
        return (yield from load(table, partition, number))
    yield from _catch_up(table, partition, loaded.active, tip)
    if not loaded.active.closed:
        return loaded
    return (yield from load_next(table, partition, loaded.active))


def load_next(table: str, partition: int, closed: Epoch) -> Steps[LoadedEpochs]:
    """Load the active epoch and its predecessor after an epoch that has closed.

    If the next one has closed too, the series tells how many have.
    """
    previous, active = closed, (yield from _load_epoch(table, partition, closed.number + 1))
    if active.closed:
        reached = (yield from read_series(table)).active.get(partition, 0)
        if reached > active.number + 1:
            previous = yield from _load_epoch(table, partition, reached - 1)
            active = yield from _load_epoch(table, partition, reached)
    while active.closed:
        previous, active = active, (yield from _load_epoch(table, partition, active.number + 1))
    return LoadedEpochs(active=active, previous=previous)


def _load_epoch(table: str, partition: int, number: int) -> Steps[Epoch]:
    """Load one epoch with all of its entries."""
    epoch = Epoch(number=number)
    yield from _catch_up(table, partition, epoch)
    return epoch


def _catch_up(table: str, partition: int, epoch: Epoch, tip: Tip | None = None) -> Steps[None]:
    """Read and apply the entries that an epoch's state lacks."""
    if tip is None:
        tip = yield from epoch_tip(table, partition, epoch.number)
    if tip is None:
        return
    cursor = cursor_at(tip, epoch.version)
    while not cursor.at_end:
        pages = yield from advance(table, cursor)
        for _, kind, event in stored_entries(pages.spans):
            epoch.fold(read_entry(read_event(kind, event)))
        cursor = pages.cursor
    epoch.known = tip
    epoch.size = tip.calved + event_bytes(tip.span)


# `$AppendsIndex-0`: the epoch each partition has reached, and the partitions of each source. Started
# {"partition","epoch"} one for each epoch begun Snapshotted unfold
# {"active":{"<partition>":epoch},"partitions":{"<source>":P}} `active` may lag behind the truth, which is the epochs
# themselves: its readers walk on past closed ones. `refused` {"<source>":[P,"since"]} is there while an indexer cannot
# run, since it is deployed for another number of partitions. `failing` {"<source>":["since","last","cause"]} is there
# after an indexer has failed (`indexer_failures`).

STARTED: Final = "Started"
SNAPSHOTTED: Final = "Snapshotted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCount:
    """A number of partitions that an indexer is deployed for but the index does not have, and since when."""

    partitions: int
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerFailure:
    """Why the indexer of a source fails, since when, and when it failed last."""

    since: str
    last: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The content of the series: how far partitions are, and which indexers do not work.

    Attributes:
        active: number of the active epoch, by partition; a missing partition is in epoch 0.
        partitions: number of partitions, by source.
        refused: by source, the other number of partitions that its indexer is deployed for, with which it does not
            start.
        failing: by source, why its indexer failed; the index may have moved on since.
    """

    active: dict[int, int] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    refused: dict[str, RefusedCount] = field(default_factory=dict)
    failing: dict[str, IndexerFailure] = field(default_factory=dict)

    def refusal(self, source: str) -> str:
        """Explain why the indexer of a source does not start, and what to do; empty if nothing is recorded."""
        refused = self.refused.get(source)
        if refused is None:
            return ""
        return (
            f"the indexer has failed since {refused.since}: it is deployed for {refused.partitions} partitions of "
            f"{source}, and the index has {self.partitions[source]}. Deploy {self.partitions[source]} again, "
            "or rebuild the index"
        )

    def reached(self) -> Iterator[tuple[int, int]]:
        """Iterate over all recorded partitions in order, with an epoch that each has reached."""
        for base, count in sorted((base_of(source), count) for source, count in self.partitions.items()):
            for partition in range(base, base + count):
                yield partition, self.active.get(partition, 0)


def read_series(table: str) -> Steps[Series]:
    """Read the series, in one request."""
    return _series_in((yield from load_tip(table, SERIES)))


def start_epoch(table: str, partition: int, epoch: int, ids: Ids) -> Steps[Series]:
    """Record in the series that a partition has reached an epoch, unless it is further already."""

    def change(series: Series) -> Series:
        """Raise the partition's epoch in the series."""
        reached = max(epoch, series.active.get(partition, 0))
        return replace(series, active={**series.active, partition: reached})

    body = json.dumps({"partition": partition, "epoch": epoch}, separators=(",", ":")).encode()
    started = EncodedEvent(type=STARTED, data=encode(body), timestamp=ids.timestamp)
    return (yield from change_series(table, change, (started,), ids))


def register(table: str, partitions: Mapping[str, int], ids: Ids) -> Steps[dict[str, int]]:
    """Record the number of partitions of each source, and return the recorded numbers.

    A source that is new is recorded with the given number. For a known source with another number, that number is
    recorded as refused, until the source is registered with the right one.
    """
    series = yield from read_series(table)
    if _with_partitions(series, partitions, ids) != series:
        series = yield from change_series(table, lambda now: _with_partitions(now, partitions, ids), (), ids)
    return series.partitions


def _with_partitions(series: Series, partitions: Mapping[str, int], ids: Ids) -> Series:
    """Return the series with sources registered: new numbers recorded, differing ones refused."""
    recorded = {**partitions, **series.partitions}
    refused = {source: refusal for source, refusal in series.refused.items() if source not in partitions}
    for source, count in partitions.items():
        if count != recorded[source]:
            earlier = series.refused.get(source)
            if earlier is None or earlier.partitions != count:
                earlier = RefusedCount(partitions=count, since=ids.timestamp)
            refused[source] = earlier
    return replace(series, partitions=recorded, refused=refused)


def change_series(
    table: str, change: Callable[[Series], Series], events: tuple[EncodedEvent, ...], ids: Ids
) -> Steps[Series]:
    """Apply a change to the series and store it; repeat it on the new state if others wrote meanwhile.

    Nothing is written if the change has no effect.
    """
    # What only reads the feed starts without it.
    from epochal.index.tip_append import append_on, batch_of  # noqa: PLC0415

    tip = yield from load_tip(table, SERIES)
    while True:
        series = change(_series_in(tip))
        if tip is not None and series == _series_in(tip):
            return series
        batch = batch_of(
            SERIES, events, (_encode_series(series, ids),), etag=ids.etag, append_id=ids.append_id
        )
        result = yield from append_on(table, batch, tip)
        if isinstance(result, Written):
            return series
        tip = result.head


def _series_in(tip: Tip | None) -> Series:
    """Decode the series in a Tip; return an empty one if there is none."""
    for stored in () if tip is None else map(read_unfold, tip.unfolds):
        if stored.type == SNAPSHOTTED:
            return _decode_series(stored)
    return Series()


def _decode_series(stored: EncodedUnfold) -> Series:
    """Decode the stored snapshot of the series; raise `CorruptData` if it is malformed."""
    try:
        fields = json.loads(decode_inline(stored.data))
        active = {int(partition): int(epoch) for partition, epoch in fields["active"].items()}
        partitions = {str(source): int(count) for source, count in fields.get("partitions", {}).items()}
        refused = {
            str(source): RefusedCount(partitions=int(count), since=str(since))
            for source, (count, since) in fields.get("refused", {}).items()
        }
        failing = {
            str(source): IndexerFailure(since=str(since), last=str(last), cause=str(cause))
            for source, (since, last, cause) in fields.get("failing", {}).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptData(f"{SERIES}: its snapshot cannot be read") from error
    return Series(active=active, partitions=partitions, refused=refused, failing=failing)


def _encode_series(series: Series, ids: Ids) -> EncodedUnfold:
    """Encode the series as the unfold that stores it."""
    active = {str(partition): epoch for partition, epoch in sorted(series.active.items())}
    fields: dict[str, Any] = {"active": active, "partitions": series.partitions}
    if series.refused:
        fields["refused"] = {
            source: [record.partitions, record.since] for source, record in series.refused.items()
        }
    if series.failing:
        fields["failing"] = {
            source: [record.since, record.last, record.cause] for source, record in series.failing.items()
        }
    body = json.dumps(fields, separators=(",", ":")).encode()
    return EncodedUnfold(version=0, type=SNAPSHOTTED, data=encode(body), timestamp=ids.timestamp)
