"""The rule for full pages against the offline optimum: write units and what is left behind, over streams of every size.

An append costs its write units; a page that is left costs the storage of its item and of the unfolds in it, and where
these are kept a read, by which they move. The optimum knows the whole stream in advance: for each append it is the
cheapest of all ways to have come so far, by what the last page carries. Of two states the one that is neither cheaper
nor lighter is dropped, since whatever it does next, the other can do for no more.

Bound: over 300 appends at most 5 % above the optimum where all appends are alike, 15 % where they are of any size. A
stream in which large appends and tiny ones take turns exactly is the worst that is known: it is shown, and 40 % above.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from bench.report import Report, progress
from epochal.codec.bodies import DIRECT
from epochal.model.moments import Ticks, parse_time
from epochal.model.tokens import Token
from epochal.pages.frames import Frame, stamp_of
from epochal.pages.fullness import KEPT_MONTHS, fits, is_full
from epochal.pages.items import Page, write_page
from epochal.plan.values import item_size, read_units, write_units

Shape = Literal["alike", "±30 %", "±50 %", "long tail", "few large", "by turns"]
Unfolding = Literal["every", "tenth", "first"]

BOUNDS: dict[Shape, float] = {
    "alike": 1.05,
    "±30 %": 1.15,
    "±50 %": 1.15,
    "long tail": 1.15,
    "few large": 1.15,
    "by turns": 1.40,
}
SIZES = (100, 150, 200, 300, 400, 500, 700, 850, 900, 1000, 1500, 2000, 3000, 5000)
UNFOLDS = (0, 300, 1000, 5000, 20_000)
APPENDS = 300

_UNITS_PER_BYTE = KEPT_MONTHS * 0.25 / 2**30 / 0.625e-6
_ITEM = 100
_MOSTLY = 0.9
_NOW = parse_time("2026-11-22T08:00:00.1234567Z")
_READ = 0.2
"""Write units that a read unit costs."""


def _page(frames: int) -> int:
    """Return the bytes of a page with empty frames, in the middle of a stream."""
    empty = tuple(Frame(stamp_of(Ticks(_NOW + k), bytes(8)), 1, DIRECT, b"") for k in range(frames))
    page = Page(stream="Bench-1", index=500, version=500 + frames, frames=empty)
    return item_size(write_page(page))


FRAME = _page(2) - _page(1)
BARE = _page(1) - FRAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A seeded sequence of appends to one stream.

    Attributes:
        size: average number of bytes that an append adds; `shape` is their distribution.
        unfold: number of bytes of the unfolds; 0 for none.
        unfolding: which appends replace the unfolds; the others keep them.
    """

    size: int
    shape: Shape
    unfold: int = 0
    unfolding: Unfolding = "every"
    length: int = APPENDS

    def appends(self) -> Iterator[tuple[int, int, bool]]:
        """Yield the bytes that each append adds, those of the unfolds after it, and whether it replaces them."""
        rng, unfolds = random.Random(f"{self}"), 0
        for position in range(self.length):
            every = {"every": 1, "tenth": 10, "first": self.length}[self.unfolding]
            replaces = position % every == 0
            if replaces and self.unfold:
                strays = 1.0 if self.shape == "alike" else rng.uniform(0.9, 1.1)
                unfolds = round(self.unfold * strays)
            yield FRAME + max(1, round(self.size * self._strays(rng, position))), unfolds, replaces

    def _strays(self, rng: random.Random, position: int) -> float:
        match self.shape:
            case "alike":
                return 1.0
            case "±30 %":
                return rng.uniform(0.7, 1.3)
            case "±50 %":
                return rng.uniform(0.5, 1.5)
            case "long tail":
                return rng.expovariate(1)
            case "few large":
                return 1.0 if rng.random() < _MOSTLY else 8.0
            case "by turns":
                return 1.0 if position % 2 else 0.125


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Write units of a sequence of choices: alone, and with the cost of the pages that are left behind."""

    units: float = 0.0
    all: float = 0.0


def extended(carried: int, grown: int, before: int, after: int) -> int:
    """Return the write units of an append that extends a page, with the bytes of its unfolds before and after."""
    return write_units(BARE + max(carried + before, carried + grown + after))


def left_behind(carried: int, unfolds: int, *, keeps_unfolds: bool) -> float:
    """Return the cost of leaving a page, in write units."""
    moved = _READ * read_units(BARE + carried + unfolds) if keeps_unfolds and unfolds else 0
    return (_ITEM + BARE + unfolds) * _UNITS_PER_BYTE + moved


def optimum(stream: Stream) -> float:
    """Return the lowest possible cost."""
    states = [(0.0, 0)]
    before = 0
    for position, (grown, after, replaces) in enumerate(stream.appends()):
        begun = min(
            cost + (left_behind(carried, before, keeps_unfolds=not replaces) if position else 0)
            for cost, carried in states
        )
        on = [
            (cost + extended(carried, grown, before, after), carried + grown)
            for cost, carried in states
            if position
        ]
        states = _undominated([*on, (begun + write_units(BARE + grown + after), grown)])
        before = after
    return min(cost for cost, _ in states)


def _undominated(states: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    kept: list[tuple[float, int]] = []
    for cost, carried in sorted(states, key=lambda state: (state[1], state[0])):
        if not kept or cost < kept[-1][0]:
            kept.append((cost, carried))
    return kept


def by_rule(stream: Stream, full: Callable[[Token, Token | None], bool] = is_full) -> Cost:
    """Return the cost of the choices that the rule makes."""
    units = others = 0.0
    carried = appends = before = 0
    open_page, last_token = False, None
    for position, (grown, after, replaces) in enumerate(stream.appends()):
        if not (open_page and last_token and fits(last_token, grown + after - before)):
            others += left_behind(carried, before, keeps_unfolds=not replaces) if appends else 0
            units += write_units(BARE + carried + before) if open_page else 0
            units += write_units(BARE + grown + after)
            carried, appends = grown, 1
        else:
            units += extended(carried, grown, before, after)
            carried, appends = carried + grown, appends + 1
        token = _token(position, carried, after, appends)
        open_page, last_token, before = not full(token, last_token), token, after
    return Cost(units=units, all=units + others)


def _token(position: int, carried: int, unfolds: int, appends: int) -> Token:
    size = BARE + carried + unfolds
    return Token(version=500 + position, size=size, carried=carried, unfolds=unfolds, appends=appends)


def excess(stream: Stream) -> float:
    """Return the rule's cost as a multiple of the optimum."""
    return by_rule(stream).all / optimum(stream)


def streams(shape: Shape, sizes: Sequence[int] = SIZES) -> list[Stream]:
    """Return streams of every size, without and with unfolds of every size, which half of the appends replace."""
    unfolded: list[tuple[int, Unfolding]] = [(0, "every")]
    unfolded += product(UNFOLDS[1:], ("every", "tenth", "first"))
    return [
        Stream(size=size, shape=shape, unfold=unfold, unfolding=unfolding)
        for size, (unfold, unfolding) in product(sizes, unfolded)
    ]


def main() -> None:
    """Measure, print the worst stream of every shape, and exit with an error if a bound is exceeded."""
    rows, over = [], []
    for shape in progress("fullness", BOUNDS, len(BOUNDS)):
        excesses = {stream: excess(stream) for stream in streams(shape)}
        worst = max(excesses, key=lambda stream: excesses[stream])
        mean = sum(excesses.values()) / len(excesses)
        rows.append(
            (
                shape,
                f"{mean - 1:.1%}",
                f"{excesses[worst] - 1:.1%}",
                _named(worst),
                f"{BOUNDS[shape] - 1:.0%}",
            )
        )
        over += [stream for stream, ratio in excesses.items() if ratio > BOUNDS[shape]]
    Report(
        title=f"{APPENDS} appends: cost above the optimum",
        columns=["sizes", "mean", "worst", "which", "bound"],
        rows=rows,
    ).print()
    if over:
        raise SystemExit(f"above their bounds: {over}")


def _named(stream: Stream) -> str:
    unfolds = f", unfolds of {stream.unfold:,} B ({stream.unfolding})" if stream.unfold else ""
    return f"{stream.size:,} B{unfolds}"


if __name__ == "__main__":
    main()
