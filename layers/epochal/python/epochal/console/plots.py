"""Plots as values, which a template writes as SVG: no browser draws anything."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 120
"""Of the area that is drawn in; labels are around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar: its left edge, its upper edge, and what it says."""

    x: float
    y: float
    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Values over time.

    Attributes:
        top: the value at the upper edge.
        thick: width of a bar.
        line: the same as points of a polyline, `x,y x,y`.
    """

    title: str
    bars: tuple[Bar, ...]
    top: float
    thick: float
    line: str

    @property
    def total(self) -> float:
        """The sum of all."""
        return sum(bar.value for bar in self.bars)


def plot(title: str, values: Sequence[tuple[str, float]]) -> Plot:
    """Values in order, each with its label."""
    top = max((value for _, value in values), default=0) or 1
    step = WIDTH / max(len(values), 1)
    bars = tuple(
        Bar(x=round(step * number, 1), y=round(HEIGHT - HEIGHT * value / top, 1), label=label, value=value)
        for number, (label, value) in enumerate(values)
    )
    line = " ".join(f"{bar.x + step / 2:.1f},{bar.y}" for bar in bars)
    return Plot(title=title, bars=bars, top=top, thick=round(max(step - 1, 1), 1), line=line)


def over_time(title: str, sums: Mapping[float, float], period: int, most: int) -> Plot:
    """Sums by the beginnings of periods, in seconds since 1970: the last `most` periods, with those of none between."""
    if not sums:
        return plot(title, [])
    last = int(max(sums)) // period * period
    first = max(int(min(sums)) // period * period, last - (most - 1) * period)
    by_period = {int(at) // period * period: value for at, value in sums.items()}
    return plot(title, [(clock(at), by_period.get(at, 0)) for at in range(first, last + period, period)])


def clock(seconds: float) -> str:
    """Hours and minutes, UTC."""
    return time.strftime("%H:%M", time.gmtime(seconds))
