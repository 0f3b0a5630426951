"""The state of an epoch: how far each of its streams is indexed. Folds entries, and decides what a batch adds.

    next of a stream = in the active epoch, else in its predecessor, else its mark, else 0

What is below `next` is already indexed and dropped; what is above it leaves a gap, which is healed from the store
before the span is written. An unknown stream is never assumed to be new (DESIGN §5.9, §5.10).

The mark of a stream's latest removal is kept in the same way, as the `next` of a stream of another name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from epochal.errors import InvalidInput
from epochal.index.checkpoints import removal_name
from epochal.index.entries import Entry, EntryPart
from epochal.index.tip import Tip
from epochal.layout.changes import Change, Removal, Touched, end_of_mark
from epochal.layout.healing import Gap
from epochal.lazy_dataclasses import dataclass, field

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
        """Raise `InvalidInput` unless all limits are at least 1, and `entries` at most a million."""
        for name in ("bytes", "entries", "streams"):
            if getattr(self, name) < 1:
                raise InvalidInput(name, "must be at least 1")
        if self.entries > MAX_ENTRIES:
            raise InvalidInput(
                "entries", f"must be at most {MAX_ENTRIES:,}, so that checkpoints can count them"
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
        tip: its Tip, on which the next append relies.
    """

    number: int
    next: dict[str, int] = field(default_factory=dict)
    version: int = 0
    size: int = 0
    closed: bool = False
    marked: int = 0
    tip: Tip | None = None

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
        self.tip = tip

    def fullness(self, limits: EpochLimits, size: int, parts: Iterable[EntryPart]) -> float:
        """Return how full the epoch would be after an entry with these parts: 1 is full."""
        fresh = {part.stream for part in parts if part.stream not in self.next}
        return max(
            (self.size + size) / limits.bytes,
            (self.version + 1) / limits.entries,
            (len(self.next) + len(fresh)) / limits.streams,
        )


def unknown_streams(changes: Iterable[Change], active: Epoch, previous: Epoch | None) -> list[str]:
    """List the names in a batch, of streams and of marks of removals, that neither epoch contains."""
    names = dict.fromkeys(name for change in changes for name in names_of(change))
    return [
        stream
        for stream in names
        if stream not in active.next and (previous is None or stream not in previous.next)
    ]


def names_of(change: Change) -> tuple[str, ...]:
    """Return the names whose next index must be known to decide on a change."""
    return (change.stream, removal_name(change.stream)) if isinstance(change, Removal) else (change.stream,)


def decide(changes: Iterable[Change], next_of: Callable[[str], int]) -> list[EntryPart | Gap]:
    """Decide which changes of a batch are new to the index, in order, and the gaps before them.

    Pure, so that it can be repeated. A stream that is read to its end brings what later records of the batch say: these
    events were appended before.
    """
    reached: dict[str, int] = {}
    new_marks: dict[str, int] = {}
    read_to_end: set[str] = set()
    steps: list[EntryPart | Gap] = []
    for change in changes:
        next_index = reached[change.stream] if change.stream in reached else next_of(change.stream)
        if isinstance(change, Removal):
            mark = new_marks.get(change.stream) or next_of(removal_name(change.stream))
            if change.mark <= mark:
                continue
            index = max(change.next, change.end)
            if index > next_index and change.stream not in read_to_end:
                # What is gone cannot be read any more, and what is not comes before it.
                steps.append(Gap(stream=change.stream, index=next_index, end=index))
                reached[change.stream] = index
            index = max(index, next_index)
            steps.append(change._replace(first=end_of_mark(mark), next=index))
            new_marks[change.stream] = change.mark
            continue
        if change.stream in read_to_end:
            continue
        if isinstance(change, Touched):
            steps.append(Gap(stream=change.stream, index=next_index, end=None))
            read_to_end.add(change.stream)
            continue
        if change.next <= next_index:
            continue
        if change.index > next_index:
            steps.append(Gap(stream=change.stream, index=next_index, end=change.index))
        steps.append(change.since(next_index))
        reached[change.stream] = change.next
    return steps
