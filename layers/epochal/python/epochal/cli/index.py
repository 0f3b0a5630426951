"""Commands that compare the index with the tables of events, print its state and mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import click

from epochal.care.auditor import auditor_of
from epochal.care.quarantined import PoisonRecords
from epochal.care.repair import Repaired, Repairer
from epochal.care.status import PartitionStanding, groups_of, standings
from epochal.care.verify import STREAMS, Verifier, has_heads
from epochal.cli import output
from epochal.cli.index_output import (
    Figures,
    finding_line,
    finding_view,
    partition_lines,
    partition_view,
    repair_line,
    repair_view,
)
from epochal.cli.inputs import IndexUnsound, Seconds
from epochal.cli.target import OpenedStore, on_store
from epochal.errors import GroupMissing, InvalidInput
from epochal.feed.indexer import Indexer
from epochal.hosting.group_summaries import figures_of
from epochal.hosting.indexer_state import indexer_states
from epochal.index.chain_check import Finding
from epochal.index.series import read_series
from epochal.layout.registry import layout_names
from epochal.layout.source import Source
from epochal.lazy_dataclasses import replace
from epochal.settings import MAX_PARTITIONS


@click.group()
def index() -> None:
    """Check, repair and rebuild the index of the feed."""


GROUPS: Final = click.option(
    "--group", "groups", multiple=True, help="Name of a reaction whose progress is shown. May be repeated."
)
ALL_GROUPS: Final = click.option(
    "--all-groups",
    is_flag=True,
    help="Show the progress of all reactions. Finding them scans the index table once.",
)


def care_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options of all commands that compare the index with the heads; return it."""
    for option in (
        click.option("--settle", type=Seconds(min=0), default=5.0, show_default=True,
                     help="Age in seconds from which an event that is not indexed counts as missing, not as late."),
        click.option("--segments", type=click.IntRange(1, 64), default=4, show_default=True,
                     help="Number of segments of a table that are scanned in parallel."),
        click.option("--streams", type=click.IntRange(min=1), default=STREAMS, show_default=True,
                     help="Number of streams held in memory. An index of more streams is read several times."),
        click.option("--partitions", multiple=True, metavar="SOURCE=N",
                     help="Number of partitions of a source, if the index has not recorded it. May be repeated."),
    ):  # fmt: skip
        command = option(command)
    return command


@index.command()
@GROUPS
@ALL_GROUPS
@on_store
def status(store: OpenedStore, *, groups: Sequence[str], all_groups: bool) -> None:
    """Print the state of partitions, groups, indexers and poison records.

    For groups, only events that their reactions read are counted. Poison records are those that could not be
    indexed and were set aside.
    """
    driver, table = store.feed.driver, store.feed.table
    names = groups_of(driver, table) if all_groups else list(groups)
    partitions, figures = read_partitions(store, names)
    for group in groups:
        if all(group != name for name, _ in figures):
            raise GroupMissing(group)
    records = PoisonRecords(indexer=indexer_of(store, ()))
    waiting = Counter(record.source for record in records.waiting())
    states = indexer_states(store.deployment, partial(store.client, "lambda"))
    view = {
        "partitions": [partition_view(partition, figures) for partition in partitions],
        "indexer": {source: state.view for source, state in states.items()},
        "poison": {source.name: waiting[source.name] for source in records.indexer.sources},
    }
    output.document(view, partition_lines(partitions, figures, states, waiting))


@index.command()
@care_options
@on_store
def verify(store: OpenedStore, **care: Any) -> None:
    """Check the index for consistency and gaps; print each problem.

    This is safe while the indexer runs. The exit code is 1 if there is a problem.
    """
    by_remedy: Counter[str] = Counter()

    def counted(findings: Iterable[Finding]) -> Iterator[Finding]:
        for finding in findings:
            by_remedy[finding.remedy] += 1
            yield finding

    with output.progress("verifying") as tell:
        verifier = _verifier(store, tell, **care)
        findings = counted(verifier.findings())
        output.stream(findings, finding_view, finding_line)
    if by_remedy:
        raise IndexUnsound(by_remedy)
    if not output.as_json():
        click.echo("the index is correct")


@index.command()
@care_options
@on_store
def repair(store: OpenedStore, **care: Any) -> None:
    """Verify the index, and repair what can be repaired in place.

    This is safe while the indexer runs. It prints each problem and whether it was repaired. The exit code is 1
    if a problem is left.
    """
    remaining: Counter[str] = Counter()
    mended = 0

    def counted(repaired: Iterable[Repaired]) -> Iterator[Repaired]:
        """Yield the findings unchanged; count those that were mended, and the others by what to do."""
        nonlocal mended
        for finding in repaired:
            mended += finding.mended
            if not finding.mended:
                # A finding that repair mends and could not: its store must be looked at.
                remaining[finding.why if finding.why in ("rebuild", "look") else "look"] += 1
            yield finding

    with output.progress("repairing") as tell:
        verifier = _verifier(store, tell, **care)
        refuse_unrecorded(store, verifier.sources, care["partitions"])
        repaired_counts = counted(Repairer(verifier).repair())
        output.stream(repaired_counts, repair_view, repair_line)
    if remaining:
        raise IndexUnsound(remaining)
    if not output.as_json():
        click.echo(f"{mended:,} repaired; the index is correct" if mended else "the index is correct")


def read_partitions(
    store: OpenedStore, groups: Iterable[str]
) -> tuple[tuple[PartitionStanding, ...], Figures]:
    """Return the state of every partition, with these groups' states in it, and the groups' figures.

    A group that is deleted meanwhile is left out.
    """
    partitions = list(standings(store.feed.driver, store.feed.table, tuple(groups)))
    begun = dict.fromkeys(group.group for partition in partitions for group in partition.groups)
    figures = figures_of(store.deployment.groups, begun)
    remaining = (
        replace(
            partition,
            groups=tuple(
                group for group in partition.groups if (group.group, partition.partition) in figures
            ),
        )
        for partition in partitions
    )
    return tuple(remaining), figures


def sources_of(
    store: OpenedStore, partitions: Sequence[str], *, told_wins: bool = False
) -> tuple[Source, ...]:
    """Return the store's sources with their numbers of partitions, from the index or from `partitions`."""
    numbers = dict(_parse_partitions(partition) for partition in partitions)
    recorded = store.feed.driver.run(read_series(store.feed.table)).partitions
    counts = recorded | numbers if told_wins else numbers | recorded
    return tuple(
        replace(source, partitions=counts.get(source.name, 1)) for source in store.deployment.sources
    )


def indexer_of(store: OpenedStore, partitions: Sequence[str]) -> Indexer:
    """An indexer of the store's sources."""
    return Indexer(
        driver=store.feed.driver, index_table=store.feed.table, sources=sources_of(store, partitions)
    )


def _verifier(
    store: OpenedStore,
    tell: Callable[[str], None],
    *,
    streams: int,
    segments: int,
    settle: float,
    partitions: Sequence[str],
) -> Verifier:
    """Make the verifier of the store's index from the values of `care_options`."""
    return Verifier(
        mender=auditor_of(store.deployment.settings, store.deployment.driver).mender,
        sources=sources_of(store, partitions),
        streams=streams,
        segments=segments,
        settle=settle,
        tell=tell,
    )


def refuse_unrecorded(store: OpenedStore, sources: Sequence[Source], partitions: Sequence[str]) -> None:
    """Raise `InvalidInput` if a source with events has no number of partitions on record or given.

    What is put on record stays, so it must not be guessed.
    """
    recorded = store.feed.driver.run(read_series(store.feed.table)).partitions
    known_sources = {*recorded, *(_parse_partitions(partition)[0] for partition in partitions)}
    for source in sources:
        if source.name not in known_sources and has_heads(store.feed.driver, source):
            rule = (
                f"the index has no number of partitions on record for {source.name}: "
                f"pass --partitions {source.name}=N"
            )
            raise InvalidInput("--partitions", rule)


def _parse_partitions(text: str) -> tuple[str, int]:
    """Return the source and the number of a text `SOURCE=N`; raise `InvalidInput` if it is none."""
    name, _, count = text.partition("=")
    if name not in layout_names() or not (
        count.isascii() and count.isdigit() and 1 <= int(count) <= MAX_PARTITIONS
    ):
        raise InvalidInput(
            "--partitions",
            f"must be one of {', '.join(layout_names())}, = and a number from 1 to {MAX_PARTITIONS:,}",
        )
    return name, int(count)
