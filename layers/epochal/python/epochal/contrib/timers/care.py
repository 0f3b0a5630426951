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
from epochal.feed.history import FeedEvent, FeedItem
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Checkpoint
from epochal.layout.port import Span, source_of
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import TIMER_SET, Ticks
from epochal.model.versions import Appended

PAGE: Final = 100


def coming(engine: Engine, *, since: Ticks = BEGINNING, limit: int = PAGE) -> Iterator[Armed]:
    """Timers in the order of their due times, from `since` on: those that are late are the first."""

    def of(shard: int) -> Iterator[Armed]:
        for page in engine.driver.pages(due(engine.table, shard, since, NEVER, limit=min(limit, PAGE))):
            yield from map(read_armed, page.items)

    return islice(heapq.merge(*map(of, range(SHARDS))), limit)


@dataclass(slots=True, kw_only=True)
class TimersRebuilt:
    """What came of making the table of timers anew, or of taking timers over.

    Attributes:
        settings: events that set a timer, or those of copies, which the feed has.
        armed: of these, those whose timer is pending, and was armed or set anew.
        troubles: scopes that could not be read, in words.
    """

    settings: int = 0
    armed: int = 0
    troubles: list[str] = field(default_factory=list)


def rebuild(engine: Engine, feed: FeedReader, tell: Callable[[TimersRebuilt], object] = str) -> TimersRebuilt:
    """Arm every timer that is pending, by what the feed tells and its stream confirms: a page of the feed at a time. It
    may run beside everything else, and again: what is armed already is armed once more, which changes nothing.
    """
    return _over_all(engine, feed, tell, copied=False)


def take_over(
    engine: Engine, feed: FeedReader, tell: Callable[[TimersRebuilt], object] = str
) -> TimersRebuilt:
    """Set every timer anew that is pending in a copy of its stream: it fires there from now on, when it was due. It may
    run beside everything else, and again. Originals that are still there fire theirs, too.
    """
    return _over_all(engine, feed, tell, copied=True)


def _over_all(
    engine: Engine, feed: FeedReader, tell: Callable[[TimersRebuilt], object], *, copied: bool
) -> TimersRebuilt:
    done = TimersRebuilt()
    sources = {*engine.streams, *engine.tagged}
    for partition in (each.partition for each in feed.partitions()):
        if source_of(partition) in sources:
            for settings in _settings(feed, partition, copied=copied):
                scopes: dict[object, list[Armed]] = {}
                for each in settings:
                    scopes.setdefault(each.scope, []).append(each)
                for mine in scopes.values():
                    done.settings += len(mine)
                    try:
                        (_set_anew if copied else _arm)(engine, mine, done)
                    except EpochalError as error:
                        done.troubles.append(f"{mine[0].stream or ', '.join(mine[0].tags)}: {error}")
                tell(done)
    return done


def _settings(feed: FeedReader, partition: int, *, copied: bool) -> Iterator[list[Armed]]:
    at: Checkpoint | None = None
    while True:
        page = feed.page(partition, start=at, limit=PAGE, predicate=_sets, data=True)
        events = (_event(each) for each in page.items if each.type == TIMER_SET)
        given = [each for each in events if each is not None and each.first]
        yield list(armed_of(given, source_of(partition), copied=copied))
        at = page.next
        if page.at_tail:
            return


def _event(item: FeedItem) -> FeedEvent | None:
    if isinstance(item.fault, MissingBody):
        return FeedEvent(stream=item.stream, index=item.index, type=item.type, fault=item.fault)
    return item.event


def _sets(span: Span) -> bool:
    return TIMER_SET in span.types


def _arm(engine: Engine, mine: list[Armed], done: TimersRebuilt) -> None:
    """Arm those of a scope that are pending."""
    found = engine.pending_of(mine)
    waiting = {each.setting for each in found.pending} | {each.place for each in found.lost}
    armed = [each for each in mine if each.place in waiting]
    done.troubles += (f"{mine[0].stream}@{each.place}: {each.error}" for each in found.lost)
    engine.arm_all(armed)
    done.armed += len(armed)


def _set_anew(engine: Engine, mine: list[Armed], done: TimersRebuilt) -> None:
    """Set those of a scope anew that are pending, on the state that says so."""
    refusals = 0
    while refusals < ATTEMPTS:
        found = engine.pending_of(mine, copied=True)
        events = [each.anew() for each in found.pending[:TOGETHER]]
        if not events:
            return
        if isinstance(engine.try_append(mine[0], events, found.known), Appended):
            done.armed += len(events)
        else:
            refusals += 1
    raise Contended(mine[0].stream or ", ".join(mine[0].tags), ATTEMPTS)
