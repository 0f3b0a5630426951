"""Copies of all streams of a feed, made page by page of its index.

The streams in a page are copied to their ends, several concurrently. Then the checkpoint is saved in the feed's index,
like that of a subscription, so that a second run goes on there. Streams that could not be copied are saved with the
checkpoint, and every later run tries them again first.

Unfolds that were written without events are copied at the next visit of their stream, and so are tombstones, unless
removals are followed. A run from the beginning visits all streams.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from epochal.contrib.transfer.copying.results import StreamCopy
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.feed.results import SpanPage
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import MAX_NAMES, MAX_PARKED, LoadedState, StateConflict, group_stream, load, save
from epochal.index.wire_batch import Ids
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.tokens import MAX_VERSION
from epochal.store.driver import ahead

AT_ONCE: Final = 8
"""Streams that are copied concurrently."""

PAGE: Final = 1_000
"""Events of the feed in a page, after which the checkpoint is saved."""

REMEMBERED: Final = 100_000
"""Streams for which a run remembers how far it has copied them: some 10 MB. For others it reads the copy."""


@dataclass(slots=True, kw_only=True)
class FeedCopier:
    """Copies all streams of one layout that a feed names, and saves its checkpoint in the feed's index.

    Attributes:
        copier: copier of single streams
        feed: reader of the source's feed
        name: name under which the checkpoint is saved; another target, or other categories, need another name
        categories: categories of the streams to copy; None for all
        told: function called with a partition and the checkpoint in it after each page
        at_once: number of streams that are copied concurrently
        now: clock in nanoseconds since 1970
        fresh: source of random bytes
    """

    copier: StreamCopier
    feed: FeedReader
    name: str
    categories: Collection[str] | None = None
    told: Callable[[int, Checkpoint], object] = lambda *_: None
    at_once: int = AT_ONCE
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom
    _reached: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def copy(self, *, again: bool = False) -> Iterator[StreamCopy]:
        """Copy the feed's streams from the saved checkpoint on, yield their results, and save the checkpoint.

        Streams that an earlier run could not copy are tried again first.

        Args:
            again: begin with the start of the feed, not with the saved checkpoint

        Raises:
            InvalidInput: more streams could not be copied than fit beside the checkpoint.
        """
        for partition in self._partitions():
            held = self.feed.driver.run(load(self.feed.table, group_stream(partition, self.name)))
            state = GroupState() if again or held.state is None else held.state
            results = self._visited(state.parked)
            yield from results
            state = replace(state, parked=_unsound(results))
            at_tail = False
            while not at_tail:
                page = self._page(partition, state.checkpoint)
                results = self._visited(self._lacking(page))
                yield from results
                parked = {**state.parked, **_unsound(results)}
                if len(parked) > MAX_PARKED or sum(len(name.encode()) for name in parked) > MAX_NAMES:
                    raise InvalidInput("streams", f"too many in partition {partition} cannot be copied")
                state = replace(state, checkpoint=page.next, parked=parked)
                held = self._kept(held, state)
                self.told(partition, page.next)
                at_tail = page.at_tail

    def planned(self) -> Iterator[StreamCopy]:
        """Yield what `copy` would do with each stream from the start of the feed, without writing anything.

        Events that the copies have already are compared with the originals.
        """
        for partition in self._partitions():
            checkpoint, at_tail, streams_seen = Checkpoint(0), False, set[str]()
            while not at_tail:
                page = self._page(partition, checkpoint)
                new = list(
                    dict.fromkeys(span.stream for span in page.spans if span.stream not in streams_seen)
                )
                streams_seen.update(new)
                yield from self._each(self.copier.planned, new)
                checkpoint, at_tail = page.next, page.at_tail
                self.told(partition, checkpoint)

    def _partitions(self) -> Iterator[int]:
        """Yield the numbers of the feed's partitions of the layout that is copied from."""
        layout = self.copier.source.layout
        return (
            partition.partition
            for partition in self.feed.partitions()
            if source_of(partition.partition) == layout
        )

    def _page(self, partition: int, start: Checkpoint) -> SpanPage:
        """Read a page of spans from a checkpoint on, without spans whose events other streams hold."""
        page = self.feed.spans(
            partition, start=start, limit=PAGE, categories=self.categories, removals=self.copier.removals
        )
        belongs_to_other_streams = self.copier.source.belongs_to_other_streams
        return replace(page, spans=tuple(span for span in page.spans if not belongs_to_other_streams(span)))

    def _lacking(self, page: SpanPage) -> Mapping[str, int]:
        """Return the streams of a page that this run must visit, in order, each with its end in the page.

        Streams that the run has copied that far, or has failed to copy, are left out. Streams with removals have
        `MAX_VERSION` as their end, and are visited unless the run has failed to copy them.
        """
        ends: dict[str, int] = {}
        for span in page.spans:
            ends[span.stream] = max(span.next, ends.get(span.stream, 0))
        ends |= {removal.stream: MAX_VERSION for _, removal in page.removals}
        return {stream: end for stream, end in ends.items() if self._reached.get(stream, -1) < end}

    def _visited(self, streams: Iterable[str]) -> list[StreamCopy]:
        """Copy streams, remember how far each was copied, and return the results."""
        results = self._each(self.copier.copy, streams)
        for result in results:
            self._reached[result.stream] = result.version if result.sound else MAX_VERSION
            self._reached.move_to_end(result.stream)
        while len(self._reached) > REMEMBERED:
            self._reached.popitem(last=False)
        return results

    def _each(self, visit: Callable[[str], StreamCopy], streams: Iterable[str]) -> list[StreamCopy]:
        """Visit streams concurrently, and return the results in order."""
        return list(ahead(visit, streams, self.at_once))

    def _kept(self, held: LoadedState, state: GroupState) -> LoadedState:
        """Save the checkpoint and the failed streams, replacing a concurrent run's; return the saved state.

        What a concurrent run has saved meanwhile is replaced: this run has visited everything before its checkpoint.
        """
        while True:
            ids = Ids.drawn(self.now(), self.fresh)
            saved = self.feed.driver.run(save(self.feed.table, held, state, ids))
            if not isinstance(saved, StateConflict):
                return saved
            held = saved.held


def _unsound(results: Iterable[StreamCopy]) -> dict[str, int]:
    """Return the streams that could not be copied, in the form in which a group's state parks them."""
    return {result.stream: 0 for result in results if not result.sound}
