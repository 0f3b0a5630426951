"""Lets callers of one process that write to the same key take turns, so that they do not refuse each other.

Of several callers that read one state and write to it at the same time, all but one are refused, and pay for it. So a
caller takes a place in the queue of the key before it reads, and leaves it after it has written:

    nobody is at work               the caller goes on at once
    somebody is                     the caller waits; callers go on in the order of their calls
    a caller has changed nothing    twice as many go on at the same time after it, since none of them refuses another
    a caller has written            one goes on at a time
    nobody was let in for a while   the first that waits goes on: those at work may be stuck, or may wait for it
    the caller's time is over       it goes on without a turn, and its driver raises the error

Queues only save refusals: every write has a condition, so a caller that goes on without a turn is as correct as one of
another process. Therefore nothing here raises an error, and a caller that has a place already waits for no other one: a
decision that appends to the stream it is made on, or to one on which another decision is being made, would wait for
ever. One place can be in the queues of several keys, which are taken in one order. A place that is `inner` is taken
within another one too, in the queues of those keys that come after all of the other one's in this order: so the append
of a decision waits for the tags of its events, and callers can still not wait for each other in a circle.

A queue exists as long as a caller is at work or waits, so memory is bounded by the number of calls under way. Callers
are threads, or tasks of an event loop (`epochal.store.driver`). Threads have queues of their own, and so have the tasks
of each loop: if a loop is closed with calls under way, nobody waits for these. A child process that was forked knows
none of its parent's callers.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any, Final, Self

from epochal.store.driver import Driver, Turn, loop_number, turn

STUCK_SECONDS: Final = 2.0
"""Seconds after which the first caller that waits goes on if nobody was let in: longer than a few slow requests."""

WIDEST: Final = 64
"""Largest number of callers at work on a key at the same time, as long as they change nothing."""


Key = tuple[str, ...]
Notes = dict[Key, Any]


class CallerQueue:
    """The callers at work on a key, and those that wait.

    Attributes:
        admissions: how often a caller was let in; it shows those that wait that others make progress.
        at_work: number of callers at work, without those that others have passed.
        width: number of callers that may be at work.
        passed: how often callers that seemed stuck were passed.
        notes: notes by key that the last caller left for the next one.
    """

    __slots__ = ("admissions", "at_work", "notes", "passed", "waiting", "width")

    def __init__(self) -> None:
        self.admissions = 0
        self.at_work = 0
        self.width = 1
        self.passed = 0
        self.notes: Notes = {}
        self.waiting: deque[Ticket] = deque()

    def join(self, ticket: Ticket) -> None:
        """Let a caller in, or have it wait behind the others."""
        if self.at_work < self.width:
            self._let_in(ticket)
        else:
            ticket.turn = turn()
            self.waiting.append(ticket)

    def leave(self, ticket: Ticket, *, changed: bool, notes: Notes) -> None:
        """End a caller's work or waiting; let in the next: one if it changed anything, else twice as many."""
        if ticket.waits():
            self.give_up(ticket)
        elif ticket.passed == self.passed:
            self.at_work -= 1
            self.width = 1 if changed else min(2 * self.width, WIDEST)
            self.notes = notes
        self._let_in_next()

    def give_up(self, ticket: Ticket) -> None:
        """Remove a caller from the queue if it is still waiting."""
        if ticket in self.waiting:
            self.waiting.remove(ticket)

    def pass_by(self) -> None:
        """Let in the first caller that waits, whoever is at work."""
        self.passed += 1
        self.at_work, self.width, self.notes = 0, 1, {}
        self._let_in_next()

    @property
    def is_idle(self) -> bool:
        """Whether nobody is at work, and nobody waits."""
        return not self.at_work and not self.waiting

    def _let_in_next(self) -> None:
        while self.waiting and self.at_work < self.width:
            self._let_in(self.waiting.popleft())

    def _let_in(self, ticket: Ticket) -> None:
        self.at_work += 1
        self.admissions += 1
        ticket.passed = self.passed
        if ticket.turn is not None:
            ticket.turn.set()


class Ticket:
    """A caller in one queue.

    Attributes:
        key: key of the queue.
        queue: the queue.
        turn: set when the caller is let in; None if it did not have to wait.
        passed: the queue's `passed` when the caller was let in; None before that.
    """

    __slots__ = ("key", "passed", "queue", "turn")

    def __init__(self, key: tuple[Any, ...], queue: CallerQueue) -> None:
        self.key = key
        self.queue = queue
        self.turn: Turn | None = None
        self.passed: int | None = None

    def waits(self) -> bool:
        """Whether the caller was not let in yet."""
        return self.passed is None


# A signal handler or a finalizer may append while its own thread holds the lock.
_LOCK = threading.RLock()
_QUEUES: Final[dict[tuple[Any, ...], CallerQueue]] = {}
_PLACE: Final[ContextVar[QueuePlace | None]] = ContextVar("place", default=None)
"""Place of the running call, so that calls within it do not wait."""


def _forget() -> None:
    """Empty all queues in a forked child process, and replace the lock and the place of the call.

    The threads of its parent never leave their queues there, nor may they be woken. Their locks may have been held when
    the process was forked.
    """
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.RLock()
    for queue in _QUEUES.values():
        queue.waiting.clear()
    _QUEUES.clear()
    _PLACE.set(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class QueuePlace:
    """A caller's place in the queues of keys; as a context manager, its block runs when the caller's turn comes.

    A caller can leave a note on a key for the next one, such as the token of the stream; it is lost if nobody waits.
    The notes on all keys of a caller are given to the next one in any of its queues, so a note may be older than the
    last write to its key.

    Attributes:
        changed: whether the caller has written, or may have; set before the block ends.
    """

    __slots__ = ("_before", "_driver", "_fresh", "_inner", "_keys", "_last", "_notes", "_tickets", "changed")

    def __init__(self, driver: Driver, *keys: Key, inner: bool = False) -> None:
        """Make a place in the queues of `keys`, which is not taken yet.

        Args:
            driver: driver of the caller; keys of drivers of different places have different queues.
            keys: what the caller writes to, such as the table and the name of a stream; without keys it does not wait.
            inner: whether the place is taken within another one too, as far as the order of keys allows.
        """
        self._driver = driver
        self._keys = keys
        self._inner = inner
        self._last: tuple[Any, ...] = ()
        self._tickets: list[Ticket] = []
        self._notes: Notes = {}
        self._fresh: Notes = {}
        self._before: Token[QueuePlace | None] | None = None
        self.changed = False

    def __enter__(self) -> Self:
        """Take the place and wait for the turn at each key, unless an outer place of the caller covers it."""
        outer = _PLACE.get()
        is_within = outer is not None and outer.is_taken
        if self._keys and (self._inner or not is_within):
            keys = self._full_keys()
            if outer is not None and is_within:
                keys = [key for key in keys if key > outer._last]  # noqa: SLF001  its own
                if not keys:
                    return self
            self._before, self._last = _PLACE.set(self), keys[-1]
            try:
                self._take(keys)
            except BaseException:
                self.changed = True  # it has not found out whether those after it may go on together
                self._leave()
                raise
        return self

    def __exit__(self, *error: object) -> None:
        self._leave()

    def note(self, *key: str) -> Any:
        """Return the note on a key; None for none."""
        return self._notes.get(key)

    @property
    def fresh_notes(self) -> Mapping[Key, Any]:
        """Notes that the last caller in the queue of a key left on that same key, by key."""
        return self._fresh

    @property
    def is_awaited(self) -> bool:
        """Whether a caller waits for this one, so that a note would reach it."""
        return any(ticket.queue.waiting for ticket in self._tickets)

    def leave_note(self, note: Any, *key: str) -> None:
        """Leave a note for the next caller on a key, instead of the one that this caller was given."""
        self._notes[key] = note

    def write(self) -> None:
        """Remember that the caller begins to write, after which the notes that it was given are out of date."""
        self.changed, self._notes, self._fresh = True, {}, {}

    @property
    def is_taken(self) -> bool:
        """Whether the caller waits or is at work; contexts are copied, and the copies outlive it."""
        return self._before is not None

    def _full_keys(self) -> list[tuple[Any, ...]]:
        """Return the keys with the driver's place and the event loop, each once, in the order of all keys."""
        place = self._driver.place
        loop = loop_number()
        if len(self._keys) == 1:
            return [(place, loop, *self._keys[0])]
        return sorted(dict.fromkeys((place, loop, *key) for key in self._keys))

    def _take(self, keys: Sequence[tuple[Any, ...]]) -> None:
        """Join the queue of each key, wait for the turn there, and collect the notes left for this caller.

        The caller's time is for all of them together.
        """
        limit: float | None = None
        for key in keys:
            with _LOCK:
                queue = _QUEUES.get(key)
                if queue is None:
                    queue = _QUEUES[key] = CallerQueue()
                ticket = Ticket(key, queue)
                self._tickets.append(ticket)
                queue.join(ticket)
            if ticket.waits():
                limit = self._limit() if limit is None else limit
                self._wait(ticket, limit)
            if queue.notes:
                self._notes = {**self._notes, **queue.notes}
                if (own := key[2:]) in queue.notes:
                    self._fresh[own] = queue.notes[own]

    def _limit(self) -> float:
        """Return the clock reading at which the caller's time is over, if it begins to wait now."""
        limit = self._driver.clock() + self._driver.patience.seconds
        return min(limit, math.inf if self._driver.deadline is None else self._driver.deadline)

    def _wait(self, ticket: Ticket, limit: float) -> None:
        """Wait until the caller is let in or its time is over; let the first caller pass a stuck queue.

        Args:
            limit: clock reading at which the caller's time is over.
        """
        queue, clock = ticket.queue, self._driver.clock
        assert ticket.turn is not None  # noqa: S101  it waits
        while ticket.waits():
            admissions = queue.admissions
            ticket.turn.wait(max(0.0, min(STUCK_SECONDS, limit - clock())))
            with _LOCK:
                if (
                    ticket not in queue.waiting
                ):  # it was let in, or this is a child process that was forked meanwhile
                    return
                if clock() >= limit:
                    queue.give_up(ticket)
                    return
                if queue.admissions == admissions and queue.waiting[0] is ticket:
                    queue.pass_by()

    def _leave(self) -> None:
        """Leave all queues, pass on the notes, let the next callers in, and remove queues that are idle."""
        if self._before is None:
            return
        for ticket in self._tickets:
            with _LOCK:
                ticket.queue.leave(ticket, changed=self.changed, notes=self._notes)
                if ticket.queue.is_idle and _QUEUES.get(ticket.key) is ticket.queue:
                    del _QUEUES[ticket.key]
        # Last, so that what interrupts this thread meanwhile does not wait behind it.
        _PLACE.reset(self._before)
        self._before = None
