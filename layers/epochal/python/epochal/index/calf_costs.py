"""When to move a Tip's events into a calf: not too early, because a calf costs a write, and not too late, because each
append costs by the size of the whole Tip.

Every append is charged for the whole Tip, so each event that the Tip carries makes later appends dearer. Calving writes
the carried events once more, and is charged for the old Tip. The best moment is a stopping problem, which is solved for
a stream that continues as the Tip shows it: with `rate` the least average cost of an append over a whole cycle from
calf to calf, it calves now unless some number of further appends, at `rate` each, makes calving later cheaper. The rule
is a pure function of a `Token`, so a writer that has only a token can decide without a read. `bench/calving.py`
compares it with the offline optimum.
"""

from __future__ import annotations

from typing import Final

from epochal.lazy_dataclasses import dataclass
from epochal.model.tokens import Token
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.values import WRITE_UNIT, number_size, write_units

ROOM: Final = 8 * 1024
"""Bytes kept free below the item limit for keys, counters and errors of a token's sizes."""

_HORIZON: Final = 64

_LEAST: Final = 32
"""Smallest bytes of an append. A token from outside may contain any numbers; this limits the steps of a computation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What is about to be written.

    Attributes:
        growth: bytes by which the new events grow a Tip that carries others.
        events: number of new events.
        unfolds: bytes of the unfolds that the Tip will have.
        name: bytes of the stream's name.
    """

    growth: int
    events: int
    unfolds: int
    name: int


LARGE: Final = 3_500
"""Bytes of events in a Tip that the next append always puts into a calf: so a reader at the tail may look for that
calf, instead of at a Tip that costs more than the least. Such a Tip has had one large append, and a small one on it
would cost as much again."""


def calf_pays(tip: Token, new: Growth, factor: int) -> bool:
    """Return whether to put the Tip's events into a calf now: that is cheaper, or the Tip would overflow.

    `factor` is 2 if calf and Tip are written in one transaction.
    """
    if tip.events == 0:
        return False
    if overflows(tip, new):
        return True
    costs = _costs(tip, new, factor)
    average = max(_LEAST, (tip.carried + new.growth) / (tip.appends + 1))
    return _waiting_is_dearer(costs, tip.carried, new.growth, average)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """Write units of a Tip's possible next writes.

    Attributes:
        fixed: bytes of the Tip without events.
        calf: bytes of a calf without events.
        factor: 2 if calf and Tip are written in one transaction.
    """

    fixed: int
    calf: int
    factor: int

    def append(self, carried: float) -> int:
        """Return the units of an append that leaves the Tip with `carried` bytes of events."""
        return write_units(int(self.fixed + carried))

    def calve(self, carried: float, least: float = 0) -> int:
        """Return the units of a calf of `carried` bytes and the update, charged by the larger Tip."""
        update = write_units(int(self.fixed + max(carried, least)))
        return self.factor * (write_units(int(self.calf + carried)) + update)


def _costs(tip: Token, new: Growth, factor: int) -> _Costs:
    """Return the costs of writes to this Tip."""
    bare = tip.size - tip.carried - tip.unfolds
    keys = 3 + new.name + number_size(str(tip.version - tip.events)) + number_size(str(tip.version))
    return _Costs(fixed=bare + new.unfolds, calf=keys, factor=factor)


def overflows(tip: Token, new: Growth) -> bool:
    """Return whether a Tip has no room for what is about to be written."""
    return tip.size - tip.unfolds + new.unfolds + new.growth > ITEM_BYTES - ROOM


def _waiting_is_dearer(costs: _Costs, carried: float, growth: int, average: float) -> bool:
    """Return whether calving now costs less than calving after any number of the next appends."""
    rate = _rate(costs, average)
    now = costs.calve(carried, least=growth)
    spent = 0.0
    for step in range(min(_HORIZON, 2 + int(WRITE_UNIT // average))):
        carried += growth if step == 0 else average
        spent += costs.append(carried) - rate
        if spent + costs.calve(carried) <= now:
            return False
    return True


def _rate(costs: _Costs, average: float) -> float:
    """Return the least average units of an append over a whole cycle from calf to calf.

    Appends are assumed to have `average` bytes each.
    """
    best, spent, carried, appends = float("inf"), 0.0, 0.0, 0
    while carried < ITEM_BYTES:
        appends += 1
        carried += average
        if appends > 1:
            spent += costs.append(carried)
        cycle = (spent + costs.calve(carried)) / appends
        if cycle > 1.5 * best:
            break
        best = min(best, cycle)
    return best
