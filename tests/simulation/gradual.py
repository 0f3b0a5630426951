"""Tables whose transactions show item by item, as DynamoDB's do to plain reads.

AWS promises that a read of one item comes before a transaction or after it; of reads of several items, one after the
other, some may come before and others after. So a head may be there, and the events that belong to it not yet, for as
long as it takes to carry the transaction out. Until then whatever else would write what is not yet written, or read it
in a transaction, is in conflict; and only then is the transaction answered, and do tables' streams carry it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from epochal.plan.effects import holds
from epochal.plan.failures import RequestNotApplied
from epochal.plan.ops import Done, Execute, Op, Put, Refusal, Reply, Transact, TransactGet, TransactionWrite
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item, Key
from epochal.testing.memory import MemoryTables
from tests.simulation.scheduler import PAUSE

LONGEST = 8
"""Requests of anyone that a transaction may take to be carried out."""


@dataclass(slots=True)
class _UnderWay:
    """A transaction that is decided, and what of it is still to be written.

    Attributes:
        before: how many changes each of its tables had seen.
    """

    writes: Sequence[TransactionWrite]
    rest: list[tuple[TransactionWrite, Item | None]]
    before: dict[str, int]
    left: int


class Gradual(MemoryTables):
    """Tables in memory, of which a transaction takes some further requests of anyone to be carried out.

    Attributes:
        late: which of its items show only then; None for a transaction that shows at once.
        luck: says how long it takes, and what one that meets it is told; None: as long as can be, and all there is.
    """

    def __init__(self, tables: dict[str, TableSpec]) -> None:
        super().__init__(tables)
        self.late: Callable[[TransactionWrite], bool] | None = None
        self.luck: random.Random | None = None
        self._under_way: list[_UnderWay] = []

    def execute(self, op: Op) -> Reply:
        """Perform a request, unless it meets a transaction."""
        with self._lock:
            if not self._under_way:
                return super().execute(op)
            self.tick()
            return self._in_conflict(op) or super().execute(op)

    def gradually(self, luck: random.Random) -> None:
        """Complete transactions at random times from now on."""
        self.luck, self.late = luck, lambda _: luck.random() < 0.5

    @property
    def busy(self) -> bool:
        """Whether any transaction is still being completed."""
        return bool(self._under_way)

    def under_way(self, op: Transact) -> bool:
        """Return whether a transaction is still being completed."""
        return any(each.writes is op.writes for each in self._under_way)

    def changes(self, table: str) -> tuple[Item, ...]:
        """New images that the table's stream carries by now: none that came after one of a transaction under way."""
        with self._lock:
            carried = min(
                (each.before[table] for each in self._under_way if table in each.before), default=None
            )
            return super().changes(table)[:carried]

    def tick(self) -> None:
        """Let the time of a request pass."""
        with self._lock:
            for each in self._under_way:
                each.left -= 1
            self._finish([each for each in self._under_way if each.left <= 0])

    def carry_out(self) -> None:
        """Complete all transactions under way."""
        with self._lock:
            self._finish(list(self._under_way))

    def settle(self) -> None:
        """Complete all transactions, those of the future at once."""
        self.luck = self.late = None
        self.carry_out()

    def _store(self, writes: Sequence[TransactionWrite], results: Sequence[Item | None]) -> None:
        before = {write.table: len(super(Gradual, self).changes(write.table)) for write in writes}
        rest: list[tuple[TransactionWrite, Item | None]] = []
        for write, result in zip(writes, results, strict=True):
            if self.late is not None and len(writes) > 1 and self.late(write):
                rest.append((write, result))
            else:
                super()._store((write,), (result,))
        if rest:
            left = LONGEST if self.luck is None else self.luck.randint(1, LONGEST)
            self._under_way.append(_UnderWay(writes, rest, before, left))

    def _finish(self, over: list[_UnderWay]) -> None:
        self._under_way = [each for each in self._under_way if each not in over]
        for each in over:
            for write, result in each.rest:
                super()._store((write,), (result,))

    def _in_conflict(self, op: Op) -> Refusal | None:
        """Raises where a transaction is in the way; a refusal, where something else is too and that is all it tells."""
        unwritten = [_place(write) for each in self._under_way for write, _ in each.rest]
        meets = [place in unwritten for place in _places(op)]
        if not any(meets):
            return None
        if isinstance(op, Transact) and (self.luck is None or self.luck.random() < 0.5):
            before = [self._stored(*_place(write)) for write in op.writes]
            failed = tuple(
                not met and not holds(write.condition, item)
                for write, item, met in zip(op.writes, before, meets, strict=True)
            )
            if any(failed):
                items = tuple(item if bad else None for item, bad in zip(before, failed, strict=True))
                return Refusal(items=items, failed=failed)
        raise RequestNotApplied("TransactionConflict")


def awaiting(execute: Execute, tables: Gradual) -> Execute:
    """An interpreter whose process gets a transaction's answer once it is carried out; others go on meanwhile."""

    def perform(op: Op) -> Reply:
        reply = execute(op)
        while isinstance(op, Transact) and isinstance(reply, Done) and tables.under_way(op):
            execute(PAUSE)
            tables.tick()
        return reply

    return perform


def _places(op: Op) -> list[tuple[str, Key]]:
    """What an operation writes, or reads in a transaction."""
    match op:
        case Transact(writes=writes):
            return list(map(_place, writes))
        case TransactGet(keys=keys):
            return list(keys)
        case _ if hasattr(op, "condition"):
            return [_place(op)]
        case _:
            return []


def _place(write: TransactionWrite) -> tuple[str, Key]:
    if not isinstance(write, Put):
        return write.table, write.key
    names = ("pk", "sk", "pkey", "skey", "p", "i")
    return write.table, {name: write.item[name] for name in names if name in write.item}
