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
from epochal.model.moments import END, PER_SECOND, Ticks, format_ticks, parse_time
from epochal.plan.batches import side_by_side
from epochal.plan.ops import Delete, Items, Op, Pause, Put, Query, Several
from epochal.plan.values import Item, Key, decodes, read_list, sequence, text
from epochal.scheduling import Timer

SHARDS: Final = 16
"""Number of shards of the table, which never changes. A sweep takes one query for each.

A partition of DynamoDB writes 1,000 items a second, and a wake-up is for one shard, so that a million timers of one
minute are set and fired in 16 shards concurrently.
"""

MINUTE: Final = 60 * PER_SECOND

NEAR: Final = Ticks(12 * MINUTE)
"""A timer that is due within this time gets a message of its own; SQS delays a message by 15 minutes at most. A later
timer shares the schedule of its slot, a minute of a shard, which cannot have fired yet.
"""

GRACE: Final = Ticks(3 * MINUTE)
"""Time after which a sweep fires a due timer as missed: by then, a wake-up that failed has come again."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Armed:
    """Armed timer: one that may be pending, with an item in the table. Sorts by due time.

    Attributes:
        due: time at which the timer is due.
        layout: name of the layout of the store that has the timer.
        stream: name of the stream in which the timer was set; empty for a timer under tags alone.
        place: index in the stream of the event that set the timer, or its id.
        tags: tags of a timer without a stream.
    """

    due: Ticks
    layout: str
    stream: str
    place: int | str
    tags: tuple[str, ...] = ()

    @property
    def scope(self) -> tuple[str, str, tuple[str, ...]]:
        """Layout, stream and tags: the timers that share a state, and are fired together."""
        return self.layout, self.stream, self.tags

    @property
    def shard(self) -> int:
        """Shard of the scope in the table of timers, from 0 to 15."""
        name = "\0".join((self.layout, self.stream, *self.tags))
        return hashlib.sha256(name.encode()).digest()[0] % SHARDS

    @property
    def key(self) -> Key:
        """Key of the timer's item."""
        sort = f"{format_ticks(self.due)}#{self.layout}#{self.stream}#{self.place}"
        return {"p": text(f"{self.shard:02d}"), "s": text(sort)}

    @property
    def item(self) -> Item:
        """Item of the timer in the table."""
        return {**self.key, "t": sequence(map(text, self.tags))} if self.tags else self.key


@decodes("timers")
def read_armed(item: Item) -> Armed:
    """Return the armed timer that an item describes; raise `CorruptData` if it is malformed.

    Raises:
        CorruptData: the item is malformed.
    """
    due, layout, stream, place = item["s"]["S"].split("#")
    tags = tuple(tag["S"] for tag in read_list(item, "t"))
    return Armed(
        due=parse_time(due),
        layout=layout,
        stream=stream,
        place=int(place) if stream else place,
        tags=tags,
    )


def due(table: str, shard: int, since: Ticks, until: Ticks, *, limit: int, after: Key | None = None) -> Query:
    """Return a query for a page of a shard's timers that are due from `since` on and before `until`.

    The query is eventually consistent, at half the cost. That suffices: the timers that a slot's wake-up or a sweep
    looks for were put minutes before it, and later ones have messages of their own.
    """
    # Sort keys of timers due at `until` are not below this text, and keys of earlier timers are not above it.
    bounds = text(format_ticks(since)), text(format_ticks(until))
    partition = ("p", text(f"{shard:02d}"))
    return Query(
        table=table, partition=partition, sort=("s", *bounds), limit=limit, after=after, consistent=False
    )


BEGINNING: Final = Ticks(0)
NEVER: Final = Ticks(END - 1)
"""Times before and after the due time of every timer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """A wake-up: one timer may be due, or those of a shard due from `since` on and before `until`.

    Attributes:
        shard: number of the shard.
        since: first due time.
        until: end of the due times, excluded.
        timer: the one timer; None for all of the shard in this time.
    """

    shard: int
    since: Ticks
    until: Ticks
    timer: Armed | None = None

    @classmethod
    def of(cls, timer: Armed) -> Wake:
        """Make the wake-up of one timer."""
        return cls(shard=timer.shard, since=timer.due, until=Ticks(timer.due + 1), timer=timer)

    @classmethod
    def of_slot(cls, timer: Armed) -> Wake:
        """Make the wake-up of a timer's slot: all timers of its shard that are due in the same minute."""
        minute = Ticks(timer.due - timer.due % MINUTE)
        return cls(shard=timer.shard, since=minute, until=Ticks(minute + MINUTE))

    @property
    def name(self) -> str:
        """Name of the schedule that all timers of a slot share, such as `20261207T0930-03`."""
        minute = format_ticks(self.since)[:16].replace("-", "").replace(":", "")
        return f"{minute}-{self.shard:02d}"

    @property
    def body(self) -> str:
        """Body of the wake-up's message, as JSON."""
        if self.timer is not None:
            return json.dumps({"timer": self.timer.key["s"]["S"], "tags": self.timer.tags})
        bounds = {"since": format_ticks(self.since), "until": format_ticks(self.until)}
        return json.dumps({"shard": self.shard, **bounds})


def read_wake_up(body: str) -> Wake:
    """Read a wake-up from the body of a message; raise `InvalidInput` if it is none.

    Raises:
        InvalidInput: the body is no wake-up of timers.
    """
    try:
        message = json.loads(body)
        if "timer" in message:
            tags = [text(tag) for tag in message["tags"]]
            return Wake.of(read_armed({"s": text(message["timer"]), "t": sequence(tags)}))
        since, until = (parse_time(message[name], name) for name in ("since", "until"))
        return Wake(shard=int(message["shard"]), since=since, until=until)
    except (CorruptData, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput("body", f"is not a wake-up of timers: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Request to send wake-ups.

    Attributes:
        near: wake-ups to send as one message each, with the message's delay in seconds; never merged with another.
        far: wake-ups of slots to send by one schedule each, which fires at its `since` and has its `name`. A schedule
            that exists already suffices.
    """

    near: tuple[tuple[Wake, int], ...] = ()
    far: tuple[Wake, ...] = ()

    @classmethod
    def arming(cls, timers: Collection[Armed], now: Ticks) -> Sent:
        """Make the wake-ups for timers: messages for those due soon, one schedule per slot for the others."""
        slots = {timer: Wake.of_slot(timer) for timer in timers}
        far = {slot: None for slot in slots.values() if slot.since - now > NEAR}
        near = (Wake.of(timer) for timer, slot in slots.items() if slot not in far)
        return cls(near=tuple((wake, seconds_until(wake.since, now)) for wake in near), far=tuple(far))


def seconds_until(moment: Ticks, now: Ticks) -> int:
    """Return the whole seconds, rounded up, for which a message of a wake-up at `moment` is delayed.

    The delay is at most that of a near timer and a minute. If the moment is still farther away, because a clock is
    behind, the wake-up is sent as a message again when the delay has passed: its schedule may be the one that sent it.
    """
    return -(-min(max(moment - now, 0), NEAR + MINUTE) // PER_SECOND)


T = TypeVar("T")

PAGE: Final = 256
"""Maximum number of a slot's items that a wake-up holds in memory, with their scopes."""

TOGETHER: Final = 25
"""Maximum number of timers of a scope that are fired in one append."""

ALONE: Final = 10
"""Maximum number of a slot's remaining timers that get a message each, in one request, instead of another query of the
slot.
"""

ATTEMPTS: Final = 20
"""Number of refused appends after which a scope is left to a later wake-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPending:
    """Request for the pending timers of a scope that were set by the first of these settings or later.

    Attributes:
        timers: armed timers of the scope.
        seen: the last answer, after which only newer events have to be read.
        refused: conflict that refused an append based on the last answer.
    """

    timers: tuple[Armed, ...]
    seen: PendingTimers = PendingTimers()
    refused: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """Request to append the events of due timers, if the scope's state is still the one that was loaded.

    The answer is the number of timers that were fired, all or the first ones, or the conflict that refused the append.
    It is an error if the first timer alone can never be appended.

    Attributes:
        scope: an armed timer of the scope.
        found: pending timers as they were loaded, with the state to append on.
        due: timers to fire.
    """

    scope: Armed
    found: PendingTimers
    due: tuple[Timer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Request to run several generators concurrently, in any order.

    The answer is a list with the result of each, or None for one that there was no time to start.
    """

    doings: tuple[Doing[Came], ...]


Doing = Generator[Op | Several | Pause | LoadPending | Fire | Sent | SideBySide, Any, T]
"""A generator that yields one request after another, and is sent the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """Outcome for the timers of one scope.

    Attributes:
        fired: timers that were fired.
        refused: number of appends that were refused, because other writers were faster.
        gone: number of items of timers that were not pending any more.
        failures: armed timers that are due and were not fired, with the errors; their items stay.
        broke: error that ended the work on the scope.
    """

    fired: tuple[Timer, ...] = ()
    refused: int = 0
    gone: int = 0
    failures: tuple[tuple[Armed, EpochalError], ...] = ()
    broke: EpochalError | None = None


@dataclass(slots=True, kw_only=True)
class Worked:
    """Counts and errors of the work on wake-ups.

    Attributes:
        fired: number of timers that were fired.
        late: seconds from the due time to the firing, of the timer that was fired latest.
        refused: number of appends that were refused, because other writers were faster.
        gone: number of items of timers that were cancelled, set anew, or fired before.
        failures: armed timers that were not fired, with the errors; one stands for its scope if the whole scope
            failed. Their items stay.
        failed: wake-ups that are not done, and have to come again.
    """

    fired: int = 0
    late: float = 0.0
    refused: int = 0
    gone: int = 0
    failures: list[tuple[Armed, EpochalError]] = field(default_factory=list)
    failed: list[Wake] = field(default_factory=list)

    def take(self, came: Came, now: Ticks) -> None:
        """Add the outcome of one scope to the counts."""
        self.fired += len(came.fired)
        self.refused += came.refused
        self.gone += came.gone
        self.failures += came.failures
        self.late = max(self.late, *((now - timer.ticks) / PER_SECOND for timer in came.fired), 0.0)


def arming(table: str, timers: Sequence[Armed], now: Callable[[], Ticks]) -> Doing[None]:
    """Put the items of timers that were set into the table, then send their wake-ups."""
    yield from side_by_side(Put(table=table, item=timer.item) for timer in timers)
    yield Sent.arming(timers, now())


def firing(table: str, timers: Sequence[Armed], now: Ticks) -> Doing[Came]:
    """Fire one scope's due timers in order, delete the items of fired and ended ones; return the outcome.

    Args:
        timers: armed timers of the scope, each with an item in the table.
    """
    fired = list[Timer]()
    try:
        return (yield from _fired(table, timers, now, fired))
    except EpochalError as error:
        return Came(fired=tuple(fired), broke=error)


def _fired(table: str, timers: Sequence[Armed], now: Ticks, fired: list[Timer]) -> Doing[Came]:
    """Fire one scope's due timers, 25 an append, delete items of fired and ended ones; return the outcome.

    After each refused append the state is loaded again, at most `ATTEMPTS` times. Every timer is added to `fired` as
    soon as its append is made, so that the caller has it if this raises.
    """
    loaded = PendingTimers()
    failed = dict[int | str, EpochalError]()
    refused: Any = None
    refusals = 0
    while True:
        loaded = yield LoadPending(timers=tuple(timers), seen=loaded, refused=refused)
        due = (timer for timer in loaded.pending if timer.ticks <= now and timer.setting not in failed)
        ready = sorted(due, key=lambda timer: timer.ticks)
        if not ready:
            break
        answer = yield Fire(scope=timers[0], found=loaded, due=tuple(ready[:TOGETHER]))
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
                failed |= {timer.setting: busy for timer in ready}
                break
    ours, failed = (
        {timer.setting for timer in fired},
        failed | {timer.place: timer.error for timer in loaded.lost},
    )
    waiting = {timer.setting for timer in loaded.pending} | failed.keys()
    over = [timer for timer in timers if timer.place in ours or timer.place not in waiting]
    yield from side_by_side(Delete(table=table, key=timer.key) for timer in over)
    return Came(
        fired=tuple(fired),
        refused=refusals,
        gone=sum(timer.place not in ours for timer in over),
        failures=tuple((timer, failed[timer.place]) for timer in timers if timer.place in failed),
    )


def waking(table: str, wake_ups: Sequence[Wake], now: Callable[[], Ticks], worked: Worked) -> Doing[Worked]:
    """Fire due timers and slots that wake-ups name, send new wake-ups for the rest, and return `worked`.

    Timers that are not due yet, and those for which there was no time, are sent as wake-ups again.

    Args:
        worked: counts to which the outcome is added.
    """
    alone = {wake_up.timer: wake_up for wake_up in wake_ups if wake_up.timer is not None}
    if alone:
        moment = now()
        early = [wake for timer, wake in alone.items() if timer.due > moment]
        if early:
            yield Sent(near=tuple((wake, seconds_until(wake.since, moment)) for wake in early))
        ready = [timer for timer in alone if timer.due <= moment]
        unfinished, failed = yield from _all_fired(table, ready, now, worked)
        if unfinished:
            yield Sent(near=tuple((alone[timer], 0) for timer in unfinished))
        worked.failed += [alone[timer] for timer in failed]
    for wake_up in wake_ups:
        if wake_up.timer is None:
            yield from _slot(table, wake_up, now, worked)
    return worked


def _slot(table: str, wake_up: Wake, now: Callable[[], Ticks], worked: Worked) -> Doing[None]:
    """Fire a slot's due timers, send wake-ups for the rest; if one fails, add the slot to `worked.failed`."""
    after, failing = None, False
    while True:
        page: Items = yield due(table, wake_up.shard, wake_up.since, wake_up.until, limit=PAGE, after=after)
        timers, moment = [read_armed(item) for item in page.items], now()
        ready = [timer for timer in timers if timer.due <= moment]
        unfinished, failed = yield from _all_fired(table, ready, now, worked)
        failing, after = failing or bool(failed), page.last
        rest = [*unfinished, *timers[len(ready) :]]
        if rest and len(rest) <= ALONE and after is None:
            yield Sent(near=tuple((Wake.of(armed), seconds_until(armed.due, moment)) for armed in rest))
        elif rest:
            onward = Wake(shard=wake_up.shard, since=min(rest).due, until=wake_up.until)
            yield Sent(near=((onward, seconds_until(onward.since, moment)),))
        if rest or after is None:
            break
    if failing:
        worked.failed.append(wake_up)


def _all_fired(
    table: str, timers: Iterable[Armed], now: Callable[[], Ticks], worked: Worked
) -> Doing[tuple[list[Armed], list[Armed]]]:
    """Fire due timers, scopes side by side; return those left for lack of time, and those that failed."""
    scopes: dict[Any, list[Armed]] = {}
    for timer in timers:
        scopes.setdefault(timer.scope, []).append(timer)
    if not scopes:
        return [], []
    moment = now()
    doings = tuple(firing(table, scope, moment) for scope in scopes.values())
    answers = yield SideBySide(doings=doings)
    unfinished, failed = list[Armed](), list[Armed]()
    for mine, answer in zip(scopes.values(), answers, strict=True):
        if answer is None:
            unfinished += mine
            continue
        worked.take(answer, now())
        failed += (name for name, _ in answer.failures)
        if answer.broke is not None:
            worked.failures.append((mine[0], answer.broke))
            failed += mine
    return unfinished, failed
