"""Brings an index up to the heads, by the indexer's own rule and path.

    behind    heads whose streams the index has less of, strongly consistent and read after the heads
    mend      what a late stream record would have told, ingested as that: what others index meanwhile is dropped

It trusts the index to say how far it has come, and the marks: only a walk of the whole chain checks them
(`index.chain_check`). It is safe beside any number of indexers, since it writes only what they would write. It takes
the memory of two epochs, however many streams there are and however old the index is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from epochal.care.heads import ScannedHead, read_heads
from epochal.errors import CorruptData
from epochal.feed.index_writer import IndexWriter
from epochal.index.checkpoints import removal_name
from epochal.index.epoch_loading import load_newest, refresh
from epochal.index.epochs import names_of, unknown_streams
from epochal.index.ingestion import Ingested, Partition, next_of
from epochal.index.marks import read_marks
from epochal.layout.changes import Change, Removal, Touched
from epochal.layout.healing import end_since
from epochal.layout.source import End, Source
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Get, Steps
from epochal.plan.values import Key


def reached(table: str, partition: Partition, changes: Sequence[Change]) -> Steps[dict[str, int]]:
    """Read up to which index each changed stream is indexed, and up to which mark each removal, by name.

    The answer is not older than this call; `partition` keeps the epochs that were read.
    """
    if partition.loaded is None:
        partition.hold((yield from load_newest(table, partition.number)))
    else:
        partition.hold((yield from refresh(table, partition.number, partition.loaded)))
    loaded = partition.state
    unknown = unknown_streams(changes, loaded.active, loaded.previous)
    marks = yield from read_marks(table, partition.number, partition.leaves, unknown)
    return {name: next_of(name, loaded, marks) for name in dict.fromkeys(chain(*map(names_of, changes)))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A stream of which the index lacks events `index` to `end` - 1, or a removal of events, or both."""

    head: ScannedHead
    partition: int
    index: int
    end: int
    removal: Removal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mender(IndexWriter):
    """Compares heads with an index, and indexes what it lacks."""

    def behind(self, source: Source, partition: int, heads: Iterable[ScannedHead]) -> list[Behind]:
        """Compare heads of a partition with the index, and return those of which it lacks something.

        Pruned events are not lacking.

        Raises:
            CorruptData: the newest epochs cannot be read.
        """
        scanned = list(heads)
        changes: list[Change] = [head.end.removal or Touched(stream=head.end.stream) for head in scanned]
        indexed = self.on_partition(
            partition, lambda held, names: reached(self.index_table, held, names), changes
        )
        behind: list[Behind] = []
        for head in scanned:
            index, removal = max(indexed[head.end.stream], head.end.pruned), head.end.removal
            end = self.end_of(source, head.end, index)
            if removal is not None and removal.mark <= indexed[removal_name(removal.stream)]:
                removal = None
            if end > index or removal is not None:
                behind.append(Behind(head=head, partition=partition, index=index, end=end, removal=removal))
        return behind

    def reached(self, partition: int, streams: Iterable[str]) -> dict[str, int]:
        """Return up to which event the index has each given stream of a partition, by stream.

        Raises:
            CorruptData: the newest epochs cannot be read.
        """
        queries: list[Change] = [Touched(stream=stream) for stream in streams]
        return self.on_partition(
            partition, lambda held, changes: reached(self.index_table, held, changes), queries
        )

    def end_of(self, source: Source, end: End, index: int) -> int:
        """Return the end of a stream: from its head, else by reading on from the event before `index`."""
        if end.next is not None:
            return end.next
        return self.driver.run(end_since(source.heal, end.stream, max(index - 1, 0)))[0]

    def again(self, source: Source, key: Key) -> ScannedHead | None:
        """Read a head again, as it is now; None where it is gone."""
        image = self.driver.ask(Get(table=source.table, key=key)).item
        return next(iter(read_heads(source, () if image is None else (image,))), None)

    def mend(self, source: Source, partition: int, heads: Iterable[ScannedHead]) -> Ingested:
        """Index what the index lacks of these heads' streams, as late stream records would; return the result.

        Raises:
            CorruptData: the newest epochs cannot be read.
        """
        return self.ingest(
            source.heal, partition, [change for head in heads for change in changes_of(source, head)]
        )


def changes_of(source: Source, head: ScannedHead) -> list[Change]:
    """Return the changes that a head tells of: its newest events, and a removal of events, if any.

    Where its events cannot be read, the change is that there are some: healing the stream reports why.
    """
    changes: list[Change | None]
    try:
        changes = [source.change_up_to(head.image)]
    except CorruptData:
        changes = [Touched(stream=head.end.stream)]
    return [change for change in (*changes, head.end.removal) if change is not None]
