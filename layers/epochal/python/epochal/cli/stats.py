"""Figures of the whole store or of one stream, and its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import click

from epochal.care.mender import Mender
from epochal.care.partial_replication import SECONDS, Replica
from epochal.care.retention import rules_of
from epochal.care.retention_preview import prunable
from epochal.care.status import some_groups_of
from epochal.care.table_creation import Provisioned, complete, create_table, differs
from epochal.care.torn import Kind as TornKind
from epochal.care.torn import Torn
from epochal.cli import output
from epochal.cli.inputs import Seconds, Unsound
from epochal.cli.target import TABLES, Choice, OpenedStore, existing, on_store
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.table_kinds import specs
from epochal.errors import InvalidInput, InvalidRequest, Refused
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem
from epochal.hosting.group_summaries import GroupSummary, summaries_of
from epochal.hosting.indexer_state import IndexerState, indexer_states
from epochal.lazy_dataclasses import asdict, dataclass, field
from epochal.model.quantities import quantity
from epochal.plan.tables import TableSpec
from epochal.plugins import NATIVE
from epochal.store.reading import StreamState

# Figures: of the whole store, or of one stream.


@click.command()
@click.argument("stream", required=False)
@click.option("--count", is_flag=True, help="Also count events and streams, which reads the whole index.")
@on_store
def stats(store: OpenedStore, *, stream: str | None, count: bool) -> None:
    """Print statistics of the store, or of one STREAM.

    Statistics of the store are partitions, epochs, checkpoints and sizes of tables. Sizes are those of
    DynamoDB, which AWS updates every six hours.
    """
    if stream is not None:
        if count:
            raise click.UsageError(
                "--count applies to the whole store; the version of a stream is the number of its events."
            )
        view = shown = _stream(existing(store.streams, stream))
    else:
        states = indexer_states(store.deployment, partial(store.client, "lambda"))
        groups = _groups(store, states)
        counted = _count(store).view() if count else {}
        view = _store(store, states, groups.view) | counted
        shown = _store(store, states, groups.words) | counted
    output.document(view, output.table(_flat(shown)))


@dataclass(slots=True)
class _Tally:
    """Counts of events and streams. A partition and a name tell streams apart: a tag may be called like a stream."""

    feed: FeedReader
    events: int = 0
    types: Counter[str] = field(default_factory=Counter)
    streams: Counter[tuple[int, str]] = field(default_factory=Counter)

    def add(self, partition: int, item: FeedItem) -> None:
        """Count one event."""
        self.events += 1
        self.types[item.type] += 1
        self.streams[partition, item.stream] += 1

    def view(self) -> dict[str, Any]:
        """Return the counts as JSON, with events and streams of each category."""
        categories: dict[str, dict[str, int]] = {}
        for (partition, stream), events in sorted(self.streams.items()):
            name = self.feed.categories(partition).of(stream)
            category = categories.setdefault(name, {"streams": 0, "events": 0})
            category["streams"] += 1
            category["events"] += events
        return {
            "events": self.events,
            "streams": len(self.streams),
            "categories": categories,
            "types": dict(self.types.most_common()),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundGroups:
    """Groups that few requests find.

    Attributes:
        missing: why there may be others; empty where these are all.
    """

    summaries: Sequence[GroupSummary]
    missing: str

    @property
    def view(self) -> dict[str, Any]:
        """Groups as JSON."""
        return {
            "groups": {summary.group: summary.view for summary in self.summaries},
            "allGroups": not self.missing,
        }

    @property
    def words(self) -> dict[str, Any]:
        """Groups as `groups list` shows them."""
        words = {summary.group: summary.words for summary in self.summaries}
        if self.missing:
            words["(others)"] = f"there may be others: {self.missing}"
        return {"groups": {group: " ".join(output.harmless(line)) for group, line in words.items()}}


def _groups(store: OpenedStore, states: Mapping[str, IndexerState]) -> _FoundGroups:
    """Return summaries of the groups that few requests find, and the reason why there may be others."""
    try:
        names, complete = some_groups_of(store.feed.driver, store.feed.table)
    except Refused as error:
        return _FoundGroups(summaries=(), missing=str(error))
    return _FoundGroups(
        summaries=list(summaries_of(store.deployment.groups, names, states)),
        missing="" if complete else "the index is large, and only `epochal groups list` reads all of it",
    )


def _store(store: OpenedStore, states: Mapping[str, IndexerState], groups: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the whole store: partitions, indexer, groups and tables."""
    tails = store.feed.partitions()
    return {
        "partitions": {
            str(tail.partition): {"epochs": tail.tail.epoch + 1, "tail": str(tail.tail)} for tail in tails
        },
        "indexer": {source: state.text for source, state in states.items()},
        **groups,
        "tables": {size.name: {"items": size.items, "bytes": size.bytes} for size in store.sizes()},
    }


def _count(store: OpenedStore) -> _Tally:
    """Count events, types and streams by reading the whole feed."""
    tally = _Tally(feed=store.feed)
    with output.progress("counting") as tell:
        for partition in store.feed.partitions():
            for page in store.feed.read(partition.partition):
                for item in page.items:
                    tally.add(partition.partition, item)
                tell(
                    f"{tally.events:,} events, partition {partition.partition} at {page.next} of {partition.tail}"
                )
    return tally


def _stream(state: StreamState) -> dict[str, Any]:
    """Return the figures of one stream as JSON."""
    return {
        "stream": state.stream,
        "version": state.version,
        "lowWater": state.low_water,
        "deleted": state.deleted,
        "head": {
            "bytes": state.token.size,
            "events": state.token.events,
            "eventBytes": state.token.carried,
            "unfolds": len(state.unfolds),
            "unfoldBytes": state.token.unfolds,
        },
    }


def _flat(view: dict[str, Any], before: str = "") -> list[tuple[str, object]]:
    """Flatten nested figures into rows, each with the names that lead to it."""
    rows: list[tuple[str, object]] = []
    for name, value in view.items():
        path = f"{before} {name}".strip()
        rows += _flat(value, path) if isinstance(value, dict) else [(path, value)]
    return rows


# Tables without a stack: made as the stacks make theirs, for stores that are opened by the names of their tables.
#
# What there is already stays as it is, so that the command may run before every start of a program.


@click.group()
def tables() -> None:
    """Create and repair tables that no stack deploys."""


@tables.command()
@click.option(
    "--billing",
    type=click.Choice(["on-demand", "provisioned"]),
    default="on-demand",
    help="Billing mode of the tables. The default is on-demand.",
)
@click.option(
    "--read-units",
    type=click.IntRange(1),
    help="Read units a second: those provisioned, or with on-demand "
    "billing the maximum. The default is no maximum.",
)
@click.option(
    "--write-units",
    type=click.IntRange(1),
    help="Write units a second: those provisioned, or with "
    "on-demand billing the maximum. The default is no "
    "maximum.",
)
@click.option("--protect", is_flag=True, help="Enable deletion protection of the tables.")
@click.option(
    "--recover", is_flag=True, help="Enable point-in-time recovery, to any second of the last 35 days."
)
@output.with_json
@click.pass_context
def create(
    context: click.Context,
    *,
    billing: str,
    read_units: int | None,
    write_units: int | None,
    protect: bool,
    recover: bool,
) -> None:
    """Create the named tables that do not exist, and complete the others.

    Keys, indexes, streams and expiry are as in a deployed stack. A table that exists gets its expiry, and with
    --recover point-in-time recovery. Name tables before the command, as --streams-table and --index-table.
    """
    choice: Choice = context.find_root().meta[Choice.__name__]
    names = {kind: choice.settings.value(setting) for setting, kind in TABLES.values()}
    kinds = {kind: name for kind, name in names.items() if name}
    if not kinds or choice.stack:
        raise click.UsageError("Name the tables before the command: epochal --streams-table … tables create.")
    if billing == "provisioned" and not (read_units and write_units):
        raise click.UsageError("--billing provisioned needs --read-units and --write-units.")
    client = dynamodb_client(endpoint=choice.endpoint or None, region=choice.region or None)
    outcomes: dict[str, str] = {}
    for kind, name in kinds.items():
        units = Provisioned(read=read_units, write=write_units, fixed=billing == "provisioned")
        outcomes[name] = _create_or_complete(
            client, name, specs()[kind], units, protect=protect, recover=recover
        )
    view = {"tables": [{"table": name, "outcome": outcome} for name, outcome in outcomes.items()]}
    output.document(view, [f"{name}  {outcome}" for name, outcome in outcomes.items()])


def _create_or_complete(
    client: Any, name: str, spec: TableSpec, units: Provisioned, *, protect: bool, recover: bool
) -> str:
    """Create a table or complete the existing one; return which; raise `InvalidInput` if it differs."""
    try:
        with translate_errors("CreateTable"):
            create_table(client, name, spec, units=units, regions=True, protect=protect, recover=recover)
    except InvalidRequest as error:
        if error.code != "ResourceInUseException":
            raise
        with translate_errors("DescribeTable"):
            description = client.describe_table(TableName=name)["Table"]
        if (what := differs(description, spec)) is not None:
            raise InvalidInput(
                f"{name}", f"already exists, but its {what} are not those of a table of {spec.kind}"
            ) from error
        with translate_errors("UpdateTimeToLive"):
            complete(client, name, description, spec, recover=recover)
        return "already exists"
    return "created"


# A replica's table after a failover.


@tables.command()
@click.option(
    "--mend",
    is_flag=True,
    help="Repair what can be repaired. Use it before writers return, never while they run.",
)
@click.option(
    "--seconds",
    type=Seconds(min=0),
    default=SECONDS,
    show_default=True,
    help="Age in seconds of the keys that are checked, before the latest write. Use the time that replication "
    "lagged.",
)
@click.option(
    "--segments",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Number of segments of the table that are scanned in parallel.",
)
@on_store
def torn(store: OpenedStore, *, mend: bool, seconds: float, segments: int) -> None:
    """Find, or with --mend repair, writes that a replica received in part.

    The table of streams is scanned once. The exit code is 1 if such writes are left.
    """
    remaining = Counter[str]()
    table = next((source.table for source in store.deployment.sources if source.name == NATIVE), None)
    if table is None:
        raise InvalidInput("--streams-table", "is needed: it holds the streams")

    def counted(findings: Iterable[Torn]) -> Iterator[Torn]:
        """Yield the findings, and count those that were mended and those that were left."""
        for finding in findings:
            remaining["mended" if finding.mended else "left"] += 1
            yield finding

    with output.progress("scanning"):
        replica = Replica(
            driver=store.feed.driver, table=table, mend=mend, seconds=seconds, segments=segments
        )
        output.stream(counted(replica.findings()), _torn_view, _torn_line)
    if count := remaining["left"]:
        raise Unsound(f"the table has only part of {quantity(count, 'write')}")
    if not output.as_json():
        click.echo(f"{remaining['mended']:,} repaired; no partial writes are left")


def _torn_view(finding: Torn) -> dict[str, Any]:
    return {**asdict(finding), "advice": finding.advice}


def _torn_line(finding: Torn) -> str:
    """Describe a finding in a line for people."""
    cause = f" ({finding.cause})" if finding.cause else ""
    became = "repaired" if finding.mended else f"not repaired: {finding.advice or '--mend repairs it'}"
    what = SENTENCES[finding.kind].format(index=finding.index, end=finding.end, last=finding.end - 1)
    return f"{finding.stream}: {what}{cause}: {became}"


SENTENCES: Final = MappingProxyType[TornKind, str](
    {
        "pruned": "only part of the events below {end} is pruned",
        "open": "its page of events {index} to {last} is not closed",
        "state": "its unfolds have not arrived",
        "key": "a key is on record without its append",
        "part": "a key is on record with only part of its append",
        "doubt": "a key is on record, and whether its append has arrived cannot be determined",
        "hole": "events {index} to {last} have not arrived, but later ones have",
        "unreadable": "a page cannot be read",
    }
)


# `keep`: what rules of retention would prune.


@click.command()
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only count. Required: only the auditor of a stage prunes, by the setting `keep`.",
)
@on_store
def keep(store: OpenedStore, *, rules: Sequence[str], dry_run: bool) -> None:
    """Count the events that rules of retention would prune now.

    A rule is Visit:100, Log:30d or Trace:100:30d: a category, with the number or the age of the events that are
    kept. The heads of all streams are read.
    """
    if not dry_run:
        raise click.UsageError("Pass --dry-run: only the auditor of a stage prunes, by the setting `keep`.")
    mender = Mender(driver=store.feed.driver, index_table=store.feed.table)
    with output.progress("reading heads"):
        streams = prunable(mender, store.deployment.sources, rules_of(rules))
    output.stream(
        streams,
        asdict,
        lambda row: (
            f"{row.category}: {quantity(row.events)} of {row.streams:,} stream{'s' * (row.streams != 1)}"
        ),
    )
