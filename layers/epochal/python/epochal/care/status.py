"""The state of an index: where each partition's chain ends, and how far behind the consumer groups are.

Groups that are named are read by key. To find all that there are, the whole index table is scanned, which reads
its marks too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import CorruptData
from epochal.index.chain_check import Finding
from epochal.index.checkpoints import TIP, Checkpoint
from epochal.index.entries import CLOSED, epoch_tip, read_spans
from epochal.index.epochs import read_series
from epochal.index.failed_runs import FailedRun, read_failed_runs
from epochal.index.feed_walk import PlacedEntry, Walk, newest, step
from epochal.index.groups import GroupState, group_stream, load
from epochal.index.indexer_failures import indexer_failures
from epochal.index.tip import event_bytes, read_data
from epochal.layout.port import Span, source_of
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import from_unix_nanoseconds
from epochal.plan.conditions import Absent, All, AnyOf, Compare, equals
from epochal.plan.effects import holds
from epochal.plan.ops import Scan, Steps
from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec
from epochal.plan.values import Item, number, read_number, text
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


_STATES: Final = All((equals("i", number(TIP)), Absent("c")))
"""Streams of unfolds alone: the groups' states."""

_OF_USERS: Final = Compare("p", ">=", text("%"))
"""Names that do not begin with $. Users' names have no character before it, and the next one is %."""

_ODD: Final = All((equals("i", number(TIP)), AnyOf((Absent("c"), _OF_USERS))))
"""The groups' states, and streams that do not belong in an index."""

_NAME: Final = re.compile(r"\$ReaderCheckpoint-[a-z]+_\d+_(?P<group>[A-Za-z0-9-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """A consumer group in a partition.

    Attributes:
        behind: entries of the index that it has not handled; None for a checkpoint beyond the end of the chain, which
            is of another index.
        parked: streams that are.
        paused: since when; empty where it is not.
        blocked: members whose last run failed, and who have not got on since.
    """

    group: str
    checkpoint: Checkpoint
    behind: int | None
    parked: int
    paused: str = ""
    blocked: tuple[FailedRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStanding:
    """A partition's chain.

    Attributes:
        tail: the checkpoint after its last entry.
        entries: in its newest epoch.
        bytes: of those, as stored.
        indexer: why the indexer puts no further events into the partition; empty where nothing is on record.
    """

    source: str
    partition: int
    tail: Checkpoint
    entries: int
    bytes: int
    groups: tuple[GroupStanding, ...] = ()
    indexer: str = ""


def standings(
    driver: Driver, table: str, groups: Collection[str] = (), now: Callable[[], int] = time.time_ns
) -> Iterator[PartitionStanding]:
    """Every partition on record, with those of these groups that have been there."""
    series = driver.run(read_series(table))
    failures = driver.run(indexer_failures(table, series, from_unix_nanoseconds(now())))
    for partition, epoch in series.reached():
        standing = driver.run(_standing(table, partition, epoch, groups))
        yield replace(standing, indexer=failures.get(standing.source, ""))


def groups_of(driver: Driver, table: str) -> list[str]:
    """The names of all groups that have a state, found by a scan of the index table."""
    found: set[str] = set()
    for page in driver.pages(Scan(table=table, where=_STATES)):
        found.update(_groups_in(page.items))
    return sorted(found)


def strayed(driver: Driver, table: str) -> Iterator[Finding]:
    """What does not belong in an index: users' streams, and checkpoints of groups that are beyond the end of their
    chain, where that can be read.
    """
    named: set[str] = set()
    for page in driver.pages(Scan(table=table, where=_ODD)):
        named.update(_groups_in(page.items))
        strays = (_stray(item) for item in page.items if holds(_OF_USERS, item))
        yield from (stray for stray in strays if stray.index != stray.end)
    groups = sorted(named)
    for partition, epoch in driver.run(read_series(table)).reached() if groups else ():
        try:
            found = driver.run(_standing(table, partition, epoch, groups))
        except CorruptData:
            continue  # the walk of the chain reports it
        for group in found.groups:
            if group.behind is None:
                yield Finding(
                    kind="checkpoint beyond",
                    source=found.source,
                    partition=partition,
                    stream=group.group,
                    at=group.checkpoint,
                )


def _groups_in(items: Iterable[Item]) -> set[str]:
    named = (_NAME.fullmatch(item["p"]["S"]) for item in items)
    return {match["group"] for match in named if match}


def _stray(item: Item) -> Finding:
    """A stream that somebody appended to the index, as if it were a table of streams."""
    return Finding(
        kind="stray stream",
        source="index",
        stream=item["p"]["S"],
        index=read_number(item, "l") or 0,
        end=read_number(item, "n"),
    )


def _standing(table: str, partition: int, epoch: int, groups: Collection[str]) -> Steps[PartitionStanding]:
    # The groups first: a chain only grows, so what is read of it afterwards reaches as far as any of them.
    states: dict[str, GroupState] = {}
    for group in groups:
        state = (yield from load(table, group_stream(partition, group))).state
        if state is not None:
            states[group] = state
    end, tip = yield from newest(table, partition, epoch)
    standing: list[GroupStanding] = []
    for group, state in states.items():
        standing.append((yield from _group(table, partition, end, group, state)))
    return PartitionStanding(
        source=source_of(partition),
        partition=partition,
        tail=end,
        entries=end.offset,
        bytes=0 if tip is None else tip.calved + event_bytes(tip.span),
        groups=tuple(standing),
    )


def _group(
    table: str, partition: int, end: Checkpoint, group: str, state: GroupState
) -> Steps[GroupStanding]:
    behind = yield from _between(table, partition, state.checkpoint, end)
    blocked: tuple[FailedRun, ...] = ()
    if state.checkpoint < end:
        blocked = yield from read_failed_runs(table, group, partition, state)
    return GroupStanding(
        group=group,
        checkpoint=state.checkpoint,
        behind=behind,
        parked=len(state.parked),
        paused=state.paused,
        blocked=blocked,
    )


def _between(table: str, partition: int, start: Checkpoint, end: Checkpoint) -> Steps[int | None]:
    """Entries between two checkpoints; None where the first is beyond the second, or past its epoch's last entry."""
    if start > end:
        return None
    count = end.offset if end.epoch > start.epoch else end.offset - start.offset
    for epoch in range(start.epoch, end.epoch):
        tip = yield from epoch_tip(table, partition, epoch)
        held = 0 if tip is None else tip.version - (tip.span.types[-1:] == (CLOSED,))
        passed = start.offset if epoch == start.epoch else 0
        if passed > held:
            return None
        count += held - passed
    return count


# When something came, and how much: the entries of an index, each with the time that it was written.

PAGE: Final = 200
"""Entries asked for at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An entry: the events that it tells of, and when it was written, in seconds since 1970."""

    seconds: float
    spans: tuple[Span, ...]

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(len(span.types) for span in self.spans)


def arrivals(driver: Driver, table: str, partition: int, start: Checkpoint) -> Iterator[Arrival]:
    """The entries from a checkpoint to the tail, read as they are consumed.

    Raises:
        BeyondTheEnd: it is of another index.
        CorruptData: an entry cannot be read.
    """
    walk, at_tail = Walk(partition=partition, at=start), False
    while not at_tail:
        page = driver.run(step(table, walk, PAGE))
        yield from map(_arrival, page.placed)
        walk, at_tail = page.walk, page.at_tail


def _arrival(placed: PlacedEntry) -> Arrival:
    return Arrival(seconds=placed.seconds, spans=read_spans(placed.kind, read_data(placed.event)))


# Creating tables from their specifications: for the command line, tests and local work; deployments use the stacks.


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """Read and write units a second of a table, and of each of its indexes: so many where they are `fixed`; else at
    most, on demand, None without a ceiling.
    """

    read: int | None = None
    write: int | None = None
    fixed: bool = False


def create_table(
    client: DynamoDBClient,
    name: str,
    spec: TableSpec,
    *,
    units: Provisioned | None = None,
    regions: bool = False,
    protect: bool = False,
    recover: bool = False,
) -> None:
    """Create a table and wait until it can be used. Raises boto's error where it exists.

    Args:
        units: what is paid for, or a ceiling of it.
        regions: it can be given a replica later, which takes a stream, as the stacks' tables.
        protect: its deletion is refused.
        recover: it can be restored to any second of the last 35 days.
    """
    bound = _bound(units or Provisioned())
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": _schema(spec.partition, spec.sort),
        "AttributeDefinitions": _definitions(spec),
        "BillingMode": "PROVISIONED" if units is not None and units.fixed else "PAY_PER_REQUEST",
        **bound,
    }
    if protect:
        request["DeletionProtectionEnabled"] = True
    if spec.indexes:
        request["GlobalSecondaryIndexes"] = [{**_index(index), **bound} for index in spec.indexes]
    if spec.stream or regions:
        view = "NEW_IMAGE" if spec.stream else "KEYS_ONLY"
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    complete(client, name, client.create_table(**request)["TableDescription"], spec, recover=recover)


def complete(
    client: DynamoDBClient, name: str, described: Any, spec: TableSpec, *, recover: bool = False
) -> None:
    """Wait until a table can be used, and turn on what is not made with it: its creator may have got no further."""
    if described["TableStatus"] != "ACTIVE":  # a stand-in's is at once
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    if spec.ttl is not None:
        expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if expiry.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            client.update_time_to_live(
                TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": spec.ttl}
            )
    if recover:
        client.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )


def differs(described: Any, spec: TableSpec) -> str | None:
    """What a table has otherwise than its specification asks, as DynamoDB describes it; None where nothing matters."""
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
    if described["KeySchema"] != _schema(spec.partition, spec.sort):
        return "keys"
    if any(types.get(each["AttributeName"]) != each["AttributeType"] for each in _definitions(spec)):
        return "types of keys"
    indexes = {each["IndexName"]: each["KeySchema"] for each in described.get("GlobalSecondaryIndexes", ())}
    if any(indexes.get(each.name) != _schema(each.partition, each.sort) for each in spec.indexes):
        return "indexes"
    view = described.get("StreamSpecification", {}).get("StreamViewType")
    return "streams" if spec.stream and view not in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES") else None


def _bound(units: Provisioned) -> dict[str, Any]:
    if units.fixed:
        return {"ProvisionedThroughput": {"ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write}}
    ceiling = {"MaxReadRequestUnits": units.read, "MaxWriteRequestUnits": units.write}
    found = {name: most for name, most in ceiling.items() if most is not None}
    return {"OnDemandThroughput": found} if found else {}


def _schema(partition: KeyAttribute, sort: KeyAttribute | None) -> list[dict[str, str]]:
    keys = [{"AttributeName": partition.name, "KeyType": "HASH"}]
    return keys if sort is None else [*keys, {"AttributeName": sort.name, "KeyType": "RANGE"}]


def _definitions(spec: TableSpec) -> list[dict[str, str]]:
    keys = [spec.partition, spec.sort]
    for index in spec.indexes:
        keys += [index.partition, index.sort]
    types = {key.name: key.type for key in keys if key is not None}
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _index(index: IndexSpec) -> dict[str, Any]:
    return {
        "IndexName": index.name,
        "KeySchema": _schema(index.partition, index.sort),
        "Projection": {"ProjectionType": "KEYS_ONLY" if index.keys_only else "ALL"},
    }
