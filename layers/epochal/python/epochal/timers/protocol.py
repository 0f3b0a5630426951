"""What is done about timers, step by step. It sends nothing: what it asks for, others do (`engine`).

    a setting    the item is put, THEN a wake-up for it is sent
    a wake-up    what is due by now: the stream is loaded; what is pending there is appended with `$timer-fired`, on
                 what was loaded; refused, it is loaded again; THEN the item is deleted. Then the wake-up is done.

So a crash leaves an item and a wake-up that comes again, or both are not needed any more. Six ways to do otherwise lose
a timer or fire it twice: a wake-up before its item; items by the names of timers; an append without a condition; a
deletion before the append; a wake-up that is done when it is taken; a wake-up that is merged with one that is at work.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from epochal.errors import Contended, EpochalError
from epochal.model.events import PER_SECOND, Ticks
from epochal.plan.ops import Delete, Items, Op, Put, Several, side_by_side
from epochal.scheduling import Timer
from epochal.timers.items import Armed, Sent, Wake, due, read_armed, seconds_until
from epochal.timers.stores import PendingTimers

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
    seen: PendingTimers = PendingTimers()  # noqa: RUF009  frozen
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
