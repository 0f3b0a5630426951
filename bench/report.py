"""Tables and progress bars of the benchmarks. Progress goes to stderr, so that the tables can be kept in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

T = TypeVar("T")

_WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One table: a title, and rows of text whose columns of figures are set to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def print(self) -> None:
        """Print it to stdout."""
        printed = Table(box=box.SIMPLE_HEAD)
        for position, column in enumerate(self.columns):
            texts = [row[position] for row in self.rows]
            printed.add_column(column, justify="right" if any(map(_is_figure, texts)) else "left")
        for row in self.rows:
            printed.add_row(*row)
        console = Console(width=_WIDTH)
        console.print(self.title, style="bold", highlight=False)
        console.print(printed)


def progress(what: str, found: Iterable[T], total: int) -> Iterator[T]:
    """Pass `found` on, showing how much of `total` has come."""
    yield from track(found, what, total=total, console=Console(stderr=True), transient=True)


def _is_figure(text: str) -> bool:
    return text[:1].isdigit() and " " not in text.removesuffix(" B").removesuffix(" MB")
