"""What must hold of an index, whatever happened: checked at every write, at every page read, and at rest.

at every write     no epoch goes on while its predecessor is open; nothing follows `Closed`; no mark is lowered, and
                   each has one leaf; the series is never ahead of the epochs
at every page      checkpoints grow, and a page begins where the one before it ended
at rest            each stream is there from its first event to its last, once, in order; what is missing was
                   pruned before it could be indexed; every reader saw exactly what is there. The last removal of each
                   stream that a record told is there; each is there once, after what it removed and before what follows
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from epochal.index.checkpoints import BEGINNING, SERIES, Checkpoint, epoch_stream, is_tip, tip_key
from epochal.index.entries import CLOSED, Entry
from epochal.index.feed_walk import FeedWalk, step
from epochal.index.marks import PLACES, decode_leaf, hash_place
from epochal.index.series import read_series
from epochal.layout.changes import Removal
from epochal.plan.ops import BatchGet, Done, Found, Get, Op, Put, Query, Reply, Steps, Transact, Update
from epochal.plan.values import Item, Key
from epochal.testing.memory import MemoryTables

EPOCH = re.compile(r"\$AppendsEpoch-(\d+)_(\d+)")
MARKS = "$Marks-"
WRITES = Put | Update | Transact


@dataclass(slots=True)
class Watch:
    """An interpreter that looks at every write to the index.

    Attributes:
        closed: how many epochs have closed before its eyes.
    """

    tables: MemoryTables
    closed: int = 0

    def execute(self, op: Op) -> Reply:
        """Perform a request of an indexer, and check the index afterwards."""
        if isinstance(op, WRITES):
            assert {each.table for each in writes_of(op)} == {"index"}, (
                "the indexer writes to its index alone"
            )
            return self.write(op)
        assert isinstance(op, Get | BatchGet | Query), f"the indexer must not {op}"
        return self.tables.execute(op)

    def write(self, op: Put | Update | Transact) -> Reply:
        """Perform a write to the index, and check the index afterwards."""
        keys = [key_of(each) for each in writes_of(op)]
        before = [item_of(self.tables, key) for key in keys]
        name = keys[0]["p"]["S"]
        marks = marks_of(self.tables, name)
        reply = self.tables.execute(op)
        if isinstance(reply, Done) and name.startswith(MARKS):
            after = marks_of(self.tables, name)
            lowered = [hashed for hashed, mark in marks.items() if mark > after.get(hashed, 0)]
            assert not lowered, f"{name} is lowered"
        elif isinstance(reply, Done):
            for key, was in zip(keys, before, strict=True):
                item = item_of(self.tables, key)
                assert item is not None
                self._check(key["p"]["S"], was, item)
        return reply

    def _check(self, name: str, before: Item | None, after: Item) -> None:
        epoch = EPOCH.fullmatch(name)
        if name == SERIES:
            for partition, reached in perform(self.tables, read_series("index")).active.items():
                begun = reached == 0 or self._has_closed(partition, reached - 1)
                assert begun, "the series is ahead of the epochs"
        elif epoch is not None and is_tip(after):
            self._check_epoch(int(epoch[1]), int(epoch[2]), before, after)

    def _check_epoch(self, partition: int, number: int, before: Item | None, after: Item) -> None:
        assert not closed(before), f"an entry follows the end of epoch {number}"
        alone = number == 0 or self._has_closed(partition, number - 1)
        assert alone, f"a fork: epoch {number} goes on, its predecessor is open"
        self.closed += closed(after)

    def _has_closed(self, partition: int, number: int) -> bool:
        return closed(item_of(self.tables, tip_key(epoch_stream(partition, number))))


def perform(tables: MemoryTables, steps: Steps[Any]) -> Any:
    """Run steps at once, without other processes."""
    reply = None
    while True:
        try:
            reply = tables.execute(steps.send(reply))
        except StopIteration as end:
            return end.value


def writes_of(op: Put | Update | Transact) -> list[Put | Update]:
    """Return the writes of single items in a request."""
    if not isinstance(op, Transact):
        return [op]
    return [write for write in op.writes if isinstance(write, Put | Update)]


def marks_of(tables: MemoryTables, name: str) -> dict[bytes, int]:
    """Return the marks of a partition by hash, each from the leaf that covers it."""
    items = (
        [item for item in tables.items("index") if item["p"]["S"] == name] if name.startswith(MARKS) else []
    )
    found: dict[bytes, int] = {}
    at = 0
    for leaf in sorted(map(decode_leaf, items), key=lambda leaf: leaf.start):
        assert leaf.start == at, f"{name} has two leaves for a place, or none"
        assert all(leaf.start <= hash_place(hashed) < leaf.end for hashed in leaf.marks())
        found.update(leaf.marks())
        at = leaf.end
    assert at in (0, PLACES), f"{name} lacks its last leaf"
    return found


def key_of(op: Put | Update) -> Key:
    """Return the key of the item that a write changes."""
    return {name: op.item[name] for name in ("p", "i")} if isinstance(op, Put) else op.key


def item_of(tables: MemoryTables, key: Key) -> Item | None:
    """Return an item of the index."""
    reply = tables.execute(Get(table="index", key=key))
    assert isinstance(reply, Found)
    return reply.item


def closed(tip: Item | None) -> bool:
    """Return whether an epoch is closed."""
    return tip is not None and "c" in tip and tip["c"]["L"][-1] == {"S": CLOSED}


@dataclass(slots=True)
class Reading:
    """A reader of a partition of the feed: its start, the events that it has seen, and its checkpoint."""

    partition: int = 0
    start: Checkpoint = BEGINNING
    seen: list[tuple[Entry, Checkpoint]] = field(default_factory=list)
    walk: FeedWalk = field(init=False)

    def __post_init__(self) -> None:
        self.walk = FeedWalk(partition=self.partition, at=self.start)

    @classmethod
    def resumed(cls, other: Reading | None) -> Reading:
        """Return a reader that begins at the checkpoint of another."""
        return cls() if other is None else cls(partition=other.partition, start=other.walk.at)

    @classmethod
    def whole(cls, tables: MemoryTables, partition: int = 0) -> Reading:
        """Return a reader that has read everything."""
        reading = cls(partition=partition)
        reading.to_the_tail(tables)
        return reading

    def read(self, tables: MemoryTables) -> None:
        """Read the next page."""
        stretch = perform(tables, step("index", self.walk))
        at = self.walk.at
        for _, after in stretch.entries:
            assert after > at, f"a checkpoint goes back from {at} to {after}"
            at = after
        assert stretch.walk.at >= at
        self.seen += stretch.entries
        self.walk = stretch.walk

    def to_the_tail(self, tables: MemoryTables) -> None:
        """Read pages until nothing more comes."""
        at = None
        while at != self.walk.at:
            at = self.walk.at
            self.read(tables)


def named(stream: str, index: int) -> str:
    """Return the type of an event that tells its stream and index."""
    return f"{stream}:{index}"


def check_order(
    seen: list[tuple[Entry, Checkpoint]],
    pruned: dict[str, int],
    type_of: Callable[[str, int], str] = named,
) -> dict[str, int]:
    """Check that no stream goes back or skips events that were not pruned; return how far each one got."""
    reached: dict[str, int] = {}
    removed: dict[str, Removal] = {}
    for span in (part for entry, _ in seen for part in entry.parts):
        following = reached.get(span.stream, 0)
        before = removed.get(span.stream)
        if isinstance(span, Removal):
            assert before is None or span.mark > before.mark, f"a removal comes again: {span} after {before}"
            assert span.first == (0 if before is None else before.end), f"{span} does not follow {before}"
            assert following <= span.next, f"{span} is told before events that it is after"
            assert span.end <= pruned.get(span.stream, 0), f"{span} is not what was pruned"
            removed[span.stream] = span
            continue
        assert before is None or span.index >= before.next, f"{span} comes after {before}"
        assert span.index >= following, f"backwards: {span.stream} is at {following}, then comes {span.index}"
        gap = span.index > max(following, pruned.get(span.stream, 0))
        assert not gap, f"a gap: {span.stream} from {following} to {span.index}"
        assert span.types == tuple(type_of(span.stream, index) for index in range(span.index, span.next))
        reached[span.stream] = span.next
    return reached


def check_feed(
    tables: MemoryTables,
    types: dict[str, list[str]],
    pruned: dict[str, int],
    readings: list[Reading],
    removed: dict[str, int],
    *,
    cared_for: bool = False,
) -> None:
    """The feed has the events of these types, by stream, and the removals of these marks, and is what readers saw.
    Where somebody cares for the index, there may be removals that no record told.
    """
    whole = Reading.whole(tables)
    marks = {each.stream: each.mark for entry, _ in whole.seen for each in entry.removals}
    lacking = {stream for stream, mark in removed.items() if marks.get(stream, 0) < mark}
    beyond = {stream for stream, mark in marks.items() if removed.get(stream, 0) < mark}
    assert not lacking, f"removals are lost: {removed} were told, {marks} are indexed"
    assert cared_for or not beyond, f"removals are made up: {removed} were told, {marks} are indexed"
    reached = check_order(whole.seen, pruned, lambda stream, index: types[stream][index])
    truth = {stream: len(own) for stream, own in types.items()}
    assert reached == truth, f"lost: {truth} were appended, {reached} are indexed"
    for reading in readings:
        reading.to_the_tail(tables)
        assert reading.seen == [(entry, at) for entry, at in whole.seen if at > reading.start]
