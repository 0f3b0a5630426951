"""`react`: run a reaction here, as a container or a laptop does. `parked`: what reactions have given up for now."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from math import inf
from typing import Any, TypeVar

import click

from epochal.care.status import groups_of
from epochal.cli import inputs, output
from epochal.cli.target import OpenedStore, on_store
from epochal.errors import EpochalError, GroupMissing, InvalidInput
from epochal.feed.events import FeedEvent
from epochal.hosting.commands import parked_view
from epochal.hosting.group_summaries import lag_words, state_of, summaries_of
from epochal.hosting.group_wakeups import deployed_queue, wake_group
from epochal.hosting.indexer_state import IndexerState, indexer_states
from epochal.hosting.runner import Runner
from epochal.index.group_state import Unit
from epochal.index.groups import group_stream, load
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import asdict, replace
from epochal.model.quantities import quantity
from epochal.reactions.composite import composite_of
from epochal.reactions.definition import Reaction, duplicate_name_error
from epochal.reactions.failures import Attempt, OnFailed
from epochal.reactions.filter_coverage import Name, describe_unmet, unmet_filters
from epochal.reactions.group_member import Member
from epochal.reactions.parking import ParkedStream, Parking
from epochal.reactions.reactor import Ran, Reactor
from epochal.reactions.steering import GroupFigures, reset_view, standing_view, start_of
from epochal.reactions.traces import trace_of

T = TypeVar("T")


@click.command()
@click.argument("target", metavar="MODULE:REACTION")
@click.option("--until-done", is_flag=True, help="End when everything that there is has been handled.")
@on_store
def react(store: OpenedStore, *, target: str, until_done: bool) -> None:
    """Run the reaction of a module, or a process, until interrupted.

    It is given every event that it wants, from its group's checkpoint on. Other processes and functions of the same
    name are the same group: they share the partitions. With --until-done, exits with 1 where a stream blocks it.
    """
    stop, context = threading.Event(), click.get_current_context()
    runners = [_runner(store, each, stop) for each in load_reactions(store, target)]

    def run(runner: Runner) -> bool:
        """Run one reaction in this thread; return whether no stream blocks it."""
        with context.scope(cleanup=False):  # what prints asks the thread for it
            return runner.run(until_done=until_done)

    with _stopped_by_signals(stop), ThreadPoolExecutor(len(runners)) as threads:
        running = [threads.submit(run, each) for each in runners]
        if not until_done:
            wait(running, return_when=FIRST_COMPLETED)
            stop.set()  # one that fails ends the other
        unblocked = [each.result() for each in running]
        if until_done and not all(unblocked):
            sys.exit(1)


def _runner(store: OpenedStore, reaction: Reaction, stop: threading.Event) -> Runner:
    """Make the runner of a reaction, which prints each turn and warns of filters without events."""
    reactor = _reactor(store, reaction)
    printed: set[Name] = set()

    def told(partition: int, ran: Ran) -> None:
        """Note the names of the events seen, and print the turn."""
        printed.update(ran.seen)
        _print_turn(partition, ran)

    return Runner(
        reactor=reactor,
        owner=f"{socket.gethostname()}-{os.getpid()}",
        on_turn=told,
        on_rest=lambda: _warn_of_unmet(reactor, printed),
        on_unrecorded=lambda error: click.echo(
            f"warning: a failed run could not be recorded: {error}", err=True
        ),
        stop=stop,
    )


@click.group()
def parked() -> None:
    """Streams that a reaction failed on.

    List them, handle them after all, or give them up.
    """


@parked.command("list")
@click.argument("group")
@on_store
def list_(store: OpenedStore, *, group: str) -> None:
    """List the streams that GROUP has parked.

    Each comes with its first event that is not handled, and the cause.
    """
    _check_there(store, group)
    output.stream(_parked(store, group), parked_view, _line)


@parked.command()
@click.argument("group")
@click.argument("stream")
@on_store
def show(store: OpenedStore, *, group: str, stream: str) -> None:
    """Show why GROUP has parked STREAM.

    That is what the handler raised, after how many attempts, and the trace.
    """
    _check_there(store, group)
    for _, each in _chosen(store, (group,), (stream,)):
        cause = each.cause
        text = f"{each.stream}  {each.index}"
        if cause is not None:
            tried = f"after {quantity(cause.attempts, 'attempt')}"
            text += f"\n{cause.text}, {cause.timestamp}, {tried}\n{cause.trace}"
        output.document(parked_view(each), output.harmless(text))


@parked.command()
@click.argument("target", metavar="MODULE:REACTION")
@click.argument("streams", nargs=-1)
@on_store
def replay(store: OpenedStore, *, target: str, streams: tuple[str, ...]) -> None:
    """Handle here what STREAMS have been waiting for.

    Then they go on. Without any, all that are parked are handled.

    A deployed function replays with its own handler: invoke it with {"command": "replay", "partition": 30000,
    "stream": "..."}.
    """
    failed = False
    reactions_by_name = {each.name: each for each in load_reactions(store, target)}
    for group, each in _chosen(store, reactions_by_name, streams):
        parking = Parking(reactor=_reactor(store, reactions_by_name[group]))
        with output.progress(f"replaying {each.stream}"):
            replayed = parking.replay(each.partition, each.stream, seconds=inf)
        failed = failed or not replayed.unparked
        view = {"stream": each.stream, "next": replayed.next, "unparked": replayed.unparked}
        if replayed.failure is not None:
            view["cause"] = replayed.failure.cause
        line = "goes on" if replayed.unparked else f"still parked: {view.get('cause')}"
        output.document(view, [f"{each.stream}  {replayed.next}  {line}"])
    if failed:
        sys.exit(1)


@parked.command()
@click.argument("group")
@click.argument("stream")
@click.option(
    "--one", is_flag=True, help="Only the event it failed on; the stream stays parked, to be replayed."
)
@inputs.YES
@on_store
def discard(store: OpenedStore, *, group: str, stream: str, one: bool, yes: bool) -> None:
    """Give up what STREAM has been waiting for.

    GROUP will never handle it.
    """
    _check_there(store, group)
    ((_, each),) = _chosen(store, (group,), (stream,))
    what = f"event {each.index}" if one else f"every event from {each.index} on"
    inputs.confirm(f"{group} will never handle {what} of {stream}. Go on?", yes=yes)
    parking = Parking.of(group, store.feed)
    if one:
        following, unparked = parking.skip(each.partition, stream, each.index), False
    else:
        replayed = parking.discard(each.partition, stream)
        following, unparked = replayed.next, replayed.unparked
    view = {"stream": stream, "next": following, "unparked": unparked}
    line = "goes on" if unparked else "still parked"
    output.document(view, [f"{stream}  {following}  {line}"])


@click.group()
def groups() -> None:
    """Steer the groups of reactions.

    Pause them, set them back, or begin one where another is, while they run.
    """


@groups.command("list")
@on_store
def list_groups(store: OpenedStore) -> None:
    """List all groups, with how far each is.

    Finding them scans the index table, once.
    """
    _list_groups(store)


def _list_groups(store: OpenedStore) -> None:
    """Print all consumer groups with their state."""
    with output.progress("scanning"):
        names = groups_of(store.feed.driver, store.feed.table)
    states = indexer_states(store.deployment, partial(store.client, "lambda"))
    output.stream(
        summaries_of(store.deployment.groups, names, states),
        lambda summary: {"group": summary.group, **summary.view},
        lambda summary: f"{summary.group}  {summary.words}",
    )


@groups.command("show")
@click.argument("group", metavar="[GROUP|MODULE:REACTION]", required=False)
@on_store
def show_group(store: OpenedStore, *, group: str | None) -> None:
    """Print how far GROUP is, and why it does not get on.

    In each partition, that is its checkpoint, the events and seconds that it is behind, and whether it pauses. Only
    events that it reads are counted, as its last run or the reaction named here says. Without GROUP, all groups are
    listed.
    """
    if group is None:
        _list_groups(store)
        return
    steered = store.deployment.groups
    reaction_or_name = load_reaction(group) if ":" in group else group
    group = reaction_or_name if isinstance(reaction_or_name, str) else reaction_or_name.name
    series = steered.read_series()
    standings, members = steered.standing(reaction_or_name, series), steered.members(group, series)
    states = indexer_states(store.deployment, partial(store.client, "lambda"), series=series)
    indexers = {source_of(standing.partition): state_of(standing.partition, states) for standing in standings}
    view = {
        "partitions": [
            standing_view(replace(standing, indexer=indexers[source_of(standing.partition)].failure))
            for standing in standings
        ],
        "indexer": {source: state.view for source, state in indexers.items()},
        "processes": list(map(asdict, members)),
    }
    lines = [
        f"{standing.partition}  {standing.checkpoint}  {_lag(standing, indexers)}  {standing.parked:,} parked"
        f"{f'  paused since {standing.paused}' if standing.paused else ''}"
        for standing in standings
    ]
    lines += [f"{source}  {state.text}" for source, state in indexers.items() if not state.works]
    lines += [line for standing in standings for line in _failures(group, standing)]
    lines += dict.fromkeys(run.remedy for standing in standings for run in standing.blocked)
    lines += [f"{member.owner}  {', '.join(map(str, member.partitions))}" for member in members]
    output.document(view, lines)


@groups.command()
@click.argument("group")
@on_store
def pause(store: OpenedStore, *, group: str) -> None:
    """Let GROUP take nothing more, wherever it runs."""
    _said(group, "pauses", store.deployment.groups.pause(group))


@groups.command()
@click.argument("group")
@on_store
def resume(store: OpenedStore, *, group: str) -> None:
    """Let GROUP go on.

    Its deployed function is woken.
    """
    _said(group, "goes on", store.deployment.groups.resume(group))
    _wake(store, group)


@groups.command(context_settings={"allow_extra_args": True})
@click.argument("group", metavar="GROUP|MODULE:REACTION")
@click.option("--to", help="Required: beginning, tail, a moment, or a checkpoint of a partition.")
@click.option(
    "--partition", "partitions", type=int, multiple=True, help="Only this partition; may be repeated."
)
@click.option("--dry-run", is_flag=True, help="Only say what would come again.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@on_store
def reset(
    store: OpenedStore, *, group: str, to: str | None, partitions: tuple[int, ...], dry_run: bool, yes: bool
) -> None:
    """Set the checkpoints of GROUP.

    What comes again or never comes is counted; with the reaction itself, only what it wants.
    """
    extra = click.get_current_context().args
    if to is None or extra:
        place = to or next(iter(extra), "beginning")
        raise click.UsageError(f"--to says where: epochal groups reset {group} --to {place}")
    steered = load_reaction(group) if ":" in group else group
    start = start_of(to, partitions)
    planned = store.deployment.groups.reset(steered, start, dry_run=True)
    if not dry_run:
        again, skipped = sum(plan.again for plan in planned), sum(plan.skipped for plan in planned)
        inputs.confirm(f"{group}: {again:,} events come again, {skipped:,} never come. Go on?", yes=yes)
        planned = store.deployment.groups.reset(steered, start)
        _wake(store, group if isinstance(steered, str) else steered.name)
    lines = (
        f"{plan.partition}  {plan.before} → {plan.after}  {plan.again:,} again  {plan.skipped:,} skipped"
        for plan in planned
    )
    output.document({"partitions": [reset_view(plan) for plan in planned]}, lines)


@groups.command()
@click.argument("group")
@click.option("--like", required=True, metavar="OTHER", help="The group that it begins where.")
@on_store
def begin(store: OpenedStore, *, group: str, like: str) -> None:
    """Begin GROUP where another one is now."""
    _said(group, f"begins where {like} is", store.deployment.groups.begin(group, like=like))
    _wake(store, group)


@groups.command("delete")
@click.argument("group")
@click.option("--yes", is_flag=True, help="Do not ask.")
@on_store
def delete_group(store: OpenedStore, *, group: str, yes: bool) -> None:
    """Forget GROUP: its checkpoints, and what it has parked.

    Whoever runs it again begins anew.
    """
    _check_there(store, group)
    running = _asked_of_queues(deployed_queue, store, group) is not None
    when = "with its function's next wake-up: delete that first" if running else "if it is run again"
    inputs.confirm(f"{group} begins anew {when}. Go on?", yes=yes)
    _said(group, "is deleted", store.deployment.groups.delete(group))


def _wake(store: OpenedStore, group: str) -> None:
    _asked_of_queues(wake_group, store, group, store.feed.partitions())


def _asked_of_queues(ask: Callable[..., T], store: OpenedStore, group: str, *more: Any) -> T | None:
    """Call `ask` about a deployed reaction's queue; print a warning and return None if it fails."""
    prefix = store.deployment.settings.index_table.removesuffix("-index")
    try:
        return ask(store.client("sqs"), prefix, group, *more)
    except EpochalError as error:
        click.echo(
            f"its queue cannot be asked for ({error}): a function goes on with its next wake-up", err=True
        )
        return None


def _said(group: str, done: str, partitions: list[int]) -> None:
    output.document({"group": group, "partitions": partitions}, [f"{group} {done}"])


def _lag(standing: GroupFigures, states: Mapping[str, IndexerState]) -> str:
    """Describe in words how far a group is behind in a partition."""
    indexer = states[source_of(standing.partition)]
    return lag_words(standing.events, standing.seconds, indexer, of_all=standing.of_all)


def _failures(group: str, each: GroupFigures) -> Iterator[str]:
    """Why the group does not get on in a partition, and why the last stream was parked."""
    for run in each.blocked:
        unit = Unit(each.partition, run.member)
        yield " ".join(output.harmless(f"{unit}  {run.words}"))
    if (cause := each.last_failure) is not None:
        tried = quantity(cause.attempts, "attempt")
        text = (
            f"{cause.stream} is parked at {cause.index} since {cause.timestamp}, after {tried}: {cause.text}"
        )
        yield " ".join(output.harmless(f"{each.partition}  {text}"))
        yield f"{each.partition}  epochal parked list {group} lists all parked streams"


_REACTION = "MODULE:REACTION", "a reaction"


def load_reaction(target: str) -> Reaction:
    """Load the reaction that `module:name` names."""
    loaded = inputs.named(target, *_REACTION)
    module, _, name = target.partition(":")
    if not isinstance(loaded, Reaction):
        raise InvalidInput("MODULE:REACTION", f"{name} of {module} is no reaction")
    return loaded


def load_reactions(store: OpenedStore, target: str) -> list[Reaction]:
    """Load the reaction that `module:name` names, or both reactions of a process."""
    if composite := composite_of(inputs.named(target, *_REACTION)):
        return [*composite.reactions(store.deployment.streams, _passed)]
    return [load_reaction(target)]


def by_name(reactions: Iterable[Reaction]) -> dict[str, Reaction]:
    """Reactions by their names.

    Raises:
        InvalidInput: two handlers have one name.
    """
    named: dict[str, Reaction] = {}
    for reaction in reactions:
        if (other := named.setdefault(reaction.name, reaction)).handler_name != reaction.handler_name:
            raise duplicate_name_error(reaction.name, other.handler_name, reaction.handler_name)
    return named


def _passed(why: str, event: FeedEvent) -> None:
    click.echo(f"passed {event.stream}@{event.index}: {why}", err=True)


def _warn_of_unmet(reactor: Reactor, seen: Collection[Name]) -> None:
    """Print a warning for each name in the reaction's filter for which no event has come."""
    for words in describe_unmet(unmet_filters(reactor.member), seen):
        click.echo(f"warning: {words}", err=True)


def _reactor(store: OpenedStore, reaction: Reaction) -> Reactor:
    return Reactor(member=Member(reaction=reaction, reader=store.feed), on_failed=_complaint())


def _complaint() -> OnFailed:
    """Make a function that prints why a call failed, with the trace unless it is that of the last one."""
    last = ""

    def complain(attempt: Attempt) -> None:
        """Print why a call failed, with its trace if this differs from the last one."""
        nonlocal last
        trace = trace_of(attempt.error)
        text = f"{attempt}\n{trace}" if trace != last else str(attempt)
        click.echo("\n".join(output.harmless(text)), err=True)
        last = trace

    return complain


def _check_there(store: OpenedStore, group: str) -> None:
    """Refuse a mistyped name: a group of that name would have nothing parked."""
    driver, table = store.feed.driver, store.feed.table
    for partition in store.feed.partitions():
        if driver.run(load(table, group_stream(partition.partition, group))).state is not None:
            return
    raise GroupMissing(group)


def _parked(store: OpenedStore, group: str) -> Iterator[ParkedStream]:
    """Yield the parked streams of a group in all partitions."""
    parking = Parking.of(group, store.feed)
    for partition in store.feed.partitions():
        yield from parking.streams(partition.partition)


def _chosen(
    store: OpenedStore, groups: Iterable[str], streams: tuple[str, ...]
) -> list[tuple[str, ParkedStream]]:
    """Return the parked streams of some groups, or those named; raise if a named one is not parked."""
    candidates = [(group, parked) for group in groups for parked in _parked(store, group)]
    if missing := set(streams) - {parked.stream for _, parked in candidates}:
        raise InvalidInput("stream", f"{min(missing)!r} is not parked by {' or '.join(groups)}")
    return [(group, parked) for group, parked in candidates if not streams or parked.stream in streams]


def _line(each: ParkedStream) -> str:
    """Describe a parked stream in a line."""
    cause = "" if each.cause is None else f"  {each.cause.text}, {each.cause.timestamp}"
    return f"{each.stream}  {each.index}{cause}"


def _print_turn(partition: int, ran: Ran) -> None:
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
