"""The state of an index: where each partition's chain ends, and how far behind the consumer groups are.

Groups that are named are read by key. To find all that there are, the whole index table is scanned, which reads
its marks too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from epochal.errors import CorruptData
from epochal.index.chain_check import Finding
from epochal.index.checkpoints import TIP, Checkpoint
from epochal.index.entries import CLOSED, epoch_tip
from epochal.index.failed_runs import FailedRun, read_failed_runs
from epochal.index.feed_walk import find_tail
from epochal.index.group_state import GroupState
from epochal.index.groups import group_stream, load
from epochal.index.indexer_failures import indexer_failures
from epochal.index.series import read_series
from epochal.index.tip import event_bytes
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks, from_unix_nanoseconds
from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, equals
from epochal.plan.effects import holds
from epochal.plan.ops import Scan, Steps
from epochal.plan.values import Item, number, read_number, text
from epochal.store.driver import Driver

_STATES: Final = AnyOf((All((equals("i", number(TIP)), Absent("c"))), BeginsWith("p", "$ReaderFailure-")))
"""Streams of unfolds alone, which are the groups' states; and failed runs, also of groups that have not begun."""

_OF_USERS: Final = Compare("p", ">=", text("%"))
"""Names that do not begin with $. Users' names have no character before it, and the next one is %."""

_ODD: Final = All((equals("i", number(TIP)), AnyOf((Absent("c"), _OF_USERS))))
"""The groups' states, and streams that do not belong in an index."""

REQUESTS: Final = 4
"""Scans of an index, of 1 MB each, that look for groups where nobody asks for all of them."""

_NAME: Final = re.compile(r"\$Reader(?:Checkpoint-[a-z]+_|Failure-)\d+_(?P<group>[A-Za-z0-9-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """How far a consumer group is in one partition.

    Attributes:
        checkpoint: where the group reads on.
        behind: number of index entries that it has not handled; None where its checkpoint is beyond the end of the
            chain, which means that it belongs to another index.
        parked: number of parked streams.
        paused: since when the group is paused, ISO 8601; empty where it is not.
        blocked: the last runs of members that failed, and have not got on since.
        begun: whether it has begun, and has not only failed to.
    """

    group: str
    checkpoint: Checkpoint
    behind: int | None
    parked: int
    paused: str = ""
    blocked: tuple[FailedRun, ...] = ()
    begun: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStanding:
    """Where the chain of a partition ends, and how far its groups are.

    Attributes:
        tail: the checkpoint after its last entry.
        entries: number of entries in its newest epoch.
        bytes: stored size of these entries.
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
    """Yield the state of every partition on record, with the state of the named groups in it."""
    series = driver.run(read_series(table))
    moment = from_unix_nanoseconds(now())
    failures = driver.run(indexer_failures(table, series, moment))
    partitions = [
        driver.run(_standing(table, partition, epoch, groups, moment))
        for partition, epoch in series.reached()
    ]
    started = {group.group for standing in partitions for group in standing.groups if group.begun}
    for standing in partitions:
        # A group that has begun elsewhere begins here as well, or reads other partitions.
        shown = tuple(group for group in standing.groups if group.begun or group.group not in started)
        yield replace(standing, groups=shown, indexer=failures.get(standing.source, ""))


def groups_of(driver: Driver, table: str) -> list[str]:
    """Find the names of all groups that have a state, by a scan of the index table."""
    groups: set[str] = set()
    for page in driver.pages(Scan(table=table, where=_STATES)):
        groups.update(_groups_in(page.items))
    return sorted(groups)


def some_groups_of(driver: Driver, table: str) -> tuple[list[str], bool]:
    """Return the group names that `REQUESTS` requests find, and whether these are all that there are."""
    names: set[str] = set()
    scan = Scan(table=table, where=_STATES)
    for _ in range(REQUESTS):
        page = driver.ask(scan)
        names.update(_groups_in(page.items))
        if page.last is None:
            return sorted(names), True
        scan = replace(scan, after=page.last)
    return sorted(names), False


def strayed(driver: Driver, table: str) -> Iterator[Finding]:
    """Yield what does not belong in an index: users' streams, and checkpoints beyond their chain's end."""
    groups: set[str] = set()
    for page in driver.pages(Scan(table=table, where=_ODD)):
        groups.update(_groups_in(page.items))
        strays = (_stray(item) for item in page.items if holds(_OF_USERS, item))
        yield from (stray for stray in strays if stray.index != stray.end)
    names = sorted(groups)
    for partition, epoch in driver.run(read_series(table)).reached() if names else ():
        try:
            standing = driver.run(
                _standing(table, partition, epoch, names, from_unix_nanoseconds(time.time_ns()))
            )
        except CorruptData:
            continue  # the walk of the chain reports it
        for group in standing.groups:
            if group.behind is None:
                yield Finding(
                    kind="checkpoint beyond",
                    source=standing.source,
                    partition=partition,
                    stream=group.group,
                    at=group.checkpoint,
                )


def _groups_in(items: Iterable[Item]) -> set[str]:
    """The names of the groups whose states are among these items."""
    matches = (_NAME.fullmatch(item["p"]["S"]) for item in items)
    return {match["group"] for match in matches if match}


def _stray(item: Item) -> Finding:
    """Make the finding about a stream that somebody appended to the index, as if to a table of streams."""
    return Finding(
        kind="stray stream",
        source="index",
        stream=item["p"]["S"],
        index=read_number(item, "l") or 0,
        end=read_number(item, "n"),
    )


def _standing(
    table: str, partition: int, epoch: int, groups: Collection[str], now: Ticks
) -> Steps[PartitionStanding]:
    """Read the state of one partition, and of the named groups in it."""
    # The groups first: a chain only grows, so what is read of it afterwards reaches as far as any of them.
    states: dict[str, GroupState | None] = {}
    for group in groups:
        states[group] = (yield from load(table, group_stream(partition, group))).state
    end, tip = yield from find_tail(table, partition, epoch)
    standing: list[GroupStanding] = []
    for group, state in states.items():
        if state is not None:
            standing.append((yield from _group(table, partition, end, group, state, now=now)))
        elif (yield from read_failed_runs(table, group, partition, GroupState(), now)):
            failed = yield from _group(table, partition, end, group, GroupState(), now=now)
            standing.append(replace(failed, begun=False))
    return PartitionStanding(
        source=source_of(partition),
        partition=partition,
        tail=end,
        entries=end.offset,
        bytes=0 if tip is None else tip.calved + event_bytes(tip.span),
        groups=tuple(standing),
    )


def _group(
    table: str, partition: int, end: Checkpoint, group: str, state: GroupState, *, now: Ticks
) -> Steps[GroupStanding]:
    """Read a group's state in a partition: how far it is behind the chain's end, and what blocks it."""
    behind = yield from _between(table, partition, state.checkpoint, end)
    blocked: tuple[FailedRun, ...] = ()
    if state.checkpoint < end:
        blocked = yield from read_failed_runs(table, group, partition, state, now)
    return GroupStanding(
        group=group,
        checkpoint=state.checkpoint,
        behind=behind,
        parked=len(state.parked),
        paused=state.paused,
        blocked=blocked,
    )


def _between(table: str, partition: int, start: Checkpoint, end: Checkpoint) -> Steps[int | None]:
    """Count the entries between two checkpoints; None if `start` is not on the chain before `end`."""
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
