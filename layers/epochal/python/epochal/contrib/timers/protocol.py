"""Timers: where one that is set waits, and what is done about it, step by step. This sends nothing: what it asks
for, others do (`engine`).

    a setting    the item is put, THEN a wake-up for it is sent
    a wake-up    what is due by now: the stream is loaded; what is pending there is appended with `$timer-fired`, on
                 what was loaded; refused, it is loaded again; THEN the item is deleted. Then the wake-up is done.

So a crash leaves an item and a wake-up that comes again, or both are not needed any more. Six ways to do otherwise lose
a timer or fire it twice: a wake-up before its item; items by the names of timers; an append without a condition; a
deletion before the append; a wake-up that is done when it is taken; a wake-up that is merged with one that is at work.

Items outlive the code (FORMATS §9). One says that a timer may be pending, and nothing more: the stream tells.

    p    the shard: two digits, of 16
    s    due#layout#stream#index      of a timer that is set in a named stream
         due#layout##id               of one that is set under tags alone
    t    its tags, where it has no stream

Due times are in order as text. So what is due by now is the beginning of each shard, however much waits behind it, and
however old it is: 16 queries find all that was missed. A stream is in one shard, and its timers are in order there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from typing import Any, Final, TypeVar

from epochal.contrib.timers.stores import PendingTimers
from epochal.errors import Contended, CorruptData, EpochalError, InvalidInput
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import END, PER_SECOND, Ticks, format_ticks, parse_time
from epochal.plan.batches import side_by_side
from epochal.plan.ops import Delete, Items, Op, Put, Query, Several
from epochal.plan.values import Item, Key, decodes, read_list, sequence, text
from epochal.scheduling import Timer

SHARDS: Final = 16
"""Of the whole table, for good: a partition of DynamoDB writes 1,000 items a second, and a wake-up is of one shard, so
that a million timers of one minute are set and fired 16 side by side. A sweep has as many queries."""

MINUTE: Final = 60 * PER_SECOND

NEAR: Final = Ticks(12 * MINUTE)
"""What is due within so long has a message of its own, which a queue keeps back for 15 minutes at most. What is farther
away shares the schedule of its slot, a minute of a shard, and that cannot be at work yet."""

GRACE: Final = Ticks(3 * MINUTE)
"""What has been due for so long, a sweep takes for missed: a wake-up that failed has come again by then."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Armed:
    """A timer that may be pending. They are in order of their due times.

    Attributes:
        layout: of the store that has it.
        stream: in which it was set; empty where it is under tags alone.
        place: of its setting: the index in the stream, or the event's id.
        tags: of a timer without a stream.
    """

    due: Ticks
    layout: str
    stream: str
    place: int | str
    tags: tuple[str, ...] = ()

    @property
    def scope(self) -> tuple[str, str, tuple[str, ...]]:
        """What its state is a fold of: timers of one scope are fired together."""
        return self.layout, self.stream, self.tags

    @property
    def shard(self) -> int:
        """The shard of its scope."""
        name = "\0".join((self.layout, self.stream, *self.tags))
        return hashlib.sha256(name.encode()).digest()[0] % SHARDS

    @property
    def key(self) -> Key:
        """Of its item."""
        sort = f"{format_ticks(self.due)}#{self.layout}#{self.stream}#{self.place}"
        return {"p": text(f"{self.shard:02d}"), "s": text(sort)}

    @property
    def item(self) -> Item:
        """Its item."""
        return {**self.key, "t": sequence(map(text, self.tags))} if self.tags else self.key


@decodes("timers")
def read_armed(item: Item) -> Armed:
    """A timer of an item; raises `CorruptData`."""
    due, layout, stream, place = item["s"]["S"].split("#")
    tags = tuple(each["S"] for each in read_list(item, "t"))
    return Armed(
        due=parse_time(due),
        layout=layout,
        stream=stream,
        place=int(place) if stream else place,
        tags=tags,
    )


def due(table: str, shard: int, since: Ticks, until: Ticks, *, limit: int, after: Key | None = None) -> Query:
    """A page of what is due from `since` on and before `until`. It may lag, and costs half for that: what a slot's
    wake-up or a sweep is for was put minutes before it; what was put since has a message of its own.
    """
    # Nothing of the moment `until` is below its own text, and nothing of an earlier one is above it.
    bounds = text(format_ticks(since)), text(format_ticks(until))
    partition = ("p", text(f"{shard:02d}"))
    return Query(
        table=table, partition=partition, sort=("s", *bounds), limit=limit, after=after, consistent=False
    )


BEGINNING: Final = Ticks(0)
NEVER: Final = Ticks(END - 1)
"""Earlier than any timer is due, and later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Says that timers may be due: one, or those of a shard that are due from `since` on and before `until`."""

    shard: int
    since: Ticks
    until: Ticks
    timer: Armed | None = None

    @classmethod
    def of(cls, timer: Armed) -> Wake:
        """Of one timer."""
        return cls(shard=timer.shard, since=timer.due, until=Ticks(timer.due + 1), timer=timer)

    @classmethod
    def of_slot(cls, timer: Armed) -> Wake:
        """Of all timers of a shard and a minute, among which is this one."""
        minute = Ticks(timer.due - timer.due % MINUTE)
        return cls(shard=timer.shard, since=minute, until=Ticks(minute + MINUTE))

    @property
    def name(self) -> str:
        """Of a slot's schedule, which is one for all timers of the slot: `20261207T0930-03`."""
        minute = format_ticks(self.since)[:16].replace("-", "").replace(":", "")
        return f"{minute}-{self.shard:02d}"

    @property
    def body(self) -> str:
        """As a message has it."""
        if self.timer is not None:
            return json.dumps({"timer": self.timer.key["s"]["S"], "tags": self.timer.tags})
        bounds = {"since": format_ticks(self.since), "until": format_ticks(self.until)}
        return json.dumps({"shard": self.shard, **bounds})


def read_wake_up(body: str) -> Wake:
    """A wake-up of a message; raises `InvalidInput`."""
    try:
        told = json.loads(body)
        if "timer" in told:
            tags = [text(each) for each in told["tags"]]
            return Wake.of(read_armed({"s": text(told["timer"]), "t": sequence(tags)}))
        since, until = (parse_time(told[name], name) for name in ("since", "until"))
        return Wake(shard=int(told["shard"]), since=since, until=until)
    except (CorruptData, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput("body", f"is no wake-up of timers: {error!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Wake-ups to be sent.

    Attributes:
        near: a message each, with the seconds that it is to be kept back; never merged with another.
        far: of slots: a schedule each for its `since`, by its `name`. One that is there already does.
    """

    near: tuple[tuple[Wake, int], ...] = ()
    far: tuple[Wake, ...] = ()

    @classmethod
    def arming(cls, timers: Collection[Armed], now: Ticks) -> Sent:
        """What wakes these timers when they are due."""
        slots = {timer: Wake.of_slot(timer) for timer in timers}
        far = {slot: None for slot in slots.values() if slot.since - now > NEAR}
        near = (Wake.of(timer) for timer, slot in slots.items() if slot not in far)
        return cls(near=tuple((each, seconds_until(each.since, now)) for each in near), far=tuple(far))


def seconds_until(moment: Ticks, now: Ticks) -> int:
    """Whole seconds, not too few, that a message is to be kept back; at most those of a near one and a minute. What is
    farther away, by a clock that is behind, is sent again until then: its schedule may be the one that is at work.
    """
    return -(-min(max(moment - now, 0), NEAR + MINUTE) // PER_SECOND)


T = TypeVar("T")

PAGE: Final = 256
"""Items in memory of a wake-up: whatever its slot has, it holds no more, and the scopes of these."""

TOGETHER: Final = 25
"""Timers of a scope that are fired in one append, if it has room for them."""

ALONE: Final = 10
"""Timers of a slot that get a message each, as one request, instead of another look at the slot: a lone one has no
second query."""

ATTEMPTS: Final = 20
"""Refusals in a row after which a scope is left to a later wake-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPending:
    """Asks for what is pending in the scope of these timers, as far as it was set with the first of them or later.

    Attributes:
        seen: the last answer, on which only what came since is to be read.
        refused: what an append on it was refused with.
    """

    timers: tuple[Armed, ...]
    seen: PendingTimers = PendingTimers()
    refused: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """Asks for the append of due timers, on what was found. Answered with the number of those that were fired, all or
    the first, or with what has refused it: an error where the first alone can never be appended.
    """

    scope: Armed
    found: PendingTimers
    due: tuple[Timer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Asks for several, in any order and at once. Answered with what came of each, or None where there was no time to
    begin.
    """

    doings: tuple[Doing[Came], ...]


Doing = Generator[Op | Several | LoadPending | Fire | Sent | SideBySide, Any, T]
"""A conversation: asks for one thing after another, and is sent the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came of timers of one scope.

    Attributes:
        fired: those that were.
        refused: appends that others were faster than.
        gone: items of timers that were not pending any more.
        failures: those that are due and were not fired, whose items wait.
        broke: what kept the rest from being done.
    """

    fired: tuple[Timer, ...] = ()
    refused: int = 0
    gone: int = 0
    failures: tuple[tuple[Armed, EpochalError], ...] = ()
    broke: EpochalError | None = None


@dataclass(slots=True, kw_only=True)
class Worked:
    """What came of wake-ups.

    Attributes:
        fired: timers.
        late: seconds from its due time, of the timer that was fired latest.
        refused: appends that others were faster than.
        gone: items of timers that were cancelled, set anew, or fired before.
        failures: of timers, or of whole scopes, whose items wait.
        failed: wake-ups that are not done, and have to come again.
    """

    fired: int = 0
    late: float = 0.0
    refused: int = 0
    gone: int = 0
    failures: list[tuple[Armed, EpochalError]] = field(default_factory=list)
    failed: list[Wake] = field(default_factory=list)

    def take(self, came: Came, now: Ticks) -> None:
        """Add what came of a scope."""
        self.fired += len(came.fired)
        self.refused += came.refused
        self.gone += came.gone
        self.failures += came.failures
        self.late = max(self.late, *((now - each.ticks) / PER_SECOND for each in came.fired), 0.0)


def arming(table: str, timers: Sequence[Armed], now: Callable[[], Ticks]) -> Doing[None]:
    """Put the items of timers that were set, then send what wakes them."""
    yield from side_by_side(Put(table=table, item=each.item) for each in timers)
    yield Sent.arming(timers, now())


def firing(table: str, timers: Sequence[Armed], now: Ticks) -> Doing[Came]:
    """Fire what is due of one scope, in the order of due times; then delete the items that have nothing to wait for.

    Args:
        timers: of the scope, of which there are items.
    """
    fired = list[Timer]()
    try:
        return (yield from _fired(table, timers, now, fired))
    except EpochalError as error:
        return Came(fired=tuple(fired), broke=error)


def _fired(table: str, timers: Sequence[Armed], now: Ticks, fired: list[Timer]) -> Doing[Came]:
    found = PendingTimers()
    failed = dict[int | str, EpochalError]()
    refused: Any = None
    refusals = 0
    while True:
        found = yield LoadPending(timers=tuple(timers), seen=found, refused=refused)
        due = (each for each in found.pending if each.ticks <= now and each.setting not in failed)
        ready = sorted(due, key=lambda each: each.ticks)
        if not ready:
            break
        answer = yield Fire(scope=timers[0], found=found, due=tuple(ready[:TOGETHER]))
        refused = None
        if isinstance(answer, int):
            fired += ready[:answer]
            if answer == len(ready):
                break
        elif isinstance(answer, EpochalError):
            failed[ready[0].setting] = answer
        else:
            refused, refusals = answer, refusals + 1
            if refusals == ATTEMPTS:
                busy = Contended(timers[0].stream or ", ".join(timers[0].tags), refusals)
                failed |= {each.setting: busy for each in ready}
                break
    ours, failed = {each.setting for each in fired}, failed | {each.place: each.error for each in found.lost}
    waiting = {each.setting for each in found.pending} | failed.keys()
    over = [each for each in timers if each.place in ours or each.place not in waiting]
    yield from side_by_side(Delete(table=table, key=each.key) for each in over)
    return Came(
        fired=tuple(fired),
        refused=refusals,
        gone=sum(each.place not in ours for each in over),
        failures=tuple((each, failed[each.place]) for each in timers if each.place in failed),
    )


def waking(table: str, wake_ups: Sequence[Wake], now: Callable[[], Ticks], worked: Worked) -> Doing[Worked]:
    """All that wake-ups ask for: those of one timer together, those of many one after another.

    Args:
        worked: what comes of them is added to it.
    """
    alone = {each.timer: each for each in wake_ups if each.timer is not None}
    if alone:
        at = now()
        early = [each for timer, each in alone.items() if timer.due > at]
        if early:
            yield Sent(near=tuple((each, seconds_until(each.since, at)) for each in early))
        ready = [timer for timer in alone if timer.due <= at]
        left, failed = yield from _all_fired(table, ready, now, worked)
        if left:
            yield Sent(near=tuple((alone[timer], 0) for timer in left))
        worked.failed += [alone[timer] for timer in failed]
    for each in wake_ups:
        if each.timer is None:
            yield from _slot(table, each, now, worked)
    return worked


def _slot(table: str, wake_up: Wake, now: Callable[[], Ticks], worked: Worked) -> Doing[None]:
    """What is due of a slot, page by page; and what wakes the rest."""
    after, failing = None, False
    while True:
        page: Items = yield due(table, wake_up.shard, wake_up.since, wake_up.until, limit=PAGE, after=after)
        timers, at = [read_armed(each) for each in page.items], now()
        ready = [each for each in timers if each.due <= at]
        left, failed = yield from _all_fired(table, ready, now, worked)
        failing, after = failing or bool(failed), page.last
        rest = [*left, *timers[len(ready) :]]
        if rest and len(rest) <= ALONE and after is None:
            yield Sent(near=tuple((Wake.of(each), seconds_until(each.due, at)) for each in rest))
        elif rest:
            onward = Wake(shard=wake_up.shard, since=min(rest).due, until=wake_up.until)
            yield Sent(near=((onward, seconds_until(onward.since, at)),))
        if rest or after is None:
            break
    if failing:
        worked.failed.append(wake_up)


def _all_fired(
    table: str, timers: Iterable[Armed], now: Callable[[], Ticks], worked: Worked
) -> Doing[tuple[list[Armed], list[Armed]]]:
    """Fire timers, scope by scope; those for which there was no time, and those that failed."""
    scopes: dict[Any, list[Armed]] = {}
    for each in timers:
        scopes.setdefault(each.scope, []).append(each)
    if not scopes:
        return [], []
    at = now()
    doings = tuple(firing(table, each, at) for each in scopes.values())
    answers = yield SideBySide(doings=doings)
    left, failed = list[Armed](), list[Armed]()
    for mine, came in zip(scopes.values(), answers, strict=True):
        if came is None:
            left += mine
            continue
        worked.take(came, now())
        failed += (each for each, _ in came.failures)
        if came.broke is not None:
            worked.failures.append((mine[0], came.broke))
            failed += mine
    return left, failed
