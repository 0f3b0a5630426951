"""Looking after timers: how many wait and how late they are, which come next, and all of them anew from the feed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from epochal.errors import EpochalError
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Checkpoint
from epochal.layout.port import Span, source_of
from epochal.model.events import PER_SECOND, TIMER_SET, Ticks, from_unix_nanoseconds
from epochal.plan.ops import Query, side_by_side
from epochal.timers.engine import Engine, armed_of
from epochal.timers.items import BEGINNING, NEVER, SHARDS, Armed, due, read_armed

COUNTED: Final = 1_000
"""Items of a shard that are counted: some 20 read units for all shards, whatever waits."""

PAGE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TimersStatus:
    """What the table of timers has: items, some of which may be of timers that are not pending any more.

    Attributes:
        waiting: items, whether due or not.
        due: those that are due, and not fired yet.
        late: seconds since the first of them was due; 0 where there is none.
        next: when the next one is due; None where there is none.
        more: there are more than were counted: `waiting` and `due` are the least that there are.
    """

    waiting: int
    due: int
    late: float
    next: Ticks | None
    more: bool


def status(engine: Engine, most: int = COUNTED) -> TimersStatus:
    """How many timers wait, counted up to `most` in each of 16 shards, and how late they are."""
    now = from_unix_nanoseconds(engine.now())
    first = next(coming(engine, limit=1), None)
    onward = next(coming(engine, since=Ticks(now + 1), limit=1), None)
    all_, ready = (_count(engine, until, most) for until in (NEVER, Ticks(now + 1)))
    return TimersStatus(
        waiting=sum(count for count, _ in all_),
        due=sum(count for count, _ in ready),
        late=0.0 if first is None else max(0.0, (now - first.due) / PER_SECOND),
        next=None if onward is None else onward.due,
        more=any(more for _, more in all_),
    )


def _count(engine: Engine, until: Ticks, most: int) -> list[tuple[int, bool]]:
    queries = (_shard(engine, shard, BEGINNING, until, most) for shard in range(SHARDS))
    counting = (replace(each, only_count=True) for each in queries)
    replies = engine.driver.run(side_by_side(counting))
    return [(reply.counted or 0, reply.last is not None) for reply in replies]


def _shard(engine: Engine, shard: int, since: Ticks, until: Ticks, limit: int) -> Query:
    return due(engine.table, shard, since, until, limit=limit)


def coming(engine: Engine, *, since: Ticks = BEGINNING, limit: int = PAGE) -> Iterator[Armed]:
    """Timers in the order of their due times, from `since` on: those that are late are the first."""

    def of(shard: int) -> Iterator[Armed]:
        for page in engine.driver.pages(_shard(engine, shard, since, NEVER, min(limit, PAGE))):
            yield from map(read_armed, page.items)

    return islice(heapq.merge(*map(of, range(SHARDS))), limit)


@dataclass(slots=True, kw_only=True)
class TimersRebuilt:
    """What came of making the table of timers anew.

    Attributes:
        settings: events that set a timer, which the feed has.
        armed: of these, those whose timer is pending.
        troubles: scopes that could not be read, in words.
        at: how far the feed has been read, by partition.
    """

    settings: int = 0
    armed: int = 0
    troubles: list[str] = field(default_factory=list)
    at: dict[int, Checkpoint] = field(default_factory=dict)


def rebuild(engine: Engine, feed: FeedReader, tell: Callable[[TimersRebuilt], object] = str) -> TimersRebuilt:
    """Arm every timer that is pending, by what the feed tells and its stream confirms: a page of the feed at a time. It
    may run beside everything else, and again: what is armed already is armed once more, which changes nothing.
    """
    done = TimersRebuilt()
    sources = {*engine.streams, *engine.tagged}
    for partition in (each.partition for each in feed.partitions()):
        if source_of(partition) in sources:
            for settings in _settings(feed, partition, done):
                _arm(engine, settings, done)
                tell(done)
    return done


def _settings(feed: FeedReader, partition: int, done: TimersRebuilt) -> Iterator[list[Armed]]:
    at: Checkpoint | None = None
    while True:
        page = feed.page(partition, start=at, limit=PAGE, predicate=_sets, data=True)
        events = (each.event for each in page.items if each.type == TIMER_SET)
        given = [each for each in events if each is not None and each.first]
        yield list(armed_of(given, source_of(partition)))
        done.at[partition] = at = page.next
        if page.at_tail:
            return


def _sets(span: Span) -> bool:
    return TIMER_SET in span.types


def _arm(engine: Engine, settings: Iterable[Armed], done: TimersRebuilt) -> None:
    scopes: dict[object, list[Armed]] = {}
    for each in settings:
        scopes.setdefault(each.scope, []).append(each)
    for mine in scopes.values():
        done.settings += len(mine)
        try:
            waiting = {each.setting for each in engine.pending_of(mine)}
        except EpochalError as error:
            done.troubles.append(f"{mine[0].stream or ', '.join(mine[0].tags)}: {error}")
            continue
        armed = [each for each in mine if each.place in waiting]
        engine.arm_all(armed)
        done.armed += len(armed)
