"""The stream of a table in memory, as those who read it find it: shards that split, each in the order of its writing.

DynamoDB splits shards as it likes. A shard that has split gets nothing more; its children are read once it has come to
its end, and go on side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from epochal.testing.memory import MemoryTables
from tests.core.feed.events import stream_record
from tests.simulation.index_event_source import StreamRecord, share_of


@dataclass(slots=True)
class Shard:
    """Records of some keys.

    Attributes:
        parent: the one it was split from.
        done: records before this one are dealt with.
        busy: someone is at the next ones.
    """

    parent: Shard | None = None
    records: list[StreamRecord] = field(default_factory=list)
    done: int = 0
    busy: bool = False

    @property
    def drained(self) -> bool:
        """Whether all records of the shard are processed."""
        return self.done == len(self.records)

    @property
    def ready(self) -> bool:
        """Whether the mapping would deliver a batch of the shard now."""
        return not (self.drained or self.busy) and (self.parent is None or self.parent.drained)

    @contextmanager
    def next(self, count: int) -> Iterator[list[StreamRecord]]:
        """So many of its records at most, which nobody else gets meanwhile; dealt with at the end of the block."""
        batch = self.records[self.done : self.done + count]
        self.busy = True
        try:
            yield batch
            self.done += len(batch)
        finally:
            self.busy = False


@dataclass(slots=True)
class TableStream:
    """What a table has to tell.

    Attributes:
        open: shards that new records go to, by their keys.
        shards: all there ever were.
        seen: changes of the table that are records by now.
    """

    tables: MemoryTables
    table: str
    open: list[Shard] = field(default_factory=lambda: [Shard()])
    shards: list[Shard] = field(init=False)
    seen: int = 0

    def __post_init__(self) -> None:
        self.shards = list(self.open)

    def ready(self) -> list[Shard]:
        """Shards that have a batch to deliver."""
        self._go_on()
        return [shard for shard in self.shards if shard.ready]

    @property
    def drained(self) -> bool:
        """Whether all changes of the table are processed."""
        self._go_on()
        return all(shard.drained for shard in self.shards)

    def split(self) -> None:
        """Split every open shard in two; each key goes to a child of its shard."""
        self._go_on()
        self.open = [Shard(parent=parent) for parent in (*self.open, *self.open)]
        self.shards += self.open

    def _go_on(self) -> None:
        changes = self.tables.changes(self.table)
        for number in range(self.seen, len(changes)):
            record = stream_record(f"{number:021d}", changes[number], table=self.table)
            self.open[share_of(record, len(self.open))].records.append(record)
        self.seen = len(changes)
