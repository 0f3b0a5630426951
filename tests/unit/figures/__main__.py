"""What the library measures, beside what it may at most and what it aims at.

    python -m tests.unit.figures            prints the table
    python -m tests.unit.figures --lower    lowers the bounds to what is measured, where that is less

Bounds are in `bounds.json`. Large figures have some room: several people work at a time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.unit.figures.measures import measured

KEPT: Final = Path(__file__).with_name("bounds.json")

ROOM: Final = 0.01
"""Of a large figure, by which it may grow before anybody is asked."""


def bounds() -> dict[str, dict[str, int]]:
    """By the name of a figure: the most that it may be, and the aim where there is one."""
    kept: dict[str, dict[str, int]] = json.loads(KEPT.read_text())
    return kept


def table(figures: Mapping[str, int]) -> str:
    """As people read it."""
    kept = bounds()
    rows = [("", "today", "at most", "aim")]
    for name, value in figures.items():
        aim = kept[name].get("aim")
        rows.append((name, f"{value:,}", f"{kept[name]['most']:,}", "" if aim is None else f"{aim:,}"))
    wide = max(len(row[0]) for row in rows)
    return "\n".join(f"{row[0]:{wide}}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in rows)


def lowered(kept: Mapping[str, Mapping[str, int]], figures: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The bounds, where a figure is below its own."""
    return {
        name: {**kept.get(name, {}), "most": min(kept.get(name, {}).get("most", _most(value)), _most(value))}
        for name, value in figures.items()
    }


def _most(value: int) -> int:
    return value if value < 500 else round(value * (1 + ROOM))


def main(arguments: Sequence[str]) -> None:
    """Print, and lower where asked to."""
    figures = measured()
    if "--lower" in arguments:
        KEPT.write_text(json.dumps(lowered(bounds(), figures), indent=1) + "\n")
    sys.stdout.write(f"{table(figures)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
