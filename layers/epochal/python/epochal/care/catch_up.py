"""Brings an index up to the heads, by the indexer's own rule; reads heads and names from the tables themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain
from typing import Final

from epochal.errors import CorruptData
from epochal.feed.indexer import IndexWriter
from epochal.index.checkpoints import removals_of
from epochal.index.epochs import load_newest, names_of, refresh, unknown_streams
from epochal.index.ingestion import Ingested, Partition, next_of
from epochal.index.marks import read_marks
from epochal.layout.port import Change, End, Removal, Source, Touched, end_since, head_key
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import is_fed
from epochal.plan.ops import Get, Items, Scan, Steps
from epochal.plan.values import Item, Key
from epochal.store.driver import Driver

# How far the index has each of some streams, by the indexer's own rule: active, else previous, else mark, else 0.
#
# It takes the memory of two epochs, however many streams there are and however old the index is. It trusts the marks:
# only the whole chain tells whether they are right (`index.chain_check`).


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


# Brings an index up to the heads, by the indexer's own rule and path.
#
#     behind    heads whose streams the index has less of, strongly consistent and read after the heads
#     mend      what a late stream record would have told, ingested as that: what others index meanwhile is dropped
#
# It trusts the index to say how far it has come. It is safe beside any number of indexers, since it writes only what
# they would write.


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

    source: str
    key: Key
    cause: str

    def __str__(self) -> str:
        return f"{self.source}: the head {self.key} cannot be read: {self.cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The index lacks events `index` to `end` - 1 of a stream, or a removal of events, or both."""

    head: ScannedHead
    partition: int
    index: int
    end: int
    removal: Removal | None = None


def read_heads(
    source: Source, images: Iterable[Item], unreadable: Callable[[UnreadableHead], object] = id
) -> list[ScannedHead]:
    """The heads of the feed among items; `unreadable` is called with those that cannot be read."""
    found: list[ScannedHead] = []
    for image in images:
        try:
            end = source.end(image)
        except CorruptData as error:
            cause = f"{type(error).__name__}: {error}"
            unreadable(UnreadableHead(source=source.name, key=head_key(source.name, image), cause=cause))
            continue
        if end is not None and is_fed(end.stream):
            found.append(ScannedHead(source=source.name, image=image, end=end))
    return found


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
            if removal is not None and removal.mark <= known[removals_of(removal.stream)]:
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


def by_partition(source: Source, heads: Iterable[ScannedHead]) -> dict[int, list[ScannedHead]]:
    """Heads by the partition of their streams."""
    found: dict[int, list[ScannedHead]] = {}
    for head in heads:
        found.setdefault(source.partition_of(head.end.stream), []).append(head)
    return found


def grouped(source: Source, streams: Iterable[str]) -> dict[int, list[str]]:
    """Streams by their partitions."""
    found: dict[int, list[str]] = {}
    for stream in streams:
        found.setdefault(source.partition_of(stream), []).append(stream)
    return found


# Every head of a source, by a scan of its table; several segments may be under way at once.
#
# What is between the heads is read and paid for too, but does not travel. A page that comes is worked on while the
# next one of its segment is on its way, so as many pages are held as there are segments.


def scan(
    source: Source, segment: tuple[int, int] = (0, 1), *, after: Key | None = None, consistent: bool = True
) -> Scan:
    """A page of a segment."""
    return Scan(table=source.table, segment=segment, where=source.where, after=after, consistent=consistent)


def heads(driver: Driver, source: Source, segments: int = 1) -> Iterator[tuple[Item, ...]]:
    """Pages of the heads that were there when this began, and maybe of some that came since."""
    # A single segment in this thread alone, so that whoever owns the driver owns the order of its requests.
    pages = driver.pages(scan(source)) if segments == 1 else _side_by_side(driver, source, segments)
    for page in pages:
        yield page.items


def _side_by_side(driver: Driver, source: Source, segments: int) -> Iterator[Items]:
    with ThreadPoolExecutor(segments) as pool:

        def ask(segment: tuple[int, int], after: Key | None) -> Future[Items]:
            return pool.submit(driver.ask, scan(source, segment, after=after))

        asked = {ask((number, segments), None): (number, segments) for number in range(segments)}
        try:
            while asked:
                done, _ = wait(asked, return_when=FIRST_COMPLETED)
                for future in done:
                    segment, page = asked.pop(future), future.result()
                    if page.last is not None:
                        asked[ask(segment, page.last)] = segment
                    yield page
        finally:
            for future in asked:
                future.cancel()


# Names of streams in the tables themselves, by scans of as much as is asked for: no index is ordered by name.

PAGE_BYTES: Final = 1024 * 1024
PAGE_UNITS: Final = 128
"""Read units of one request, at most: 1 MB, read without consistency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """What a search has come upon: streams in no order, and the key to go on from; None at the end of the table."""

    streams: tuple[str, ...]
    after: Key | None


def named(driver: Driver, source: Source, prefix: str, *, after: Key | None, requests: int) -> SearchPage:
    """Streams of a source whose names begin with `prefix`, among those that so many requests read."""
    streams: dict[str, None] = {}
    for _ in range(requests):
        page = driver.ask(scan(source, after=after, consistent=False))
        found = (head.end.stream for head in read_heads(source, page.items))
        streams.update(dict.fromkeys(stream for stream in found if stream.startswith(prefix)))
        after = page.last
        if after is None:
            break
    return SearchPage(streams=tuple(streams), after=after)
