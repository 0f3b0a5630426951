"""`watch`: how far the feed is, and how far behind it reactions are, again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from epochal.care.status import PartitionStanding, groups_of, standings
from epochal.cli import index_views, output
from epochal.cli.inputs import Seconds
from epochal.cli.target import OpenedStore, pass_store

LEAST: Final = 0.2


@click.command()
@click.option("--group", "groups", multiple=True, help="A reaction to tell of; may be repeated.")
@click.option(
    "--all-groups", is_flag=True, help="Tell of every one; finding them scans the index table, once."
)
@click.option(
    "--every", type=Seconds(min=LEAST), default=2.0, show_default=True, help="Seconds between looks."
)
@click.option("--for", "seconds", type=Seconds(min=0), help="Stop after so many seconds.")
@output.json_option
@pass_store
def watch(
    store: OpenedStore,
    *,
    groups: Sequence[str],
    all_groups: bool,
    every: float,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Show live how far the feed is, and reactions behind it.

    A look reads a few items for each partition and group. Without a terminal each look is a line for each of them.
    """
    named = groups_of(store.feed.driver, store.feed.table) if all_groups else list(groups)
    found = looks(store, named, every, seconds)
    if as_json:
        output.stream(found, lambda look: {"partitions": look.view()}, lambda _: "", as_json=True)
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        output.stream((row for look in found for row in look.rows()), lambda row: row, _row, as_json=False)
        return
    with Live(console=console, auto_refresh=False) as live:
        for look in found:
            live.update(look.table(), refresh=True)


def _row(cells: Sequence[str]) -> str:
    return "  ".join(cells).rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there was at one moment.

    Attributes:
        late: seconds for which each group in a partition has been behind, as far as was seen.
    """

    found: tuple[PartitionStanding, ...]
    late: dict[tuple[int, str], float] = field(default_factory=dict)

    def view(self) -> list[dict[str, Any]]:
        """As `index status` has it, with the seconds."""
        views = [index_views.standing(each) for each in self.found]
        for partition in views:
            for group in partition["groups"]:
                group["seconds"] = round(self.late.get((partition["partition"], group["group"]), 0.0), 1)
        return views

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """A row for each partition, and one for each group in it."""
        for each in self.found:
            yield (f"{each.source} {each.partition}", str(each.tail), "", "", "")
            for group in each.groups:
                late = self.late.get((each.partition, group.group), 0.0)
                yield (
                    f"  {group.group}",
                    str(group.checkpoint),
                    "?" if group.behind is None else f"{group.behind:,} behind",
                    f"for {late:,.0f} s" if group.behind else "",
                    f"{group.parked:,} parked" if group.parked else "",
                )

    def table(self) -> Table:
        """The rows, as wide as the terminal."""
        shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for style in ("bold", "", "yellow", "yellow", "red"):
            shown.add_column(style=style)
        for row in self.rows():
            shown.add_row(*row)
        return shown


def looks(store: OpenedStore, groups: Sequence[str], every: float, seconds: float | None) -> Iterator[Look]:
    """One look after the other. How long a group is behind is known from when it was last seen to be not."""
    end = None if seconds is None else time.monotonic() + seconds
    even: dict[tuple[int, str], float] = {}
    while True:
        found = tuple(standings(store.feed.driver, store.feed.table, groups))
        now = time.monotonic()
        late = {}
        for each in found:
            for group in each.groups:
                key = (each.partition, group.group)
                if not group.behind or key not in even:
                    even[key] = now
                late[key] = now - even[key]
        yield Look(found=found, late=late)
        if end is not None and now >= end:
            return
        time.sleep(every)
