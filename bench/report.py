"""Tables and progress bars of the benchmarks. Progress goes to stderr, so that the tables can be kept in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, TypeVar

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

T = TypeVar("T")

FIGURES: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "figures.json"
"""The tables as they were last measured, for whoever draws them."""

_WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A table with a title, and rows of text; columns of figures are right-aligned."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def print(self) -> None:
        """Print the table to stdout, and remember it for `keep`."""
        PRINTED.append(self)
        printed = Table(box=box.SIMPLE_HEAD)
        for position, column in enumerate(self.columns):
            texts = [row[position] for row in self.rows]
            printed.add_column(column, justify="right" if any(map(_is_figure, texts)) else "left")
        for row in self.rows:
            printed.add_row(*row)
        console = Console(width=_WIDTH)
        console.print(self.title, style="bold", highlight=False)
        console.print(printed)


PRINTED: Final[list[Report]] = []
"""Tables of the benchmark that runs."""


def keep(name: str, measured: date, into: Path = FIGURES) -> None:
    """Replace a benchmark's tables in the file of figures by those that it has printed."""
    if not PRINTED:
        return
    figures = json.loads(into.read_text()) if into.exists() else {}
    tables = [
        {
            "title": report.title,
            "columns": list(report.columns),
            "rows": [[_value(cell) for cell in row] for row in report.rows],
        }
        for report in PRINTED
    ]
    PRINTED.clear()
    figures[name] = {"measured": measured.isoformat(), "tables": tables}
    into.write_text(json.dumps(dict(sorted(figures.items())), indent=1, ensure_ascii=False) + "\n")


def _value(cell: str) -> str | float | None:
    """Return a cell as a number, if it is one; None for an empty cell."""
    try:
        return float(cell.replace(",", "")) if cell else None
    except ValueError:
        return cell


def progress(what: str, items: Iterable[T], total: int) -> Iterator[T]:
    """Iterate over `items`, showing how much of `total` is done."""
    yield from track(items, what, total=total, console=Console(stderr=True), transient=True)


def _is_figure(text: str) -> bool:
    return text[:1].isdigit() and " " not in text.removesuffix(" B").removesuffix(" MB")
