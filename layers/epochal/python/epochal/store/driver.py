"""The driver, which performs the operations of a layout's steps, with retries during throttling and outages.

A failed request is retried with full jitter until the call's time limit. After a lost response, the first try may
have been applied and be the reason why the retry is refused. Then the reply is marked (`Refusal.ambiguous`), and the
layout finds out. If no further request is possible, for example because credentials have expired, the error says that a
write may have been applied. The driver knows nothing of what is stored.
"""

from __future__ import annotations

import itertools
import math
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar, overload

from epochal.errors import EpochalError, TooLarge, Unavailable
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.capacity import Capacity
from epochal.plan import costs, failures, ops
from epochal.plan.values import Item, Units
from epochal.settings import REQUEST_SECONDS

if TYPE_CHECKING:
    from concurrent.futures import Executor

# How calls run in parallel, and how one call waits for another: in threads, or as tasks of an event loop if
# `epochal.aio` runs the caller.


def _threads(at_once: int) -> Executor:
    """Make an executor that runs calls in threads."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  a cold start does without

    return ThreadPoolExecutor(at_once)


POOL: Final[ContextVar[Callable[[int], Executor]]] = ContextVar("pool", default=_threads)
"""Function that makes an executor for a given number of calls in parallel."""


class Turn(Protocol):
    """Something that one caller waits for until another caller sets it: an event of threads or of tasks."""

    def wait(self, timeout: float | None = None) -> object:
        """Wait until the turn is set, or `timeout` seconds are over."""

    def set(self) -> None:
        """Set the turn, so that the waiting callers go on."""

    def is_set(self) -> bool:
        """Whether the turn was set."""


TURN: Final[ContextVar[Callable[[], Turn]]] = ContextVar("turn", default=threading.Event)
"""Function that makes a `Turn`, which a caller can wait for."""


def pool(at_once: int) -> Executor:
    """Make an executor that runs up to `at_once` calls at the same time."""
    return POOL.get()(at_once)


def turn() -> Turn:
    """Make a `Turn` that is not set."""
    return TURN.get()()


_NUMBERS: Final = itertools.count(1)
_LOOPS: Final[weakref.WeakKeyDictionary[object, int]] = weakref.WeakKeyDictionary()


def loop_number() -> int:
    """Return a number of the event loop whose tasks can be waited for here; 0 for threads.

    Several loops can take turns on one thread. While one of them runs, no task of another one goes on.
    """
    if TURN.get() is threading.Event:
        return 0
    from asyncio import get_running_loop  # noqa: PLC0415  loaded by who has a loop

    try:
        return _LOOPS.setdefault(get_running_loop(), next(_NUMBERS))
    except RuntimeError:  # turns of another kind, which a test has made
        return threading.get_ident()


# Several requests in parallel, with their replies in order.

A = TypeVar("A")
B = TypeVar("B")


def ahead(make: Callable[[A], B], items: Iterable[A], at_once: int) -> Iterator[B]:
    """Yield the result of a function for each item, in order, with up to `at_once` calls in parallel.

    Calls run on threads or tasks of a pool; the items are taken on the caller's own thread.
    """
    if at_once == 1:
        yield from map(make, items)
        return
    waiting_for = iter(items)
    with pool(at_once) as calls:
        under_way = deque(calls.submit(make, item) for item in islice(waiting_for, at_once))
        while under_way:
            result = under_way.popleft().result()
            under_way.extend(calls.submit(make, item) for item in islice(waiting_for, 1))
            yield result


T = TypeVar("T")

_WRITES = (ops.Put, ops.Update, ops.Delete, ops.Transact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often a failed request is retried.

    Attributes:
        seconds: seconds after which no further try is made, and `Unavailable` is raised.
        first: longest wait before the first retry, in seconds; it doubles with each further retry.
        longest: upper limit of any wait, in seconds.
        retries: largest number of retries of one request; None for as many as the time allows.
    """

    seconds: float = REQUEST_SECONDS
    first: float = 0.05
    longest: float = 2.0
    retries: int | None = None

    def is_over(self, tries: int) -> bool:
        """Return whether a request that has failed `tries` times is given up, however much time is left.

        Args:
            tries: number of attempts that have failed.
        """
        return self.retries is not None and tries > self.retries

    def wait(self, tries: int, luck: float) -> float:
        """Return the seconds to wait after `tries` failures, with full jitter.

        Args:
            tries: number of attempts that have failed, from 1.
            luck: random number from 0 to 1, which spreads writers out.
        """
        return luck * min(self.longest, self.first * 2.0 ** min(tries - 1, 30))


SIDE_BY_SIDE: Final = 16
"""Number of parallel requests for programs that write many small items: half of a client's connections."""

DEFAULT: Final = Patience()
"""The patience for HTTP requests: retries end with the time that a request may take."""

UNREACHED: Final = 6
"""Largest number of tries at an address that has never answered: a second and a half at most, for a port that is just
opening. Without this limit a wrong address would be retried silently for the whole time allowed."""

PERSISTENT: Final = Patience(seconds=math.inf, longest=30.0, retries=10)
"""The patience of the original tagged-event store: 10 retries, up to 30 seconds apart. For programs that do not
serve HTTP requests."""


class Meter:
    """Counts the requests to DynamoDB and the capacity units that they consume; safe under threads.

    As a context manager, a meter sets `capacity` of each `EpochalError` that is raised in the block.

    Args:
        within: an outer meter, which also counts everything that this meter counts.
    """

    def __init__(self, within: Meter | None = None) -> None:
        self._lock = threading.Lock()
        self._within = within
        self.requests = 0
        self.units = Units()

    def add(self, units: Units, requests: int = 1) -> None:
        """Add capacity units and a number of requests to this meter, and to the meter around it.

        Args:
            units: capacity units of the request.
            requests: number of requests; 0 adds units that earlier requests turned out to have cost.
        """
        with self._lock:
            self.requests += requests
            self.units += units
        if self._within is not None:
            self._within.add(units, requests)

    @property
    def capacity(self) -> Capacity:
        """The capacity units and requests counted so far."""
        with self._lock:
            return Capacity(read=self.units.read, write=self.units.write, requests=self.requests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, EpochalError):
            error.capacity = self.capacity


_PLACES: Final[weakref.WeakKeyDictionary[object, int]] = weakref.WeakKeyDictionary()


def _place_of(execute: ops.Execute) -> int:
    """Return a number that identifies the owner of an `execute` function; no other owner ever gets it."""
    owner: object = getattr(execute, "__self__", execute)
    try:
        return _PLACES.setdefault(owner, next(_NUMBERS))
    except TypeError:  # the object allows no weak references
        return next(_NUMBERS)


_UnknownWrites = set[object]
"""Writes of these steps whose response was lost and whose retries were not applied either: they may have been applied.

A write that a retry applies is removed, as if nothing had been lost. A write whose retry was refused stays: its own
first try or another write may be the cause, which the layout finds out, and not this driver.
"""

_LOOKED_UP: Final = object()
"""Marks the write that steps look up (`Driver.read_back`): other steps have sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Runs the steps of a layout on an interpreter, with retries, a deadline and a capacity meter.

    Clock, sleep and random numbers are parameters, so that tests can control them.

    Attributes:
        execute: function that sends one operation to the store and returns the reply.
        meter: counts requests and capacity.
        patience: how long and how often requests are retried.
        clock: function that returns seconds of a monotonic clock.
        sleep: function that waits for so many seconds.
        luck: function that returns a random number from 0 to 1.
        deadline: clock reading at which to give up whatever is left of `patience`; None for none.
        at_once: number of requests that may be under way at the same time, where steps ask for several.
        place: number that identifies the interpreter's tables among those of other accounts or regions; None gives each
            interpreter a number of its own.
        read_back: whether the steps run here only look up a write that was made before; an `Unavailable` then says
            that a write may have been applied.
    """

    execute: ops.Execute
    meter: Meter
    patience: Patience = DEFAULT
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Any] = time.sleep
    luck: Callable[[], float] = random.random
    deadline: float | None = None
    at_once: int = 1
    place: int | None = None
    read_back: bool = False

    def __post_init__(self) -> None:
        if self.place is None:
            object.__setattr__(self, "place", _place_of(self.execute))

    def run(self, steps: ops.Steps[T]) -> T:
        """Perform every operation of `steps`, with retries; return the value that the steps return.

        Raises:
            Unavailable: the store kept failing until the time allowed was over, or the deadline has passed; or a
                request failed that would find out whether a write whose response was lost was applied.
        """
        limit = self.clock() + self.patience.seconds
        limit = limit if self.deadline is None else min(limit, self.deadline)
        unknown: _UnknownWrites = {_LOOKED_UP} if self.read_back else set()
        try:
            step, took = next(steps), 0.0
            while True:
                if isinstance(step, ops.Pause):
                    self._pause(step, took, limit)
                    step = steps.send(None)
                    continue
                since = self.clock()
                if isinstance(step, ops.Several):
                    answer: object = self._perform_all(step.ops, limit, unknown)
                else:
                    answer = self._perform(step, limit, unknown)
                took = self.clock() - since
                step = steps.send(answer)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
        except TooLarge as error:
            # This write was refused as too large; an earlier try whose response was lost may still be applied.
            if unknown:
                raise Unavailable(str(error), maybe_applied=True) from error
            raise

    @overload
    def ask(self, op: ops.Get) -> ops.Found: ...

    @overload
    def ask(self, op: ops.TransactGet) -> ops.Together: ...

    @overload
    def ask(self, op: ops.BatchGet | ops.Query | ops.Scan) -> ops.Items: ...

    @overload
    def ask(
        self, op: ops.Put | ops.Update | ops.Delete | ops.Transact
    ) -> ops.Done | ops.Refusal | ops.Overflow: ...

    def ask(self, op: ops.Op) -> ops.Reply:
        """Perform a single operation, with retries; return the reply.

        Raises:
            Unavailable: as `run`.
        """
        return self.run(_alone(op))

    def pages(self, op: ops.Query | ops.Scan) -> Iterator[ops.Items]:
        """Yield every page of a query or a scan, each requested when the caller wants it.

        Args:
            op: the operation that requests the first page.

        Raises:
            Unavailable: as `run`.
        """
        while True:
            page = self.ask(op)
            yield page
            if page.last is None:
                return
            op = replace(op, after=page.last)

    def metered(self) -> tuple[Driver, Meter]:
        """Return a copy of the driver with a new meter for one call, and that meter.

        This driver's meter counts the same requests, too.
        """
        meter = Meter(within=self.meter)
        return replace(self, meter=meter), meter

    def measured(self, steps: ops.Steps[T]) -> tuple[T, Capacity]:
        """Run steps as `run` does; return their value and the capacity that was consumed."""
        driver, meter = self.metered()
        with meter:
            return driver.run(steps), meter.capacity

    def reading_back(self) -> Driver:
        """Return a copy of the driver for requests that look up a write that was made before.

        Their errors say that a write may have been applied.
        """
        return replace(self, read_back=True)

    def within(self, seconds: float) -> Driver:
        """Return a copy of the driver that gives up `seconds` from now, whatever it is doing then."""
        return replace(self, deadline=self.clock() + seconds)

    def rest(self, seconds: float) -> None:
        """Wait `seconds` between two calls, but at most half of the time until the deadline.

        The next call needs the other half.

        Args:
            seconds: time to wait otherwise.
        """
        if self.deadline is not None:
            seconds = min(seconds, (self.deadline - self.clock()) / 2)
        if seconds > 0:
            self.sleep(seconds)

    def _perform_all(
        self, operations: tuple[ops.Op, ...], limit: float, unknown: _UnknownWrites
    ) -> list[ops.Reply]:
        """Perform operations, several in parallel; return their replies in the same order.

        After a failure no further request is begun.

        Args:
            limit: clock reading at which to give up.
            unknown: writes of these steps whose response was lost.
        """
        at_once = self.at_once if len(operations) > 1 else 1
        return list(ahead(lambda op: self._perform(op, limit, unknown), operations, at_once))

    def _pause(self, pause: ops.Pause, took: float, limit: float) -> None:
        """Wait for a pause that a layout asks for, but not beyond the time allowed.

        Args:
            took: seconds that the request before it took.
            limit: clock reading at which to give up.
        """
        self.sleep(min(pause.seconds(took, self.luck()), max(0.0, limit - self.clock())))

    def _check_deadline(self, unknown: _UnknownWrites) -> None:
        """Raise `Unavailable` if the deadline has passed.

        Steps whose requests all succeed may still never end, as an append that loses every race.
        """
        if self.deadline is not None and self.clock() > self.deadline:
            raise Unavailable("the time limit of the call has passed", maybe_applied=bool(unknown))

    def _perform(self, op: ops.Op, limit: float, unknown: _UnknownWrites) -> ops.Reply:
        """Perform one operation, in halves if its reply has no room for the items; raise past the deadline.

        Returns:
            The reply, which is ambiguous if a response to this same write was lost.
        """
        self._check_deadline(unknown)
        lost = object()
        reply = self._answer(op, limit, unknown, lost)
        if not isinstance(reply, ops.Oversized):
            return reply
        if isinstance(op, ops.TransactGet):
            return _read_in_halves(op, lambda part: self._answer(part, limit, unknown, lost))
        assert isinstance(op, ops.Transact)  # noqa: S101  no other operation is replied to so
        replies: list[ops.Reply] = [reply]

        def ask(part: ops.Op) -> ops.Reply:
            replies.append(self._answer(part, limit, unknown, lost))
            return replies[-1]

        outcome = _refuse_in_halves(op, reply, ask)
        self.meter.add(_uncounted(replies, outcome), requests=0)
        return outcome

    def _answer(self, op: ops.Op, limit: float, unknown: _UnknownWrites, lost: object) -> ops.Reply:
        """Send one request until there is a reply, with retries after failures; return the reply.

        Args:
            lost: object that `unknown` contains if the response to an earlier try of this write was lost.

        Raises:
            Unavailable: retries are exhausted, or an error follows a lost response.
        """
        tries = 0
        while True:
            try:
                reply = self.execute(op)
            except failures.RequestFailure as failure:
                tries += 1
                if isinstance(failure, failures.Lost) and isinstance(op, _WRITES):
                    unknown.add(lost)
                self.meter.add(Units())
                self._wait(tries, limit, failure, unknown)
                continue
            except EpochalError as error:
                # The error says that nothing was written, but that is true of this try only.
                if unknown:
                    raise Unavailable(str(error), maybe_applied=True) from error
                raise
            self.meter.add(reply.units)
            if isinstance(reply, ops.Done):
                unknown.discard(lost)
            elif isinstance(reply, ops.Refusal) and lost in unknown:
                reply = replace(reply, ambiguous=True)
            return reply

    def _wait(
        self, tries: int, limit: float, failure: failures.RequestFailure, unknown: _UnknownWrites
    ) -> None:
        """Wait before a retry, or raise `Unavailable` if no further retry is allowed.

        Args:
            tries: number of failures so far.
            limit: clock reading at which to give up.
        """
        pause = self.patience.wait(tries, self.luck())
        wrong = isinstance(failure, failures.Unreached) and tries >= UNREACHED
        if wrong or self.patience.is_over(tries) or self.clock() + pause >= limit:
            raise Unavailable(failure.cause, maybe_applied=bool(unknown)) from failure
        self.sleep(pause)


# If the items of a transaction do not fit one response, the request is repeated for half of the items at a time. Ten
# items always fit.


def _read_in_halves(op: ops.TransactGet, ask: Callable[[ops.Op], ops.Reply]) -> ops.Together:
    """Read the items of a transactional read in halves, split again where needed; return all items.

    Args:
        ask: performs an operation.
    """
    items: list[Item | None] = []
    middle = len(op.keys) // 2
    for keys in (op.keys[:middle], op.keys[middle:]):
        half = replace(op, keys=keys)
        reply = ask(half)
        read = _read_in_halves(half, ask) if isinstance(reply, ops.Oversized) else reply
        assert isinstance(read, ops.Together)  # noqa: S101  the reply to a TransactGet
        items += read.items
    return ops.Together(items=tuple(items))


def _refuse_in_halves(
    op: ops.Transact, oversized: ops.Oversized, ask: Callable[[ops.Op], ops.Reply]
) -> ops.Reply:
    """Repeat a refused transaction for the items that made it fail; return them, or the reply if applied.

    The refusal had no room for these items. Each repeat has the same conditions and asks for some of the items, so it
    is as safe as a retry after a lost response, and may be applied. Where a repeat is refused for writes whose items
    another repeat asks for, the next one asks for those.

    Args:
        oversized: the refusal.
        ask: performs an operation.

    Returns:
        The refusal with all items, or the reply to a repeat that was applied or refused as reused.
    """
    items: list[Item | None] = [None] * len(op.writes)
    failed = [False] * len(op.writes)
    ambiguous = oversized.ambiguous
    parts = _halves(range(len(op.writes)))
    while parts:
        part = parts.pop(0)
        reply = ask(replace(op, shown=part))
        if isinstance(reply, ops.Oversized):
            parts = [*_halves(part), *parts]
            ambiguous = ambiguous or reply.ambiguous
            continue
        if not isinstance(reply, ops.Refusal) or reply.reused:
            return reply
        ambiguous = ambiguous or reply.ambiguous
        for position in part:
            items[position], failed[position] = reply.items[position], reply.failed[position]
        if not parts and not any(failed):
            parts = _halves(range(len(op.writes)))
    return ops.Refusal(items=tuple(items), failed=tuple(failed), ambiguous=ambiguous)


def _uncounted(replies: list[ops.Reply], outcome: ops.Reply) -> Units:
    """Compute the write units of these requests that were not counted when they were made.

    Each request costs the write of all items, and a refusal has counted only the items that it returned.
    """
    units = costs.refusal_units(outcome.items, 2) if isinstance(outcome, ops.Refusal) else outcome.units
    return Units(write=sum(max(0.0, units.write - reply.units.write) for reply in replies))


def _halves(positions: range) -> list[range]:
    middle = len(positions) // 2
    return [positions[:middle], positions[middle:]]


def _alone(op: ops.Op) -> ops.Steps[ops.Reply]:
    reply: ops.Reply = yield op
    return reply
