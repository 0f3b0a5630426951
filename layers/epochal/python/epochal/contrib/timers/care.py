"""Looking after timers: which are late and which come next, all of them anew from the feed, and those of copies taken
over.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from epochal.contrib.timers.engine import Engine, armed_of
from epochal.contrib.timers.protocol import (
    ATTEMPTS,
    BEGINNING,
    NEVER,
    SHARDS,
    TOGETHER,
    Armed,
    due,
    read_armed,
)
from epochal.errors import Contended, EpochalError, MissingBody
from epochal.feed.events import FeedEvent
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem
from epochal.index.checkpoints import Checkpoint
from epochal.layout.changes import Span
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended
from epochal.model.stream_names import TIMER_SET

PAGE: Final = 100


def coming(engine: Engine, *, since: Ticks = BEGINNING, limit: int = PAGE) -> Iterator[Armed]:
    """Yield at most `limit` armed timers of all shards due from `since` on, in order of due times.

    Timers that are due before `since` are left out. Overdue timers come first.
    """

    def of(shard: int) -> Iterator[Armed]:
        """Yield the armed timers of one shard in order of their due times, read page by page."""
        for page in engine.driver.pages(due(engine.table, shard, since, NEVER, limit=min(limit, PAGE))):
            yield from map(read_armed, page.items)

    return islice(heapq.merge(*map(of, range(SHARDS))), limit)


@dataclass(slots=True, kw_only=True)
class TimersRebuilt:
    """Counts and errors of a run that rebuilt the table of timers, or took over copied timers.

    Attributes:
        settings: number of events in the feed that set a timer; of a take-over, only those in copied streams.
        armed: number of these timers that are pending and were armed (or, by a take-over, set anew).
        troubles: error messages, one for each scope or setting that could not be read.
    """

    settings: int = 0
    armed: int = 0
    troubles: list[str] = field(default_factory=list)


def rebuild(engine: Engine, feed: FeedReader, tell: Callable[[TimersRebuilt], object] = str) -> TimersRebuilt:
    """Arm again every timer that feed and streams show as pending, and return the counts.

    The feed is read a page at a time. This may run beside everything else, and may be repeated: arming a timer a
    second time changes nothing.

    Args:
        tell: called with the counts so far, after each page of the feed.
    """
    return _over_all(engine, feed, tell, copied=False)


def take_over(
    engine: Engine, feed: FeedReader, tell: Callable[[TimersRebuilt], object] = str
) -> TimersRebuilt:
    """Set anew every pending timer of copied streams, so that it fires in the copy; return the counts.

    The due times stay the same. This may run beside everything else, and may be repeated. Originals that still exist
    fire their timers as well.

    Args:
        tell: called with the counts so far, after each page of the feed.
    """
    return _over_all(engine, feed, tell, copied=True)


def _over_all(
    engine: Engine, feed: FeedReader, tell: Callable[[TimersRebuilt], object], *, copied: bool
) -> TimersRebuilt:
    """Arm the pending timers of every feed partition, or set the copied ones anew; return the counts.

    A scope that fails adds its error to `troubles`, and the run continues with the next one.
    """
    rebuilt = TimersRebuilt()
    sources = {*engine.streams, *engine.tagged}
    for partition in (tail.partition for tail in feed.partitions()):
        if source_of(partition) in sources:
            for settings in _settings(feed, partition, copied=copied):
                scopes: dict[object, list[Armed]] = {}
                for setting in settings:
                    scopes.setdefault(setting.scope, []).append(setting)
                for mine in scopes.values():
                    rebuilt.settings += len(mine)
                    try:
                        (_set_anew if copied else _arm)(engine, mine, rebuilt)
                    except EpochalError as error:
                        rebuilt.troubles.append(f"{mine[0].stream or ', '.join(mine[0].tags)}: {error}")
                tell(rebuilt)
    return rebuilt


def _settings(feed: FeedReader, partition: int, *, copied: bool) -> Iterator[list[Armed]]:
    """Yield the timers set in a feed partition, of copied streams or of the others, page by page.

    With `copied`, these are the timers of copied streams only; without, all others.
    """
    checkpoint: Checkpoint | None = None
    while True:
        page = feed.page(partition, start=checkpoint, limit=PAGE, predicate=_sets, data=True)
        events = (_event(item) for item in page.items if item.type == TIMER_SET)
        first_events = [event for event in events if event is not None and event.first]
        yield list(armed_of(first_events, source_of(partition), copied=copied))
        checkpoint = page.next
        if page.at_tail:
            return


def _event(item: FeedItem) -> FeedEvent | None:
    """Return a feed item's event; an event without data and with the fault if its body is missing."""
    if isinstance(item.fault, MissingBody):
        return FeedEvent(stream=item.stream, index=item.index, type=item.type, fault=item.fault)
    return item.event


def _sets(span: Span) -> bool:
    """Whether a span contains an event that sets a timer."""
    return TIMER_SET in span.types


def _arm(engine: Engine, mine: list[Armed], done: TimersRebuilt) -> None:
    """Arm those timers of a scope that are pending; add their number and unreadable ones to `done`.

    Settings whose bodies are lost are armed as well, and each adds its error to `done.troubles`.
    """
    loaded = engine.pending_of(mine)
    waiting = {timer.setting for timer in loaded.pending} | {timer.place for timer in loaded.lost}
    armed = [timer for timer in mine if timer.place in waiting]
    done.troubles += (f"{mine[0].stream}@{timer.place}: {timer.error}" for timer in loaded.lost)
    engine.arm_all(armed)
    done.armed += len(armed)


def _set_anew(engine: Engine, mine: list[Armed], done: TimersRebuilt) -> None:
    """Append new settings for a scope's pending copied timers until none is left; count them in `done`.

    Each append is conditional on the state that was read. Adds the number of timers to `done`.

    Raises:
        Contended: other writers were faster at `ATTEMPTS` appends.
    """
    refusals = 0
    while refusals < ATTEMPTS:
        loaded = engine.pending_of(mine, copied=True)
        events = [timer.anew() for timer in loaded.pending[:TOGETHER]]
        if not events:
            return
        if isinstance(engine.try_append(mine[0], events, loaded.known), Appended):
            done.armed += len(events)
        else:
            refusals += 1
    raise Contended(mine[0].stream or ", ".join(mine[0].tags), ATTEMPTS)
