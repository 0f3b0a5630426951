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
from epochal.feed.indexer import IndexWriter
from epochal.index.checkpoints import removal_name
from epochal.index.epochs import load_newest, names_of, refresh, unknown_streams
from epochal.index.ingestion import Ingested, Partition, next_of
from epochal.index.marks import read_marks
from epochal.layout.port import Change, End, Removal, Source, Touched, end_since
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Get, Steps
from epochal.plan.values import Key


def reached(table: str, partition: Partition, changes: Sequence[Change]) -> Steps[dict[str, int]]:
    """The next index to be indexed of each stream that changes are of, not older than this call, and of one that has
    a removal the mark of that. `partition` keeps what was read.
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
    """The index lacks events `index` to `end` - 1 of a stream, or a removal of events, or both."""

    head: ScannedHead
    partition: int
    index: int
    end: int
    removal: Removal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mender(IndexWriter):
    """Compares heads with an index, and mends it."""

    def behind(self, source: Source, partition: int, heads: Iterable[ScannedHead]) -> list[Behind]:
        """Heads of a partition that the index is behind, with what it lacks. Pruned events do not count.

        Raises:
            CorruptData: the newest epochs cannot be read.
        """
        mine = list(heads)
        changes: list[Change] = [head.end.removal or Touched(stream=head.end.stream) for head in mine]
        known = self.on_partition(
            partition, lambda held, asked: reached(self.index_table, held, asked), changes
        )
        found: list[Behind] = []
        for head in mine:
            index, removal = max(known[head.end.stream], head.end.pruned), head.end.removal
            end = self.end_of(source, head.end, index)
            if removal is not None and removal.mark <= known[removal_name(removal.stream)]:
                removal = None
            if end > index or removal is not None:
                found.append(Behind(head=head, partition=partition, index=index, end=end, removal=removal))
        return found

    def reached(self, partition: int, streams: Iterable[str]) -> dict[str, int]:
        """The next index to be indexed of each stream of a partition. Raises `CorruptData` as `behind` does."""
        asked: list[Change] = [Touched(stream=each) for each in streams]
        return self.on_partition(
            partition, lambda held, changes: reached(self.index_table, held, changes), asked
        )

    def end_of(self, source: Source, end: End, index: int) -> int:
        """Where a stream ends, looked for from the event before `index` on where its head does not tell."""
        if end.next is not None:
            return end.next
        return self.driver.run(end_since(source.heal, end.stream, max(index - 1, 0)))[0]

    def again(self, source: Source, key: Key) -> ScannedHead | None:
        """A head as it is now."""
        image = self.driver.ask(Get(table=source.table, key=key)).item
        return next(iter(read_heads(source, () if image is None else (image,))), None)

    def mend(self, source: Source, partition: int, heads: Iterable[ScannedHead]) -> Ingested:
        """Index what heads of a partition tell and the index lacks.

        Raises:
            CorruptData: the newest epochs cannot be read.
        """
        return self.ingest(source.heal, partition, [each for head in heads for each in told_by(source, head)])


def told_by(source: Source, head: ScannedHead) -> list[Change]:
    """What a head tells, and what is gone. Where its events cannot be read, that there are some: healing that stream
    says why not.
    """
    found: list[Change | None]
    try:
        found = [source.told(head.image)]
    except CorruptData:
        found = [Touched(stream=head.end.stream)]
    return [each for each in (*found, head.end.removal) if each is not None]
