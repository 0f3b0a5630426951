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
    """Return the oldest state that a read may show."""
    return states[0]


class Lagging:
    """An executor on tables whose eventually consistent reads show earlier states; all writes must use it."""

    def __init__(self, tables: MemoryTables, choice: Choice = oldest) -> None:
        self._tables = tables
        self._choice = choice
        self._states = deque([tables.copy()], maxlen=LATEST)

    def execute(self, op: Op) -> Reply:
        """Perform a request; an eventually consistent read is performed on a recent state."""
        if isinstance(op, Get | BatchGet | Query | Scan) and not op.consistent:
            return self._choice(self._states).execute(op)
        reply = self._tables.execute(op)
        if not isinstance(op, Get | BatchGet | Query | Scan | TransactGet):
            self._states.append(self._tables.copy())
        return reply
