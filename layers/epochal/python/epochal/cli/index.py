"""Commands that look after the index: how it stands, whether it is right, and how it is made right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from epochal.care.catch_up import Mender
from epochal.care.quarantined import PoisonRecords
from epochal.care.status import groups_of, standings
from epochal.care.verify import STREAMS, Repaired, Repairer, Verifier, has_heads
from epochal.cli import index_views, output
from epochal.cli.errors import GroupMissing, IndexUnsound
from epochal.cli.inputs import Seconds
from epochal.cli.target import OpenedStore, pass_store
from epochal.errors import InvalidInput
from epochal.index.chain_check import Finding
from epochal.index.series import read_series
from epochal.indexer.indexer import Indexer
from epochal.layout.port import Source
from epochal.layout.registry import layout_names
from epochal.settings import MAX_PARTITIONS


@click.group()
def index() -> None:
    """Look after the index of the feed."""


def care_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of commands that compare the index with the heads."""
    for option in (
        click.option("--settle", type=Seconds(min=0), default=5.0, show_default=True,
                     help="Seconds after which an event that is not indexed is not only late."),
        click.option("--segments", type=click.IntRange(1, 64), default=4, show_default=True,
                     help="Parts of a table that are scanned at once."),
        click.option("--streams", type=click.IntRange(min=1), default=STREAMS, show_default=True,
                     help="Streams held in memory; an index of more is walked several times."),
        click.option("--partitions", multiple=True, metavar="SOURCE=N",
                     help="Partitions of a source that the index has not on record; may be repeated."),
    ):  # fmt: skip
        command = option(command)
    return command


@index.command()
@click.option("--group", "groups", multiple=True, help="A consumer group to tell of; may be repeated.")
@click.option("--all-groups", is_flag=True, help="Tell of every group; finding them scans the index table.")
@output.json_option
@pass_store
def status(store: OpenedStore, *, groups: Sequence[str], all_groups: bool, as_json: bool) -> None:
    """Print how far each partition is, and groups are behind."""
    driver, table = store.feed.driver, store.feed.table
    named = groups_of(driver, table) if all_groups else list(groups)
    found = list(standings(driver, table, named))
    for group in groups:
        if all(group != standing.group for each in found for standing in each.groups):
            raise GroupMissing(group)
    records = PoisonRecords(indexer=indexer_of(store, ()))
    waiting = Counter(record.source for record in records.waiting())
    view = {
        "partitions": [index_views.standing(each) for each in found],
        "poison": {source.name: waiting[source.name] for source in records.indexer.sources},
    }
    output.document(view, index_views.standing_lines(found, waiting), as_json=as_json)


@index.command()
@care_options
@output.json_option
@pass_store
def verify(store: OpenedStore, *, as_json: bool, **care: Any) -> None:
    """Compare the index with itself and with all heads.

    Safe beside a running indexer. Prints what is wrong, and fails where anything is.
    """
    found: Counter[str] = Counter()

    def counted(findings: Iterable[Finding]) -> Iterator[Finding]:
        for finding in findings:
            found[finding.remedy] += 1
            yield finding

    with output.progress("verifying") as tell:
        verifier = _verifier(store, tell, **care)
        findings = counted(verifier.findings())
        output.stream(findings, index_views.finding, index_views.finding_line, as_json=as_json)
    if found:
        raise IndexUnsound(found)
    if not as_json:
        click.echo("the index is right")


@index.command()
@care_options
@output.json_option
@pass_store
def repair(store: OpenedStore, *, as_json: bool, **care: Any) -> None:
    """Verify the index, and mend what can be mended in place.

    Safe beside a running indexer. Prints what was wrong and what became of it, and fails where something is left.
    """
    left: Counter[str] = Counter()
    mended = 0

    def counted(repaired: Iterable[Repaired]) -> Iterator[Repaired]:
        nonlocal mended
        for each in repaired:
            mended += each.mended
            if not each.mended:
                # A finding that repair mends and could not: its store must be looked at.
                left[each.why if each.why in ("rebuild", "look") else "look"] += 1
            yield each

    with output.progress("repairing") as tell:
        verifier = _verifier(store, tell, **care)
        refuse_unrecorded(store, verifier.sources, care["partitions"])
        done = counted(Repairer(verifier).repair())
        output.stream(done, index_views.repaired, index_views.repaired_line, as_json=as_json)
    if left:
        raise IndexUnsound(left)
    if not as_json:
        click.echo(f"{mended:,} mended; the index is right" if mended else "the index is right")


def sources_of(
    store: OpenedStore, partitions: Sequence[str], *, told_wins: bool = False
) -> tuple[Source, ...]:
    """The sources whose tables are known, with the numbers of partitions that the index has on record, or as told."""
    told = dict(_told(each) for each in partitions)
    recorded = store.feed.driver.run(read_series(store.feed.table)).partitions
    counts = recorded | told if told_wins else told | recorded
    return tuple(replace(each, partitions=counts.get(each.name, 1)) for each in store.sources)


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
    return Verifier(
        mender=Mender(driver=store.feed.driver, index_table=store.feed.table),
        sources=sources_of(store, partitions),
        streams=streams,
        segments=segments,
        settle=settle,
        tell=tell,
    )


def refuse_unrecorded(store: OpenedStore, sources: Sequence[Source], partitions: Sequence[str]) -> None:
    """What is put on record stays, so it must not be guessed."""
    recorded = store.feed.driver.run(read_series(store.feed.table)).partitions
    known = {*recorded, *(_told(each)[0] for each in partitions)}
    for source in sources:
        if source.name not in known and has_heads(store.feed.driver, source):
            rule = f"the index has no number on record for {source.name}: say --partitions {source.name}=N"
            raise InvalidInput("--partitions", rule)


def _told(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    if name not in layout_names() or not (
        count.isascii() and count.isdigit() and 1 <= int(count) <= MAX_PARTITIONS
    ):
        raise InvalidInput(
            "--partitions",
            f"must be one of {', '.join(layout_names())}, = and a number from 1 to {MAX_PARTITIONS:,}",
        )
    return name, int(count)
