"""Brings an index up to the heads, by the indexer's own rule and path.

    behind    heads whose streams the index has less of, strongly consistent and read after the heads
    mend      what a late stream record would have told, ingested as that: what others index meanwhile is dropped

It trusts the index to say how far it has come. It is safe beside any number of indexers, since it writes only what
they would write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from epochal.errors import CorruptData
from epochal.index.indexed import reached
from epochal.index.ingestion import Ingested
from epochal.indexer.index_writer import IndexWriter
from epochal.layout.port import Change, Source, Touched, end_since
from epochal.layout.registry import head_key
from epochal.model.ends import End
from epochal.model.names import is_fed
from epochal.plan.ops import Get
from epochal.plan.values import Item, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedHead:
    """A head of a source as it was read, or its key alone, and where its stream ended then."""

    source: str
    image: Item
    end: End

    @property
    def key(self) -> Key:
        """Its primary key."""
        return head_key(self.source, self.image)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableHead:
    """A head that cannot be read."""

    key: Key
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The index lacks events `index` to `end` - 1 of a stream."""

    head: ScannedHead
    partition: int
    index: int
    end: int


def read_head(source: Source, image: Item) -> ScannedHead | UnreadableHead | None:
    """A head of the feed; None for any other item."""
    try:
        end = source.end(image)
    except CorruptData as cause:
        return UnreadableHead(key=head_key(source.name, image), cause=f"{type(cause).__name__}: {cause}")
    return (
        None
        if end is None or not is_fed(end.stream)
        else ScannedHead(source=source.name, image=image, end=end)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mender(IndexWriter):
    """Compares heads with an index, and mends it."""

    def behind(self, source: Source, partition: int, heads: Iterable[ScannedHead]) -> list[Behind]:
        """Heads of a partition that the index is behind, with what it lacks. Pruned events do not count.

        Raises:
            CorruptData: the newest epochs cannot be read.
        """
        mine = list(heads)
        streams = [head.end.stream for head in mine]
        known = self.on_partition(
            partition, lambda held, names: reached(self.index_table, held, names), streams
        )
        found: list[Behind] = []
        for head in mine:
            index = max(known[head.end.stream], head.end.pruned)
            end = self.end_of(source, head.end, index)
            if end > index:
                found.append(Behind(head=head, partition=partition, index=index, end=end))
        return found

    def end_of(self, source: Source, end: End, index: int) -> int:
        """Where a stream ends, looked for from the event before `index` on where its head does not tell."""
        if end.next is not None:
            return end.next
        return self.driver.run(end_since(source.heal, end.stream, max(index - 1, 0)))[0]

    def again(self, source: Source, key: Key) -> ScannedHead | None:
        """A head as it is now."""
        image = self.driver.ask(Get(table=source.table, key=key)).item
        found = None if image is None else read_head(source, image)
        return found if isinstance(found, ScannedHead) else None

    def mend(self, source: Source, partition: int, heads: Iterable[ScannedHead]) -> Ingested:
        """Index what heads of a partition tell and the index lacks.

        Raises:
            CorruptData: the newest epochs cannot be read.
        """
        told = (told_by(source, head) for head in heads)
        return self.ingest(source.heal, partition, [change for change in told if change is not None])


def told_by(source: Source, head: ScannedHead) -> Change | None:
    """What a head tells. Where its events cannot be read, that there are some: healing that stream says why not."""
    try:
        return source.told(head.image)
    except CorruptData:
        return Touched(stream=head.end.stream)


def by_partition(source: Source, heads: Iterable[ScannedHead]) -> dict[int, list[ScannedHead]]:
    """Heads by the partition of their streams."""
    found: dict[int, list[ScannedHead]] = {}
    for head in heads:
        found.setdefault(source.partition_of(head.end.stream), []).append(head)
    return found
