"""The plot of the README, drawn from the table of docs/compared.md: `python -m bench.plots` writes it.

Bars of write units, a panel for each workload. Text and bars follow the reader's light or dark theme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
PLOT: Final = DOCS / "plots" / "write-units.svg"

WORKLOADS: Final = {
    "short streams, load and append: write units": "Short streams, load and append",
    "one stream of 1,000 events, loaded now and then: write units": "One stream of 1,000 events",
    "… with a 1 KB snapshot each time": "… with a 1 KB snapshot each time",
    "batches of 10: write units": "Batches of 10",
}
"""Rows of the table that are drawn, and what they are called."""

WIDTH, PANEL, ROW, LABEL, TOP = 780, 390, 18, 170, 30

STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 } .us { fill: #0a7d5a } .other { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .us { fill: #3fb98a } .other { fill: #6e7681 } }
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """Write units of an event by library; what a library cannot do is told in words."""

    title: str
    bars: tuple[tuple[str, str], ...]


def panels(page: str) -> list[Panel]:
    """What the table says of each workload that is drawn."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"
    ]
    libraries = [re.sub(r"( [\d.]+|,.*|'s pattern.*)$", "", name) for name in rows[0][1:]]
    told = {row[0]: row[1:] for row in rows}
    return [Panel(title, tuple(zip(libraries, told[row], strict=True))) for row, title in WORKLOADS.items()]


def drawn(every: list[Panel]) -> str:
    """The plot as SVG: two panels a line, each with a scale of its own."""
    height = TOP + ROW * len(every[0].bars) + 14
    lines = (len(every) + 1) // 2
    words = "; ".join(f"{each.title}: " + ", ".join(map(" ".join, each.bars)) for each in every)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height * lines}" role="img">',
        f"<title>Write units of an event of 300 bytes. {escape(words)}</title><style>{STYLE}</style>",
    ]
    for number, panel in enumerate(every):
        parts.append(f'<g transform="translate({number % 2 * PANEL},{number // 2 * height})">')
        parts += [f'<text class="title" x="0" y="16">{escape(panel.title)}</text>', *_bars(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _bars(panel: Panel) -> list[str]:
    figures = [float(told) if re.fullmatch(r"[\d.]+", told) else 0.0 for _, told in panel.bars]
    scale = (PANEL - LABEL - 60) / max(figures)
    found = []
    for number, ((library, told), figure) in enumerate(zip(panel.bars, figures, strict=True)):
        y, long = TOP + number * ROW, round(figure * scale, 1)
        kind = "other" if number else "us"
        found += [
            f'<text x="{LABEL - 8}" y="{y + 10}" text-anchor="end">{escape(library)}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{long}" height="12"/>',
            f'<text x="{LABEL + long + 6}" y="{y + 10}">{escape(told)}</text>',
        ]
    return found


def main() -> None:
    """Write the plot."""
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(drawn(panels((DOCS / "compared.md").read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
