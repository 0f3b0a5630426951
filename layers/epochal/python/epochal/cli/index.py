"""Commands that look after the index: how it stands, whether it is right, and how it is made right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import click

from epochal.care.auditor import auditor_of
from epochal.care.mender import Mender
from epochal.care.quarantined import PoisonRecord, PoisonRecords
from epochal.care.rebuild import Rebuilder
from epochal.care.repair import Repaired, Repairer
from epochal.care.spool import Spool
from epochal.care.status import PartitionStanding, groups_of, standings
from epochal.care.table_exports import export_at
from epochal.care.verify import STREAMS, Verifier, has_heads
from epochal.cli import output
from epochal.cli.inputs import IndexUnsound, Seconds
from epochal.cli.target import OpenedStore, given, on_store
from epochal.dynamo.clients import s3_client
from epochal.dynamo.s3_objects import S3Objects
from epochal.dynamo.table_kinds import with_table_checks
from epochal.errors import GroupMissing, InvalidInput
from epochal.feed.indexer import Indexer
from epochal.hosting.group_summaries import figures_of, lag_words, state_of
from epochal.hosting.indexer_state import IndexerState, indexer_states
from epochal.index.chain_check import Finding, FindingKind
from epochal.index.series import read_series
from epochal.layout.registry import layout_names
from epochal.layout.source import Source
from epochal.lazy_dataclasses import replace
from epochal.reactions.steering import GroupFigures, blocked_view
from epochal.settings import DECLARED, MAX_PARTITIONS


@click.group()
def index() -> None:
    """Look after the index of the feed."""


GROUPS: Final = click.option(
    "--group", "groups", multiple=True, help="A reaction to tell of; may be repeated."
)
ALL_GROUPS: Final = click.option(
    "--all-groups", is_flag=True, help="Tell of every one; finding them scans the index table, once."
)


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
@GROUPS
@ALL_GROUPS
@on_store
def status(store: OpenedStore, *, groups: Sequence[str], all_groups: bool) -> None:
    """Print how far each partition is, and groups are behind.

    Of groups, the events are counted that their reactions read. Then, whether the indexer works.
    """
    driver, table = store.feed.driver, store.feed.table
    named = groups_of(driver, table) if all_groups else list(groups)
    partitions, figures = read_partitions(store, named)
    for group in groups:
        if all(group != name for name, _ in figures):
            raise GroupMissing(group)
    records = PoisonRecords(indexer=indexer_of(store, ()))
    waiting = Counter(record.source for record in records.waiting())
    states = indexer_states(store.deployment, partial(store.client, "lambda"))
    view = {
        "partitions": [standing(each, figures) for each in partitions],
        "indexer": {source: state.view for source, state in states.items()},
        "poison": {source.name: waiting[source.name] for source in records.indexer.sources},
    }
    output.document(view, standing_lines(partitions, figures, states, waiting))


@index.command()
@care_options
@on_store
def verify(store: OpenedStore, **care: Any) -> None:
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
        output.stream(findings, finding, finding_line)
    if found:
        raise IndexUnsound(found)
    if not output.as_json():
        click.echo("the index is right")


@index.command()
@care_options
@on_store
def repair(store: OpenedStore, **care: Any) -> None:
    """Verify the index, and mend what can be mended in place.

    Safe beside a running indexer. Prints what was wrong and what became of it, and fails where something is left.
    """
    remaining: Counter[str] = Counter()
    mended = 0

    def counted(repaired: Iterable[Repaired]) -> Iterator[Repaired]:
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
        output.stream(repaired_counts, repaired, repaired_line)
    if remaining:
        raise IndexUnsound(remaining)
    if not output.as_json():
        click.echo(f"{mended:,} mended; the index is right" if mended else "the index is right")


Figures = Mapping[tuple[str, int], GroupFigures]
"""Figures of groups, by group and partition."""


def read_partitions(
    store: OpenedStore, groups: Iterable[str]
) -> tuple[tuple[PartitionStanding, ...], Figures]:
    """Read the state of every partition with these groups in it, and the groups' figures.

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
    """The sources whose tables are known, with the numbers of partitions that the index has on record, or as told."""
    numbers = dict(_told(partition) for partition in partitions)
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
    return Verifier(
        mender=auditor_of(store.deployment.settings, store.deployment.driver).mender,
        sources=sources_of(store, partitions),
        streams=streams,
        segments=segments,
        settle=settle,
        tell=tell,
    )


def refuse_unrecorded(store: OpenedStore, sources: Sequence[Source], partitions: Sequence[str]) -> None:
    """What is put on record stays, so it must not be guessed."""
    recorded = store.feed.driver.run(read_series(store.feed.table)).partitions
    known_sources = {*recorded, *(_told(partition)[0] for partition in partitions)}
    for source in sources:
        if source.name not in known_sources and has_heads(store.feed.driver, source):
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


# What commands on the index print: a line for people, a document for programs.

SENTENCES: Final = MappingProxyType[FindingKind, str](
    {
        "unregistered": "the index has no number of partitions on record",
        "missing": "{events} not indexed",
        "mark low": "its mark says {index}, it is indexed up to {end}: events would be indexed again",
        "mark high": "its mark says {end}, the chain ends at {index}: events would be passed over",
        "gap": "{events} missing from the chain before {at}",
        "backwards": "{events} twice in the chain, again at {at}",
        "misplaced": "{events} at {at}, in the wrong partition",
        "entry unreadable": "the entry at {at} cannot be read",
        "epoch unreadable": "from {at} on its epoch cannot be read",
        "epoch lost": "the epoch at {at} is gone",
        "epoch left open": "at {at} its epoch ends, and does not say so",
        "epoch continued": "at {at} its epoch goes on after its end",
        "too far": "{events} indexed, and not in the store",
        "orphan": "{events} indexed, and the store has no such stream",
        "head unreadable": "its head cannot be read",
        "checkpoint beyond": "its checkpoint {at} lies beyond the end: of another index",
        "stray stream": "{events} in the index, where no feed has them: a store of streams was opened on its table",
    }
)


def finding(found: Finding) -> dict[str, Any]:
    """A finding as JSON; what does not apply is left out."""
    view = {
        "kind": found.kind,
        "remedy": found.remedy,
        "source": found.source,
        "partition": found.partition,
        "stream": found.stream,
        "index": found.index,
        "end": found.end,
        "at": None if found.at is None else str(found.at),
        "cause": found.cause or None,
    }
    return {name: value for name, value in view.items() if value is not None}


def finding_line(found: Finding) -> str:
    """A finding in a line."""
    place = found.source if found.partition is None else f"{found.source} {found.partition}"
    stream = "" if found.stream is None else f" {found.stream}"
    sentence = SENTENCES[found.kind].format(
        events=_events(found.index, found.end), index=found.index, end=found.end, at=found.at
    )
    cause = f" ({found.cause})" if found.cause else ""
    return f"{place}{stream}: {sentence}{cause}"


def repaired(done: Repaired) -> dict[str, Any]:
    """What became of a finding, as JSON."""
    return finding(done.finding) | {"mended": done.mended} | ({} if done.mended else {"why": done.why})


def repaired_line(done: Repaired) -> str:
    """What became of a finding."""
    return f"{finding_line(done.finding)}: {'mended' if done.mended else f'left: {done.why}'}"


def standing(found: PartitionStanding, figures: Figures) -> dict[str, Any]:
    """A partition as JSON; of its groups, also the events that they are behind."""
    return {
        "source": found.source,
        "partition": found.partition,
        "epoch": found.tail.epoch,
        "tail": str(found.tail),
        "entries": found.entries,
        "bytes": found.bytes,
        "indexerFailure": found.indexer or None,
        "groups": [
            {
                "group": group.group,
                "checkpoint": str(group.checkpoint),
                "behind": group.behind,
                **_events_behind(figures[group.group, found.partition]),
                "parked": group.parked,
                "blocked": list(map(blocked_view, group.blocked)),
            }
            for group in found.groups
        ],
    }


def _events_behind(figures: GroupFigures) -> dict[str, Any]:
    return {"events": figures.events, "ofAllEvents": figures.of_all}


def standing_lines(
    partitions: Iterable[PartitionStanding],
    figures: Figures,
    states: Mapping[str, IndexerState],
    poison: Mapping[str, int],
) -> Iterator[str]:
    """Partitions, each with its groups; then the state of the indexer of each source, and what waits."""
    for partition in partitions:
        yield (
            f"{partition.source} {partition.partition}  tail {partition.tail}, its epoch {partition.entries:,} "
            f"entries, {partition.bytes:,} bytes"
        )
        for group in partition.groups:
            lag = "beyond the end: of another index"
            figure = figures[group.group, partition.partition]
            if group.behind is not None:
                state = state_of(partition.partition, states)
                lag = lag_words(figure.events, figure.seconds, state, of_all=figure.of_all)
            parked = f", {group.parked:,} streams parked" if group.parked else ""
            yield f"  {group.group}  at {group.checkpoint}, {lag}{parked}"
            yield from (
                "  " + " ".join(output.harmless(f"{group.group}  {run.words}")) for run in group.blocked
            )
    for source, state in states.items():
        yield f"{source}  {state.text}"
    for source, count in sorted(poison.items()):
        yield f"{source}  {count:,} records set aside, see epochal index poison list"


def record_view(record: PoisonRecord) -> dict[str, Any]:
    """A record that was set aside, as JSON."""
    return {
        "source": record.source,
        "index": record.index,
        "since": record.since,
        "cause": record.cause,
        "key": {name: next(iter(value.values())) for name, value in record.key.items()},
        "outcome": record.outcome,
    }


def record_line(record: PoisonRecord) -> str:
    """A record that was set aside."""
    key = " ".join(str(value) for value in record_view(record)["key"].values())
    return f"{record.source} {record.index}  {record.since[:19]}  {key}: {record.cause} ({record.outcome or 'waits'})"


def _events(index: int | None, end: int | None) -> str:
    if index is None or end is None:
        return ""
    return f"event {index} is" if end == index + 1 else f"events {index} to {end - 1} are"


# Commands on stream records that could not be indexed and were set aside.


on_records = given(lambda store: PoisonRecords(indexer=indexer_of(store, ())))


@index.group()
def poison() -> None:
    """Records that could not be indexed and were set aside."""


@poison.command("list")
@click.option("--all", "all_", is_flag=True, help="Also those that were retried or given up.")
@on_records
def list_(records: PoisonRecords, *, all_: bool) -> None:
    """Print the records that wait, oldest first, each with its cause."""
    selected = records.all() if all_ else records.waiting()
    output.stream(selected, record_view, record_line)


@poison.command()
@click.argument("source", type=click.Choice(layout_names()))
@click.argument("index", type=click.IntRange(min=0))
@on_records
def retry(records: PoisonRecords, *, source: str, index: int) -> None:
    """Index the set-aside change INDEX of layout SOURCE again.

    Mend its cause first.
    """
    retried = records.retry(source, index)
    view = {"source": source, "index": index, "events": retried.events}
    output.document(view, [f"{source} {index}: {retried.events:,} events indexed"])


@poison.command()
@click.argument("source", type=click.Choice(layout_names()))
@click.argument("index", type=click.IntRange(min=0))
@on_records
def discard(records: PoisonRecords, *, source: str, index: int) -> None:
    """Give record INDEX of SOURCE up. It stays on record as given up."""
    records.discard(source, index)
    view = {"source": source, "index": index, "outcome": "discarded"}
    output.document(view, [f"{source} {index}: given up"])


# The command that builds the index anew in another table.


@index.command()
@click.option("--into", required=True, metavar="TABLE", help="The table of the new index.")
@click.option(
    "--from-export",
    "exports",
    multiple=True,
    metavar="SOURCE=PLACE",
    help="An export of a table: a folder or s3://bucket/prefix. Incremental ones follow it.",
)
@click.option(
    "--partitions", multiple=True, metavar="SOURCE=N", help="Partitions of the new index; as the old one's."
)
@click.option("--segments", type=click.IntRange(1, 64), default=4, help="Parts of a table scanned at once.")
@click.option("--readers", type=click.IntRange(1, 64), default=8, help="Streams read at once.")
@output.with_json
@click.pass_context
def rebuild(
    context: click.Context,
    /,
    *,
    into: str,
    exports: Sequence[str],
    partitions: Sequence[str],
    segments: int,
    readers: int,
) -> None:
    """Build the index anew in another TABLE.

    It is built from the heads of all streams, or from exports of tables. It can be interrupted and run again. The
    guide to the index says how a deployment is switched to it. Where there is no old index, as after a restore, TABLE
    is the one in use.
    """
    store: OpenedStore = context.obj()
    if into in _holding(store):
        raise InvalidInput("--into", "must be a table of its own: this one holds events or heads")
    if into == store.feed.table and store.feed.driver.run(read_series(into)).partitions:
        raise InvalidInput("--into", "must be another table than the index in use")
    sources = sources_of(store, partitions, told_wins=True)
    refuse_unrecorded(store, sources, partitions)
    driver = replace(
        store.feed.driver,
        execute=with_table_checks(store.feed.driver.execute, {into: DECLARED["index_table"].table}),
    )
    mender = Mender(driver=driver, index_table=into)
    Indexer(driver=driver, index_table=into, sources=sources).register()
    places = _places(exports, sources)
    root = context.find_root().params
    s3 = partial(s3_client, endpoint=root["endpoint"] or None, region=root["region"] or None)
    view: dict[str, Any] = {}
    troubles: list[str] = []
    with output.progress("rebuilding") as tell:
        rebuilder = Rebuilder(mender=mender, readers=readers, segments=segments, tell=tell)
        for source in sources:
            if source.name in places:
                with Spool() as spool:
                    export = export_at(
                        places[source.name][0],
                        lambda bucket: S3Objects(s3(), bucket).open,
                        *places[source.name][1:],
                    )
                    rebuilt = rebuilder.from_export(source, export.items(), spool)
            else:
                rebuilt = rebuilder.from_tables(source)
            view[source.name] = {"streams": rebuilt.streams, "events": rebuilt.events}
            troubles += rebuilt.troubles
    lines = [
        f"{name}  {value['streams']:,} streams, {value['events']:,} events indexed"
        for name, value in view.items()
    ]
    output.document(view | {"troubles": troubles}, [*troubles, *lines])
    if troubles:
        raise IndexUnsound({"look": len(troubles)})


def _holding(store: OpenedStore) -> set[str]:
    """Tables with users' data. Some have the keys of an index, and would accept its items."""
    return {
        table
        for table, kind in store.deployment.settings.kinds.items()
        if kind != DECLARED["index_table"].table
    }


def _places(exports: Sequence[str], sources: Sequence[Source]) -> dict[str, list[str]]:
    """Where the export of each source is, and those that follow it."""
    places: dict[str, list[str]] = {}
    for export in exports:
        name, equals, place = export.partition("=")
        if not equals or name not in {source.name for source in sources}:
            raise InvalidInput("--from-export", f"must be a source, =, and a place: {export!r} is not")
        places.setdefault(name, []).append(place)
    return places
