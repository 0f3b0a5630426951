"""Plots of the documentation, drawn from the tables of its pages: `python -m bench.plots` writes them.

The tables are what tests recompute, so a plot is as true as its table. Text and bars follow the reader's light or dark
theme.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from bench.bill import DEPLOYED

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
WORKLOADS: Final = {
    "short streams, load and append: write units": "Short streams, load and append",
    "one stream of 1,000 events, loaded now and then: write units": "One stream of 1,000 events",
    "… with a 1 KB snapshot each time": "… with a 1 KB snapshot each time",
    "batches of 10: write units": "Batches of 10",
}
"""Rows of the table that are drawn, and what they are called."""

OURS: Final = {"Epochal", DEPLOYED.name}
"""Bars that stand out."""

WIDTH, PANEL, ROW, LABEL, TOP = 780, 390, 18, 180, 30

STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 } .us { fill: #0a7d5a } .other { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .us { fill: #3fb98a } .other { fill: #6e7681 } }
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel with a figure for each name; a missing figure is shown as text."""

    title: str
    bars: tuple[tuple[str, str], ...]


def write_units(page: str) -> list[Panel]:
    """Return the write units of an event by library, from the table of docs/compared.md."""
    (rows,) = _tables(page)
    libraries = [re.sub(r"( [\d.]+|,.*|'s pattern.*)$", "", name) for name in rows[0][1:]]
    cells = {row[0]: row[1:] for row in rows}
    return [Panel(title, tuple(zip(libraries, cells[row], strict=True))) for row, title in WORKLOADS.items()]


def bills(page: str) -> list[Panel]:
    """Return the dollars for a million appends over HTTP by setup, from docs/reference/cost.md."""
    panels = []
    for rows in _tables(page):
        sums = {name.strip("*"): cells for name, *cells in rows}.get("in all")
        if sums is None:
            continue
        setups = tuple(zip(rows[0][1:], [cell.strip("*") for cell in sums], strict=True))
        title = f"{(len(panels) and 'A million a month') or 'A hundred a second'}: dollars a million"
        panels.append(Panel(title, setups))
    return panels


def _tables(page: str) -> list[list[list[str]]]:
    """Return the rows of each table of a page, beginning with the header."""
    blocks = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in blocks
    ]


def drawn(about: str, every: list[Panel]) -> str:
    """Draw a plot as SVG, with two panels per line, each with its own scale."""
    height = TOP + ROW * len(every[0].bars) + 14
    lines = (len(every) + 1) // 2
    words = "; ".join(f"{panel.title}: " + ", ".join(map(" ".join, panel.bars)) for panel in every)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height * lines}" role="img">',
        f"<title>{escape(about)} {escape(words)}</title><style>{STYLE}</style>",
    ]
    for number, panel in enumerate(every):
        parts.append(f'<g transform="translate({number % 2 * PANEL},{number // 2 * height})">')
        parts += [f'<text class="title" x="0" y="16">{escape(panel.title)}</text>', *_bars(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _bars(panel: Panel) -> list[str]:
    figures = [float(label) if re.fullmatch(r"[\d.]+", label) else 0.0 for _, label in panel.bars]
    scale = (PANEL - LABEL - 60) / max(figures)
    parts = []
    for number, ((library, label), figure) in enumerate(zip(panel.bars, figures, strict=True)):
        y, long = TOP + number * ROW, round(figure * scale, 1)
        kind = "us" if library in OURS else "other"
        parts += [
            f'<text x="{LABEL - 8}" y="{y + 10}" text-anchor="end">{escape(library)}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{long}" height="12"/>',
            f'<text x="{LABEL + long + 6}" y="{y + 10}">{escape(label)}</text>',
        ]
    return parts


PLOTS: Final[Mapping[str, tuple[str, str, Callable[[str], list[Panel]]]]] = {
    "write-units.svg": ("compared.md", "Write units of an event of 300 bytes.", write_units),
    "bills.svg": ("reference/cost.md", "Dollars for a million appends over HTTP.", bills),
}
"""By file: the page that has the tables, what the plot is of, and its panels."""


def plot(name: str) -> str:
    """Draw a plot of `PLOTS` from the present figures of its page."""
    page, about, panels = PLOTS[name]
    return drawn(about, panels((DOCS / page).read_text("utf-8")))


def main() -> None:
    """Write all plots."""
    for name in PLOTS:
        (DOCS / "plots" / name).write_text(plot(name), "utf-8")


if __name__ == "__main__":
    main()
