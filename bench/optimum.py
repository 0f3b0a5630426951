"""The cheapest way to calve a whole stream, known in advance: what an online rule can at best come close to.

Every append either leaves the Tip's events where they are or calves all of them first. A state is the append that the
Tip's oldest event came in; it goes on to the next append with that base, or with the next append as base. Of two
states the one that is neither cheaper nor lighter is dropped, since whatever it does next, the other can do for no
more; what remains is a handful, so the search is exact and quick.

Prices are not formulas of this file: `Prices` has the layout plan and apply its own writes, for the stream that
calves at every append, and takes their items apart. A Tip's bytes are the sum of its attributes', of which some depend
on the latest append only and some on the base only, so those items price every other course as well. The tests
compare with every course of short streams as the library itself charges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from epochal.index.tip import StoredSpan, read_tip, span_size
from epochal.index.tip_writes import create_tip, put_calf, restart_tip
from epochal.index.wire_batch import WireBatch
from epochal.plan.effects import after
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Update
from epochal.plan.values import Item, attribute_size, write_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Bytes of every possible Tip and calf of a stream, by positions of appends.

    Attributes:
        heads: bytes of all attributes but `b` and the events, of a Tip whose latest append is k.
        marks: bytes of `b` where the oldest carried append is k.
        keys: bytes of the key of a calf whose first append is k.
        ends: bytes of `n` of a calf whose last append is k.
        events: bytes of the events of the appends before k, without their lists.
        lists: bytes of the lists that contain events.
    """

    heads: Sequence[int]
    marks: Sequence[int]
    keys: Sequence[int]
    ends: Sequence[int]
    events: Sequence[int]
    lists: int

    def tip(self, base: int, last: int) -> int:
        """Return the bytes of the Tip that carries the appends from `base` to `last`."""
        return self.heads[last] + self.marks[base] + self._carried(base, last)

    def calf(self, base: int, last: int) -> int:
        """Return the bytes of the calf of the appends from `base` to `last`."""
        return self.keys[base] + self.ends[last] + self._carried(base, last)

    def _carried(self, base: int, last: int) -> int:
        return self.lists + self.events[last + 1] - self.events[base]


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The lowest cost in write units, and the positions of the appends before which the Tip is calved."""

    units: int
    calves: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    base: int
    units: int
    history: _State | None = None
    """The state that the latest calving left; the chain of them is the course taken."""


def optimum(batches: Sequence[WireBatch], *, transactional: bool = False) -> Optimum:
    """Compute the cheapest choices for these appends to one new stream."""
    prices = prices_of(batches)
    states = [_State(base=0, units=write_units(prices.tip(0, 0)))]
    for append in range(1, len(batches)):
        calved = min(
            (_calve(prices, state, append, factor=2 if transactional else 1) for state in states),
            key=lambda state: state.units,
        )
        states = _undominated([calved, *_go_on(prices, states, append)])
    best = min(states, key=lambda state: state.units)
    return Optimum(units=best.units, calves=_course(best))


def _go_on(prices: Prices, states: Sequence[_State], append: int) -> list[_State]:
    """Return the states after an append that does not calve, the lightest first, if the Tip is not too large."""
    states_after = []
    for state in states:
        size = prices.tip(state.base, append)
        if size <= ITEM_BYTES:
            cost = write_units(max(prices.tip(state.base, append - 1), size))
            states_after.append(_State(base=state.base, units=state.units + cost, history=state.history))
    return states_after


def _calve(prices: Prices, state: _State, append: int, *, factor: int) -> _State:
    """Return the state after an append that calves first, whose update costs by the larger size of the Tip."""
    before, size = prices.tip(state.base, append - 1), prices.tip(append, append)
    cost = write_units(prices.calf(state.base, append - 1)) + write_units(max(before, size))
    return _State(base=append, units=state.units + factor * cost, history=state)


def _undominated(states: Sequence[_State]) -> list[_State]:
    """Return the states that are cheaper than every lighter one, from states sorted by weight.

    A later base is lighter in every respect: an event takes over 40 bytes, the digits of `b` and of the calf's key
    that come with a later base at most a dozen.
    """
    cheaper: list[_State] = []
    for state in states:
        if not cheaper or state.units < cheaper[-1].units:
            cheaper.append(state)
    return cheaper


def _course(state: _State) -> tuple[int, ...]:
    calves = []
    while state.history is not None:
        calves.append(state.base)
        state = state.history
    return tuple(reversed(calves))


def prices_of(batches: Sequence[WireBatch]) -> Prices:
    """Compute the sizes of a stream from the writes that the layout plans when it calves at every append."""
    put, _ = create_tip("tips", batches[0])
    tips, calves = [put.item], []
    for batch in batches[1:]:
        tip = read_tip(tips[-1])
        calves.append(put_calf("tips", batch.stream, tip.span).item)
        update, _ = restart_tip("tips", batch, tip)
        tips.append(_applied(update, tips[-1]))
    last = read_tip(tips[-1])
    calves.append(put_calf("tips", last.stream, last.span).item)
    lists = _lists(last.span)
    return Prices(
        heads=[_bytes_without(tip, "b", "e", "c") for tip in tips],
        marks=[_bytes_of(tip, "b") for tip in tips],
        keys=[_bytes_of(calf, "p", "i") for calf in calves],
        ends=[_bytes_without(calf, "p", "i", "e", "c") for calf in calves],
        events=list(accumulate((_bytes_of(tip, "e", "c") - lists for tip in tips), initial=0)),
        lists=lists,
    )


def _applied(update: Update, item: Item) -> Item:
    item_after = after(update, item)
    assert item_after is not None
    return item_after


def _lists(span: StoredSpan) -> int:
    """Return the bytes of a span that do not depend on the number of its events."""
    doubled = StoredSpan(base=span.base, events=span.events * 2, types=span.types * 2)
    return 2 * span_size(span) - span_size(doubled)


def _bytes_of(item: Item, *names: str) -> int:
    return sum(attribute_size(name, item[name]) for name in names if name in item)


def _bytes_without(item: Item, *names: str) -> int:
    return _bytes_of(item, *(name for name in item if name not in names))
