"""Heads of a source: every one by a scan of its table, and one read from an item of it.

What is between the heads is read and paid for too, but is not transferred. Several segments of a table may be scanned
at once: a page is worked on while the next one of its segment is on its way, so as many pages are held as there are
segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from epochal.errors import CorruptData
from epochal.layout.registry import head_key
from epochal.layout.source import End, Source
from epochal.lazy_dataclasses import dataclass
from epochal.model.stream_names import is_fed
from epochal.plan.ops import Items, Scan
from epochal.plan.values import Item, Key
from epochal.store.driver import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedHead:
    """A head of a stream as it was read, or its key alone, and where the stream ended then."""

    source: str
    image: Item
    end: End

    @property
    def key(self) -> Key:
        """Primary key of the head."""
        return head_key(self.source, self.image)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableHead:
    """A head that cannot be read, and the cause."""

    source: str
    key: Key
    cause: str

    def __str__(self) -> str:
        return f"{self.source}: the head {self.key} cannot be read: {self.cause}"


def read_heads(
    source: Source, images: Iterable[Item], unreadable: Callable[[UnreadableHead], object] = id
) -> list[ScannedHead]:
    """Read the heads of streams in the feed from items; those that cannot be read go to `unreadable`."""
    heads: list[ScannedHead] = []
    for image in images:
        try:
            end = source.end(image)
        except CorruptData as error:
            cause = f"{type(error).__name__}: {error}"
            unreadable(UnreadableHead(source=source.name, key=head_key(source.name, image), cause=cause))
            continue
        if end is not None and is_fed(end.stream):
            heads.append(ScannedHead(source=source.name, image=image, end=end))
    return heads


def heads_by_partition(source: Source, heads: Iterable[ScannedHead]) -> dict[int, list[ScannedHead]]:
    """Group heads by the index partition of their streams."""
    groups: dict[int, list[ScannedHead]] = {}
    for head in heads:
        groups.setdefault(source.partition_of(head.end.stream), []).append(head)
    return groups


def streams_by_partition(source: Source, streams: Iterable[str]) -> dict[int, list[str]]:
    """Group names of streams by their index partition."""
    groups: dict[int, list[str]] = {}
    for stream in streams:
        groups.setdefault(source.partition_of(stream), []).append(stream)
    return groups


def scan(
    source: Source, segment: tuple[int, int] = (0, 1), *, after: Key | None = None, consistent: bool = True
) -> Scan:
    """Make the scan for one page of heads from a segment of a source's table."""
    return Scan(table=source.table, segment=segment, where=source.where, after=after, consistent=consistent)


def heads(driver: Driver, source: Source, segments: int = 1) -> Iterator[tuple[Item, ...]]:
    """Yield pages of a source's heads by a scan of its table; heads written meanwhile may be among them."""
    # A single segment in this thread alone, so that whoever owns the driver owns the order of its requests.
    pages = driver.pages(scan(source)) if segments == 1 else _side_by_side(driver, source, segments)
    for page in pages:
        yield page.items


def _side_by_side(driver: Driver, source: Source, segments: int) -> Iterator[Items]:
    """Scan several segments of a table in threads, and yield their pages as they arrive."""
    with ThreadPoolExecutor(segments) as pool:

        def ask(segment: tuple[int, int], after: Key | None) -> Future[Items]:
            return pool.submit(driver.ask, scan(source, segment, after=after))

        requests = {ask((number, segments), None): (number, segments) for number in range(segments)}
        try:
            while requests:
                finished, _ = wait(requests, return_when=FIRST_COMPLETED)
                for future in finished:
                    segment, page = requests.pop(future), future.result()
                    if page.last is not None:
                        requests[ask(segment, page.last)] = segment
                    yield page
        finally:
            for future in requests:
                future.cancel()
