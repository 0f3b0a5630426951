"""The command `watch`, which shows again and again how far the feed is, and how far behind it reactions are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from epochal.care.status import PartitionStanding, groups_of
from epochal.cli import index, index_output, output
from epochal.cli.feed import FOR
from epochal.cli.inputs import Seconds
from epochal.cli.target import OpenedStore, on_store
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.quantities import quantity
from epochal.reactions.steering import GroupFigures

LEAST: Final = 0.2


@click.command()
@index.GROUPS
@index.ALL_GROUPS
@click.option(
    "--every", type=Seconds(min=LEAST), default=2.0, show_default=True, help="Seconds between two updates."
)
@FOR
@on_store
def watch(
    store: OpenedStore, *, groups: Sequence[str], all_groups: bool, every: float, seconds: float | None
) -> None:
    """Show the progress of the feed and of reactions, live.

    Each update reads the index entries that groups are behind, and counts the events that they read. Without a
    terminal, each update is a line for each partition and group.
    """
    names = groups_of(store.feed.driver, store.feed.table) if all_groups else list(groups)
    snapshots = looks(store, names, every, seconds)
    if output.as_json():
        output.stream(snapshots, lambda look: {"partitions": look.view()}, lambda _: "")
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        output.stream((row for look in snapshots for row in look.rows()), lambda row: row, _row)
        return
    with Live(console=console, auto_refresh=False) as live:
        for look in snapshots:
            live.update(look.table(), refresh=True)


def _row(cells: Sequence[str]) -> str:
    return "  ".join(cells).rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there was at one moment.

    Attributes:
        partitions: state of each partition, and of the groups in it.
        figures: figures of the groups, by group and partition.
        late: seconds for which each group in a partition has been behind, as far as was seen.
    """

    partitions: tuple[PartitionStanding, ...]
    figures: index_output.Figures = field(default_factory=dict)
    late: dict[tuple[str, int], float] = field(default_factory=dict)

    def view(self) -> list[dict[str, Any]]:
        """Return the look as JSON, in the form of `index status`, with the seconds of delay."""
        views = [index_output.partition_view(partition, self.figures) for partition in self.partitions]
        for partition in views:
            for group in partition["groups"]:
                group["seconds"] = round(self.late[group["group"], partition["partition"]], 1)
        return views

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield a row for each partition, and one for each group in it."""
        for partition in self.partitions:
            yield (f"{partition.source} {partition.partition}", str(partition.tail), "", "", "")
            for group in partition.groups:
                figures = self.figures[group.group, partition.partition]
                late = self.late[group.group, partition.partition]
                yield (
                    f"  {group.group}",
                    str(group.checkpoint),
                    _lag(figures),
                    f"for {late:,.0f} s" if figures.events else "",
                    f"{group.parked:,} parked" if group.parked else "",
                )

    def table(self) -> Table:
        """Make a table of the rows for the terminal."""
        shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for style in ("bold", "", "yellow", "yellow", "red"):
            shown.add_column(style=style)
        for row in self.rows():
            shown.add_row(*row)
        return shown


def _lag(figures: GroupFigures) -> str:
    """Return how many events a group is behind in a partition, in words."""
    if figures.events is None:
        return "beyond the end"
    if not figures.events:
        return "at the end of the index"
    return f"{quantity(figures.events)} behind{', of all events' if figures.of_all else ''}"


def looks(store: OpenedStore, groups: Sequence[str], every: float, seconds: float | None) -> Iterator[Look]:
    """Yield looks at tails and checkpoints, for `seconds` or endlessly, with how long groups were behind.

    This time counts from the last look that found the group not behind.
    """
    end = None if seconds is None else time.monotonic() + seconds
    even: dict[tuple[str, int], float] = {}
    while True:
        partitions, figures = index.read_partitions(store, groups)
        now = time.monotonic()
        late = {}
        for key, figure in figures.items():
            if not figure.events or key not in even:
                even[key] = now
            late[key] = now - even[key]
        yield Look(partitions=partitions, figures=figures, late=late)
        if end is not None and now >= end:
            return
        time.sleep(every)
