"""What the demo shows: a line for each step with its time, bars for what takes long, a table at the end.

Where the output is no terminal, bars are left out and the lines say the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from examples.flights.reacting import Reacted
from examples.flights.steps import SHOWN, Sending, Verdict
from examples.flights.stores import BEGINNING

QUIET_SECONDS = 10.0
"""Between lines about a long step where there is no terminal."""

SOON = 0.05
"""Of a bar, before anybody can tell how long it will take."""


class _Count(ProgressColumn):
    """How far a bar is, in figures; nothing for a title."""

    def render(self, task: Task) -> Text:
        """One bar's."""
        if task.total is None:
            return Text(f"{task.completed:,.0f}" if task.completed else "")
        return Text(f"{task.completed:,.0f} of {task.total:,.0f}")


class _Left(TimeRemainingColumn):
    """How long a bar will still take; nothing for a title."""

    def render(self, task: Task) -> Text:
        """One bar's."""
        return Text() if task.total is None or task.finished else super().render(task).append(" left")


class Bars:
    """What is shown while a step is under way: its title, and any number of bars."""

    def __init__(self, progress: Progress, title: TaskID) -> None:
        self._progress = progress
        self._title = title

    def bar(self, name: str, total: int | None) -> Bar:
        """One more bar; without a total it only counts."""
        return Bar(self._progress, self._progress.add_task(f"  {name}", total=total))

    def say(self, text: str) -> None:
        """What is happening right now."""
        self._progress.update(self._title, description=escape(text))


class Bar:
    """A bar, called with how far it is. Without a terminal it says so now and then."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._said = time.monotonic()

    def __call__(self, done: int) -> None:
        """Move to `done`."""
        self._progress.update(self._task, completed=done)
        if self._progress.disable and time.monotonic() - self._said > QUIET_SECONDS:
            self._said = time.monotonic()
            task = self._progress.tasks[self._task]
            total = "" if task.total is None else f" of {task.total:,.0f}{_left(task, done)}"
            self._progress.console.print(f"  {task.description} {done:,}{total}")


def _left(task: Task, done: int) -> str:
    """How long a bar will still take, if it goes on as it has."""
    if not task.elapsed or task.total is None or done < SOON * task.total:
        return ""
    return f", some {task.elapsed / done * max(0.0, task.total - done):.0f} s left"


@dataclass(slots=True)
class Display:
    """The screen."""

    console: Console = field(default_factory=lambda: Console(highlight=False))

    def title(self, text: str) -> None:
        """What is going to happen."""
        self.console.print(f"\n[bold]{text}[/]")

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[Bars]:
        """Say what is being done while it is, and afterwards that it is done and how long it took."""
        started = time.monotonic()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            _Count(),
            TimeElapsedColumn(),
            _Left(),
        )
        quiet = not self.console.is_terminal
        if quiet:
            self.console.print(f"  … {doing}")
        with Progress(*columns, console=self.console, transient=True, disable=quiet) as progress:
            yield Bars(progress, progress.add_task(doing, total=None))
        self.console.print(f"  [green]✓[/] {done} [dim]({time.monotonic() - started:.1f} s)[/]")

    def say(self, text: str) -> None:
        """A line beneath a step."""
        self.console.print(f"    [dim]{escape(text)}[/]", soft_wrap=True)

    def fail(self, text: str) -> None:
        """Why it ended early."""
        self.console.print(f"\n[bold red]✗[/] {escape(text)}", soft_wrap=True)

    def summary(self, sending: Sending, verdict: Verdict, reacted: Reacted | None) -> None:
        """All figures."""
        table = Table(show_header=False, box=None, padding=(0, 2))
        table.add_column(style="dim")
        table.add_column()
        for name, value in figures(sending, verdict, reacted):
            table.add_row(name, value)
        self.title("Summary")
        self.console.print(table)

    def verdict(self, verdict: Verdict) -> None:
        """Whether the feed is what was sent, and where it is not."""
        if not verdict.differences:
            self.console.print(
                f"\n[bold green]✓[/] The feed holds all {verdict.seen:,} events: none missing, none doubled, none out "
                "of order, every body the one that was sent.",
                soft_wrap=True,
            )
            return
        self.console.print(
            f"\n[bold red]✗[/] The feed differs from what was sent in {verdict.differences:,} places:"
        )
        for difference in verdict.first:
            self.console.print(f"    {difference}", soft_wrap=True)
        if verdict.differences > len(verdict.first):
            self.console.print(f"    … and {verdict.differences - len(verdict.first):,} more")

    def boards(self, reacted: Reacted) -> None:
        """Whether the read models hold what they must."""
        if not reacted.wrong:
            self.console.print(f"[bold green]✓[/] {_boards_say(reacted)}", soft_wrap=True)
            return
        self.console.print(f"[bold red]✗[/] {len(reacted.wrong):,} documents of the read models are wrong:")
        for key in reacted.wrong[:SHOWN]:
            self.console.print(f"    {escape(key)}", soft_wrap=True)

    def next_steps(self, console: str | None, stream: str, flight: str) -> None:
        """Three commands to try, and where everything is if it stays up."""
        self.title("Next")
        if console is None:
            commands = (
                ("make demo KEEP=1", "the same, and all stays up, with the console"),
                ("make demo DAYS=30 VIA=library", "a month, without a deployment"),
                (".venv/bin/epochal local up", "an empty store, to write to yourself"),
            )
        else:
            self.console.print(f"  the console  {console}", soft_wrap=True)
            commands = (
                ("streams Aircraft", "streams, by category"),
                (f"read {stream}", "what an aircraft did"),
                (f"trace {flight} --items 5000", "what happened to a flight"),
            )
            commands = tuple((f".venv/bin/epochal {command}", what) for command, what in commands)
        for command, what in commands:
            self.console.print(f"  {escape(command)}  [dim]{what}[/]", soft_wrap=True)
        if console is not None:
            self.console.print(
                "  .venv/bin/epochal local down  [dim]ends it, with all that it holds[/]", soft_wrap=True
            )


def _boards_say(reacted: Reacted) -> str:
    return (
        f"Departures board and delay table hold all {reacted.documents:,} documents as the flights have it, "
        f"{len(reacted.parked)} stream parked on the way and replayed."
    )


def figures(sending: Sending, verdict: Verdict, reacted: Reacted | None = None) -> Iterator[tuple[str, str]]:
    """The summary's lines."""
    tally = sending.tally
    yield (
        "events in",
        f"{tally.events:,}, of {len(sending.ledger.streams):,} streams, in {tally.appends:,} appends",
    )
    rate = f"{tally.events / sending.seconds:,.0f} events/s, {tally.appends / sending.seconds:,.0f} appends/s"
    yield "throughput", rate
    yield (
        "write units",
        f"{tally.units / tally.events:.2f} an event, {tally.units / tally.appends:.2f} an append",
    )
    yield "conflicts", f"{tally.conflicts:,}"
    yield "indexing lag", f"{sending.lag.typical:.2f} s typically, {sending.lag.longest:.2f} s at most"
    for partition, tail in verdict.tails.items():
        if tail == BEGINNING:
            continue  # of a layout that the flights have nothing in
        yield f"partition {partition}", f"{epochs(tail)}, read to checkpoint {tail}"
    yield "feed read back", f"{verdict.seen / max(verdict.seconds, 1e-9):,.0f} events/s, with data"
    if reacted is not None:
        yield "reactions", f"two functions, {reacted.late:,.1f} s behind once all was verified"


def epochs(tail: str) -> str:
    """How many epochs a partition has begun, by its last checkpoint: they count from 0."""
    count = int(tail.partition("@")[0]) + 1
    return f"{count:,} epoch{'' if count == 1 else 's'}"
