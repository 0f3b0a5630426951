"""Copying every stream of a feed, one page of the index after another.

What a page names is copied, each stream to its end, several at once. Then the place is kept in the index of the feed,
as that of a group of readers is: a second run goes on there. Streams that could not be copied are kept beside it, and
every later run tries them again first.

Unfolds that were written alone come with the stream's next visit, and so do tombstones, unless removals are followed: a
run from the beginning visits all.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from epochal.contrib.transfer.copying.stream_copy import StreamCopier, StreamCopy
from epochal.errors import InvalidInput
from epochal.feed.history import SpanPage
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Checkpoint
from epochal.index.groups import (
    MAX_NAMES,
    MAX_PARKED,
    GroupState,
    LoadedState,
    StateConflict,
    group_stream,
    load,
    save,
)
from epochal.index.tip_append import Ids
from epochal.layout.port import source_of
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.versions import MAX_VERSION
from epochal.store.driver import ahead

AT_ONCE: Final = 8
"""Streams that are copied side by side."""

PAGE: Final = 1_000
"""Events of the feed after which the place is kept."""

REMEMBERED: Final = 100_000
"""A run remembers for so many streams how far it has copied them: some 10 MB. For others it asks the copy."""


@dataclass(slots=True, kw_only=True)
class FeedCopier:
    """Copies the streams of one layout, as a feed names them.

    Attributes:
        feed: of the source.
        name: under which the place is kept; another target, or other categories, need another.
        categories: only streams of these; None for all.
        told: hears of the partition and the place in it.
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
        """What became of each stream, as it is copied.

        Args:
            again: from the beginning of the feed.

        Raises:
            InvalidInput: more streams than can be kept in mind could not be copied.
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
                if len(parked) > MAX_PARKED or sum(len(each.encode()) for each in parked) > MAX_NAMES:
                    raise InvalidInput("streams", f"too many of partition {partition} cannot be copied")
                state = replace(state, checkpoint=page.next, parked=parked)
                held = self._kept(held, state)
                self.told(partition, page.next)
                at_tail = page.at_tail

    def planned(self) -> Iterator[StreamCopy]:
        """What `copy` would do from the beginning: what there is of the copies is compared, nothing written."""
        for partition in self._partitions():
            at, at_tail, seen = Checkpoint(0), False, set[str]()
            while not at_tail:
                page = self._page(partition, at)
                new = list(dict.fromkeys(span.stream for span in page.spans if span.stream not in seen))
                seen.update(new)
                yield from self._each(self.copier.planned, new)
                at, at_tail = page.next, page.at_tail
                self.told(partition, at)

    def _partitions(self) -> Iterator[int]:
        layout = self.copier.source.layout
        return (each.partition for each in self.feed.partitions() if source_of(each.partition) == layout)

    def _page(self, partition: int, start: Checkpoint) -> SpanPage:
        page = self.feed.spans(
            partition, start=start, limit=PAGE, categories=self.categories, removals=self.copier.removals
        )
        elsewhere = self.copier.source.elsewhere
        return replace(page, spans=tuple(span for span in page.spans if not elsewhere(span)))

    def _lacking(self, page: SpanPage) -> Mapping[str, int]:
        """Streams of a page that this run has neither copied so far nor failed to copy, in their order; and those of
        which something is gone.
        """
        ends: dict[str, int] = {}
        for span in page.spans:
            ends[span.stream] = max(span.next, ends.get(span.stream, 0))
        ends |= {removal.stream: MAX_VERSION for _, removal in page.removals}
        return {stream: end for stream, end in ends.items() if self._reached.get(stream, -1) < end}

    def _visited(self, streams: Iterable[str]) -> list[StreamCopy]:
        results = self._each(self.copier.copy, streams)
        for each in results:
            self._reached[each.stream] = each.version if each.sound else MAX_VERSION
            self._reached.move_to_end(each.stream)
        while len(self._reached) > REMEMBERED:
            self._reached.popitem(last=False)
        return results

    def _each(self, visit: Callable[[str], StreamCopy], streams: Iterable[str]) -> list[StreamCopy]:
        return list(ahead(visit, streams, self.at_once))

    def _kept(self, held: LoadedState, state: GroupState) -> LoadedState:
        """The place, kept, whatever another run has kept meanwhile: all before ours was visited."""
        while True:
            ids = Ids.drawn(self.now(), self.fresh)
            saved = self.feed.driver.run(save(self.feed.table, held, state, ids))
            if not isinstance(saved, StateConflict):
                return saved
            held = saved.held


def _unsound(results: Iterable[StreamCopy]) -> dict[str, int]:
    return {each.stream: 0 for each in results if not each.sound}
