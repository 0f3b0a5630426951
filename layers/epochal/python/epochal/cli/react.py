"""The command `react`, which runs a reaction here, as a container or a laptop does."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import click

from epochal.cli import output
from epochal.cli.reactions import load_reactions
from epochal.cli.target import OpenedStore, on_store
from epochal.hosting.runner import Runner
from epochal.reactions.definition import Reaction
from epochal.reactions.failures import Attempt, OnFailed
from epochal.reactions.filter_coverage import Name, describe_unmet, unmet_filters
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor, RunResult
from epochal.reactions.traces import trace_of

T = TypeVar("T")


@click.command()
@click.argument("target", metavar="MODULE:REACTION")
@click.option(
    "--until-done", is_flag=True, help="Exit when all events have been handled, instead of waiting for more."
)
@on_store
def react(store: OpenedStore, *, target: str, until_done: bool) -> None:
    """Run a reaction or a process of a module until interrupted.

    The reaction gets every event that it reads, from the checkpoints of its group on. Processes and functions
    that run a reaction of the same name are one group, and share the partitions. With --until-done, the exit
    code is 1 if a stream blocks the reaction.
    """
    stop, context = threading.Event(), click.get_current_context()
    runners = [_runner(store, runner_, stop) for runner_ in load_reactions(store, target)]

    def run(runner: Runner) -> bool:
        """Run one reaction in this thread; return whether no stream blocks it."""
        with context.scope(cleanup=False):  # what prints asks the thread for it
            return runner.run(until_done=until_done)

    with _stopped_by_signals(stop), ThreadPoolExecutor(len(runners)) as threads:
        running = [threads.submit(run, runner_) for runner_ in runners]
        if not until_done:
            wait(running, return_when=FIRST_COMPLETED)
            stop.set()  # one that fails ends the other
        unblocked = [runner_.result() for runner_ in running]
        if until_done and not all(unblocked):
            sys.exit(1)


def _runner(store: OpenedStore, reaction: Reaction, stop: threading.Event) -> Runner:
    """Make the runner of a reaction, which prints each turn and warns of filters without events."""
    reactor = reactor_of(store, reaction)
    printed: set[Name] = set()

    def print_turn(partition: int, ran: RunResult) -> None:
        """Note the names of the events seen, and print the turn."""
        printed.update(ran.seen)
        _print_turn(partition, ran)

    return Runner(
        reactor=reactor,
        owner=f"{socket.gethostname()}-{os.getpid()}",
        on_turn=print_turn,
        on_rest=lambda: _warn_of_unmet(reactor, printed),
        on_unrecorded=lambda error: click.echo(
            f"warning: a failed run could not be recorded: {error}", err=True
        ),
        stop=stop,
    )


def _warn_of_unmet(reactor: Reactor, seen: Collection[Name]) -> None:
    """Print a warning for each name in the reaction's filter for which no event has come."""
    for words in describe_unmet(unmet_filters(reactor.member), seen):
        click.echo(f"warning: {words}", err=True)


def reactor_of(store: OpenedStore, reaction: Reaction) -> Reactor:
    """Make the reactor of a reaction, which prints why calls fail."""
    return Reactor(member=Member(reaction=reaction, reader=store.feed), on_failed=_complaint())


def _complaint() -> OnFailed:
    """Return a function that prints why a call failed, with its trace if the last one was different."""
    last = ""

    def complain(attempt: Attempt) -> None:
        """Print why a call failed, with its trace if this differs from the last one."""
        nonlocal last
        trace = trace_of(attempt.error)
        text = f"{attempt}\n{trace}" if trace != last else str(attempt)
        click.echo("\n".join(output.harmless(text)), err=True)
        last = trace

    return complain


def _print_turn(partition: int, ran: RunResult) -> None:
    """Print what a run has handled, parked and been blocked by, as JSON or as lines."""
    view: dict[str, Any] = {
        "partition": partition,
        "checkpoint": str(ran.checkpoint),
        "events": ran.events,
        "parked": [failure.stream for failure in ran.parked],
        "blocked": ran.blocked and ran.blocked.stream,
    }
    lines = [f"{partition}  {ran.checkpoint}  {ran.events:,} handled"]
    lines += [
        f"{partition}  parked {parked.stream} at {parked.index}: {parked.cause}" for parked in ran.parked
    ]
    if ran.blocked is not None:
        lines.append(f"{partition}  blocked by {ran.blocked.stream}: {ran.blocked.cause}")
    output.document(view, lines)


class _stopped_by_signals:  # noqa: N801  # a context manager, named as it reads
    """SIGTERM and SIGINT let the turn under way end, and the process leave its group in good order."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, lambda *_: self._stop.set())

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
