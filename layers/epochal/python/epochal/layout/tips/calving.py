"""When to move a Tip's events into a calf: never too early, because calving costs, nor too late, because weight does.

Every append is charged by the whole Tip, so each carried event taxes the appends after it; calving writes the carried
events once more and is charged for the old Tip. The best moment is a stopping problem. `ByCost` solves it for a stream
that goes on as the Tip shows it: with `rate` the least average cost of an append over a whole cycle from calf to calf,
it calves now unless some number of further appends, at `rate` each, makes calving later cheaper. A pure function of a
`Token`, which is why a writer that holds only a token can decide without reading.

`Fixed` calves by bytes and events, as Equinox does; for tables that Equinox applications write too.
Measured against the offline optimum by `bench/calving.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from epochal.errors import InvalidInput
from epochal.model.versions import Token
from epochal.plan.ops import ITEM_BYTES
from epochal.plan.values import WRITE_UNIT, number_size, write_units
from epochal.settings import CALVING, TIP_BYTES, Settings, is_fixed, variable

Mode = Literal["two-step", "transactional"]
"""Whether a calf and its Tip are written one after the other, or in one transaction."""

ROOM: Final = 8 * 1024
"""Kept free below the item limit for keys, counters and what sizes in a token may be off by."""

_HORIZON: Final = 64

_LEAST: Final = 32
"""No append takes less. A token comes from outside and may say anything; this bounds how long one is reckoned with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """What is about to be written.

    Attributes:
        growth: bytes by which the new events grow a Tip that carries others.
        events: how many.
        unfolds: bytes of the unfolds that the Tip will have.
        name: bytes of the stream's name.
    """

    growth: int
    events: int
    unfolds: int
    name: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCost:
    """Calve when that is cheaper than to go on."""

    mode: Mode = "two-step"

    def calves(self, tip: Token, new: Append) -> bool:
        """Whether to calve what the Tip carries before writing `new`."""
        if tip.events == 0:
            return False
        if _overflows(tip, new):
            return True
        costs = _costs(tip, new, factor=2 if self.mode == "transactional" else 1)
        average = max(_LEAST, (tip.carried + new.growth) / (tip.appends + 1))
        return _waiting_is_dearer(costs, tip.carried, new.growth, average)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Calve when the Tip would exceed `max_bytes` of events or `max_events`."""

    max_bytes: int = TIP_BYTES
    max_events: int | None = None
    mode: Mode = "transactional"

    def calves(self, tip: Token, new: Append) -> bool:
        """Whether to calve what the Tip carries before writing `new`."""
        if tip.events == 0:
            return False
        if _overflows(tip, new) or tip.carried + new.growth > self.max_bytes:
            return True
        return self.max_events is not None and tip.events + new.events > self.max_events


Calving = ByCost | Fixed
"""When events leave a Tip."""


def calving_of(settings: Settings) -> Calving:
    """What a deployment does. Where Equinox applications use the table too, calf and Tip are one transaction, and the
    rule is theirs unless another is chosen.

    Raises:
        InvalidInput: there is no such rule.
    """
    if settings.calving not in CALVING:
        raise InvalidInput(variable("calving"), f"must be one of {', '.join(CALVING)}")
    mode: Mode = "transactional" if settings.equinox else "two-step"
    if is_fixed(settings.calving, equinox=settings.equinox):
        most = settings.calving_max_events or None
        return Fixed(max_bytes=settings.calving_max_bytes, max_events=most, mode=mode)
    return ByCost(mode=mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """Units of the writes that a Tip's future may hold.

    Attributes:
        fixed: bytes of the Tip without events.
        calf: bytes of a calf without events.
        factor: 2 where calf and Tip are written in one transaction.
    """

    fixed: int
    calf: int
    factor: int

    def append(self, carried: float) -> int:
        """An append that leaves the Tip with `carried` bytes of events."""
        return write_units(int(self.fixed + carried))

    def calving(self, carried: float, least: float = 0) -> int:
        """A calf of `carried` bytes, and the update, charged by the larger Tip, before or after."""
        update = write_units(int(self.fixed + max(carried, least)))
        return self.factor * (write_units(int(self.calf + carried)) + update)


def _costs(tip: Token, new: Append, factor: int) -> _Costs:
    bare = tip.size - tip.carried - tip.unfolds
    keys = 3 + new.name + number_size(str(tip.version - tip.events)) + number_size(str(tip.version))
    return _Costs(fixed=bare + new.unfolds, calf=keys, factor=factor)


def _overflows(tip: Token, new: Append) -> bool:
    return tip.size - tip.unfolds + new.unfolds + new.growth > ITEM_BYTES - ROOM


def _waiting_is_dearer(costs: _Costs, carried: float, growth: int, average: float) -> bool:
    rate = _rate(costs, average)
    now = costs.calving(carried, least=growth)
    spent = 0.0
    for step in range(min(_HORIZON, 2 + int(WRITE_UNIT // average))):
        carried += growth if step == 0 else average
        spent += costs.append(carried) - rate
        if spent + costs.calving(carried) <= now:
            return False
    return True


def _rate(costs: _Costs, average: float) -> float:
    """The least average units of an append over a cycle, for appends of `average` bytes each."""
    best, spent, carried, appends = float("inf"), 0.0, 0.0, 0
    while carried < ITEM_BYTES:
        appends += 1
        carried += average
        if appends > 1:
            spent += costs.append(carried)
        cycle = (spent + costs.calving(carried)) / appends
        if cycle > 1.5 * best:
            break
        best = min(best, cycle)
    return best
