"""Commands that steer the groups of reactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import click

from epochal.care.status import groups_of
from epochal.cli import inputs, output
from epochal.cli.react import T
from epochal.cli.reactions import check_group, load_reaction
from epochal.cli.target import OpenedStore, on_store
from epochal.errors import EpochalError
from epochal.hosting.group_summaries import lag_words, state_of, summaries_of
from epochal.hosting.group_wakeups import deployed_queue, wake_group
from epochal.hosting.indexer_state import IndexerState, indexer_states
from epochal.index.group_state import Unit
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import asdict, replace
from epochal.model.quantities import quantity
from epochal.reactions.steering import GroupFigures, reset_view, standing_view, start_of


@click.group()
def groups() -> None:
    """Show, pause, resume, reset and delete groups of reactions."""


@groups.command("list")
@on_store
def list_groups(store: OpenedStore) -> None:
    """List all groups, with the progress of each.

    Finding the groups scans the index table once.
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
    """Print the progress of GROUP and why it is blocked, or all groups.

    For each partition, that is its checkpoint, the events and seconds that it is behind, and whether it is
    paused. Only events that it reads are counted, by its last run or by the reaction that is named here.
    Without GROUP, all groups are listed.
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
    """Pause GROUP: it handles no more events, wherever it runs."""
    _print_done(group, "pauses", store.deployment.groups.pause(group))


@groups.command()
@click.argument("group")
@on_store
def resume(store: OpenedStore, *, group: str) -> None:
    """Resume GROUP after a pause.

    If its function is deployed, the function is woken.
    """
    _print_done(group, "goes on", store.deployment.groups.resume(group))
    _wake(store, group)


@groups.command(context_settings={"allow_extra_args": True})
@click.argument("group", metavar="GROUP|MODULE:REACTION")
@click.option(
    "--to",
    help="New place of the group: beginning, tail, an ISO 8601 time, or a checkpoint of one "
    "partition. Required.",
)
@click.option(
    "--partition",
    "partitions",
    type=int,
    multiple=True,
    help="Partition of the feed. May be repeated. The default is all partitions.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print what would be handled again or skipped, and change nothing."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@on_store
def reset(
    store: OpenedStore, *, group: str, to: str | None, partitions: tuple[int, ...], dry_run: bool, yes: bool
) -> None:
    """Set the checkpoints of GROUP to another place, after asking.

    The number of events that are handled again or skipped is printed first. Given MODULE:REACTION, only events
    that the reaction reads are counted. If its function is deployed, the function is woken.
    """
    extra = click.get_current_context().args
    if to is None or extra:
        place = to or next(iter(extra), "beginning")
        raise click.UsageError(f"Give the new place with --to: epochal groups reset {group} --to {place}")
    steered = load_reaction(group) if ":" in group else group
    start = start_of(to, partitions)
    planned = store.deployment.groups.reset(steered, start, dry_run=True)
    if not dry_run:
        again, skipped = sum(plan.again for plan in planned), sum(plan.skipped for plan in planned)
        inputs.confirm(
            f"{group}: {again:,} events will be handled again, {skipped:,} will be skipped. Continue?",
            yes=yes,
        )
        planned = store.deployment.groups.reset(steered, start)
        _wake(store, group if isinstance(steered, str) else steered.name)
    lines = (
        f"{plan.partition}  {plan.before} → {plan.after}  {plan.again:,} again  {plan.skipped:,} skipped"
        for plan in planned
    )
    output.document({"partitions": [reset_view(plan) for plan in planned]}, lines)


@groups.command()
@click.argument("group")
@click.option("--like", required=True, metavar="OTHER", help="Group whose checkpoints are copied. Required.")
@on_store
def begin(store: OpenedStore, *, group: str, like: str) -> None:
    """Set the checkpoints of a new GROUP to those of another group."""
    _print_done(
        group, f"begins at the checkpoints of {like}", store.deployment.groups.begin(group, like=like)
    )
    _wake(store, group)


@groups.command("delete")
@click.argument("group")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@on_store
def delete_group(store: OpenedStore, *, group: str, yes: bool) -> None:
    """Delete GROUP: its checkpoints and its list of parked streams.

    If the reaction is run again, it starts from scratch.
    """
    check_group(store, group)
    running = _try_on_queue(deployed_queue, store, group) is not None
    when = (
        "at the next wake-up of its function (delete the function first)"
        if running
        else "if its reaction is run again"
    )
    inputs.confirm(f"{group} will start from scratch {when}. Continue?", yes=yes)
    _print_done(group, "is deleted", store.deployment.groups.delete(group))


def _wake(store: OpenedStore, group: str) -> None:
    _try_on_queue(wake_group, store, group, store.feed.partitions())


def _try_on_queue(ask: Callable[..., T], store: OpenedStore, group: str, *more: Any) -> T | None:
    """Return what `ask` learns of a reaction's queue; print a warning and return None if it fails."""
    prefix = store.deployment.settings.index_table.removesuffix("-index")
    try:
        return ask(store.client("sqs"), prefix, group, *more)
    except EpochalError as error:
        click.echo(
            f"its queue cannot be looked up ({error}): a deployed function continues at its next wake-up",
            err=True,
        )
        return None


def _print_done(group: str, done: str, partitions: list[int]) -> None:
    output.document({"group": group, "partitions": partitions}, [f"{group} {done}"])


def _lag(standing: GroupFigures, states: Mapping[str, IndexerState]) -> str:
    """Describe in words how far a group is behind in a partition."""
    indexer = states[source_of(standing.partition)]
    return lag_words(standing.events, standing.seconds, indexer, of_all=standing.of_all)


def _failures(group: str, figures: GroupFigures) -> Iterator[str]:
    """Yield lines on why a group is blocked in a partition, and on why its last stream was parked."""
    for run in figures.blocked:
        unit = Unit(figures.partition, run.member)
        yield " ".join(output.harmless(f"{unit}  {run.words}"))
    if (cause := figures.last_failure) is not None:
        tried = quantity(cause.attempts, "attempt")
        text = (
            f"{cause.stream} is parked at {cause.index} since {cause.timestamp}, after {tried}: {cause.text}"
        )
        yield " ".join(output.harmless(f"{figures.partition}  {text}"))
        yield f"{figures.partition}  epochal parked list {group} lists all parked streams"
