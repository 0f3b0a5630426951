"""Makes an interpreter misbehave on purpose, at chosen requests, as a network does and a memory table does not.

A schedule is a plain value, so a test enumerates schedules, or draws them, and a failing one prints and replays.

    THROTTLED    refused unread: the caller knows that nothing happened
    LOST         never arrives: the caller cannot tell
    UNANSWERED   arrives and is applied, its answer does not come back: the caller cannot tell
    Late(n)      arrives after n more requests of anyone, long after the caller gave it up
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import Enum

from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Execute, Lost, NotApplied, Op, Reply


class Fault(Enum):
    """What happens to one request."""

    THROTTLED = "throttled"
    LOST = "lost"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Late:
    """A request is given up by its sender, and lands once `requests` more have been performed."""

    requests: int = 1


Schedule = Mapping[int, Fault | Late]
"""Which requests, counted from 0, meet which fault; the others go well."""


class Faults:
    """An interpreter around another that keeps to a schedule. Safe under threads.

    Attributes:
        requests: how many have been made, whatever became of them.
    """

    def __init__(self, execute: Execute, schedule: Schedule) -> None:
        self.requests = 0
        self._execute = execute
        self._schedule = schedule
        self._lock = threading.Lock()
        self._delayed: list[tuple[int, Op]] = []

    def execute(self, op: Op) -> Reply:
        """Perform one operation, or what the schedule makes of it.

        Raises:
            NotApplied: it was throttled.
            Lost: it was lost, unanswered or delayed.
        """
        with self._lock:
            number = self.requests
            self.requests += 1
            fault = self._schedule.get(number)
            if isinstance(fault, Late):
                self._delayed.append((number + fault.requests, op))
            due = self._due(number)
        for late in due:
            self._execute(late)
        return self._perform(op, fault)

    def land(self) -> None:
        """Let every delayed request arrive now."""
        with self._lock:
            late, self._delayed = self._delayed, []
        for _, op in late:
            self._execute(op)

    def _due(self, number: int) -> list[Op]:
        due = [op for lands, op in self._delayed if lands < number]
        self._delayed = [(lands, op) for lands, op in self._delayed if lands >= number]
        return due

    def _perform(self, op: Op, fault: Fault | Late | None) -> Reply:
        match fault:
            case None:
                return self._execute(op)
            case Fault.THROTTLED:
                raise NotApplied("throttled by a schedule")
            case Fault.UNANSWERED:
                self._execute(op)
                raise Lost("answer dropped by a schedule")
            case Fault.LOST | Late():
                raise Lost("request held back by a schedule")
