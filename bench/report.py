"""Tables and progress bars of the benchmarks. Progress goes to stderr, so that the tables can be kept in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

T = TypeVar("T")

_WIDTH = 110


def progress(what: str, found: Iterable[T], total: int) -> Iterator[T]:
    """Pass `found` on, showing how much of `total` has come."""
    yield from track(found, what, total=total, console=Console(stderr=True), transient=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: text to the left, figures to the right."""
    printed = Table(box=box.SIMPLE_HEAD)
    listed = [tuple(row) for row in rows]
    for position, column in enumerate(columns):
        numeric = all(row[position][:1].isdigit() or not row[position] for row in listed)
        printed.add_column(column, justify="right" if numeric else "left")
    for row in listed:
        printed.add_row(*row)
    console = Console(width=_WIDTH)
    console.print(title, style="bold", highlight=False)
    console.print(printed)
