"""Tables in memory whose eventually consistent reads lag, as those of replicas do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from epochal.plan.ops import BatchGet, Get, Op, Query, Reply, Scan, TransactGet
from epochal.testing.memory import MemoryTables

LATEST = 6
"""States of the tables that a read may be of: the last one, and those before the last writes."""

Choice = Callable[[Sequence[MemoryTables]], MemoryTables]
"""Which of the states, oldest first, a read is answered from. Two reads may go back in time."""


def oldest(states: Sequence[MemoryTables]) -> MemoryTables:
    """As late as can be."""
    return states[0]


class Lagging:
    """An interpreter on tables that all writes must go through."""

    def __init__(self, tables: MemoryTables, choice: Choice = oldest) -> None:
        self._tables = tables
        self._choice = choice
        self._states = deque([tables.copy()], maxlen=LATEST)

    def execute(self, op: Op) -> Reply:
        """Perform one operation; a read that need not be consistent on some state of late."""
        if isinstance(op, Get | BatchGet | Query | Scan) and not op.consistent:
            return self._choice(self._states).execute(op)
        reply = self._tables.execute(op)
        if not isinstance(op, Get | BatchGet | Query | Scan | TransactGet):
            self._states.append(self._tables.copy())
        return reply
