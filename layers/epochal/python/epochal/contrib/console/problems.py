"""What is wrong with a store, the gravest first, each with what to do about it: the beginning of the first page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from epochal.care.quarantined import PoisonRecord
from epochal.care.status import GroupStanding, PartitionStanding
from epochal.contrib.console.page import ago
from epochal.hosting.group_summaries import latest_failure
from epochal.hosting.indexer_state import IndexerState
from epochal.lazy_dataclasses import dataclass
from epochal.model.quantities import quantity

LATE_SECONDS: Final = 5 * 60
"""Seconds after which a feed or a reaction is late, as its alarm has it."""

LAGS: Final = "feed-lags"
SET_ASIDE: Final = "feed-set-aside"
BLOCKED: Final = "reaction-<name>-blocked"
FAILS: Final = "reaction-<name>-fails"
PARKED: Final = "reaction-<name>-parked"
BEHIND: Final = "reaction-<name>-lags"

RUNBOOK: Final = (LAGS, SET_ASIDE, BLOCKED, FAILS, PARKED, BEHIND)
"""Entries of the runbook that problems name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProblem:
    """Something that waits for an operator.

    Attributes:
        text: what is wrong, in a sentence without its full stop.
        remedy: what to do, in a sentence.
        command: command that shows more, or does it.
        page: name of the console's page about it.
        group: group that the page is to show; empty for none.
        runbook: entry of the runbook; empty for none.
    """

    text: str
    remedy: str
    command: str
    page: str
    group: str = ""
    runbook: str = ""


def find_problems(
    *,
    indexer: Mapping[str, IndexerState],
    partitions: Iterable[PartitionStanding],
    oldest: Mapping[str, float | None],
    late: float | None,
    aside: Mapping[str, tuple[int, tuple[PoisonRecord, ...] | None]],
) -> list[KnownProblem]:
    """Return the problems of a store, the gravest first.

    Args:
        indexer: states of the indexer by layout.
        partitions: standings of partitions with those of the groups.
        oldest: seconds for which the first unhandled event of each group has waited.
        late: seconds after which the newest events came to the feed; None if unknown.
        aside: notes and waiting records of what was set aside, by layout.
    """
    groups: dict[str, list[GroupStanding]] = {}
    for partition in partitions:
        for group in partition.groups:
            groups.setdefault(group.group, []).append(group)
    return [
        *_find_indexer_problems(indexer, late),
        *_find_quarantine_problems(aside),
        *(problem for name, standings in groups.items() for problem in _find_group_problems(name, standings)),
        *(problem for name in groups for problem in _find_lag_problems(name, groups[name], oldest.get(name))),
    ]


def _find_indexer_problems(indexer: Mapping[str, IndexerState], late: float | None) -> Iterator[KnownProblem]:
    """Yield a problem for each layout whose events do not come to the feed, and one if they come late."""
    for layout, state in indexer.items():
        if state.failure or state.missing:
            yield KnownProblem(
                text=f"The indexer of {layout} adds no events: {state.failure or state.missing}",
                remedy="Until it works, the feed gets no new events. Changes are kept for 24 hours.",
                command="epochal index status",
                page="health",
                runbook=LAGS,
            )
    if late is not None and late > LATE_SECONDS:
        yield KnownProblem(
            text=f"The newest events reached the feed {ago(late)} after their append",
            remedy="The indexer is slow, is throttled, or was stopped.",
            command="epochal index status",
            page="health",
            runbook=LAGS,
        )


def _find_quarantine_problems(
    aside: Mapping[str, tuple[int, tuple[PoisonRecord, ...] | None]],
) -> Iterator[KnownProblem]:
    """Yield a problem for each layout of which the indexer has set records aside."""
    for layout, (notes, waiting) in aside.items():
        if notes and (waiting is None or waiting):
            count = "Many records" if waiting is None else quantity(len(waiting), "record")
            verb = "was" if waiting is not None and len(waiting) == 1 else "were"
            yield KnownProblem(
                text=f"{count} {verb} set aside by the indexer of {layout}",
                remedy="Repair the item that it could not read, and have the record indexed again.",
                command="epochal index poison list",
                page="health",
                runbook=SET_ASIDE,
            )


def _find_group_problems(name: str, standings: list[GroupStanding]) -> Iterator[KnownProblem]:
    """Yield each problem because of which a group handles nothing, or not everything."""
    if failure := latest_failure(run for group in standings for run in group.blocked):
        yield KnownProblem(
            text=f"{name} makes no progress: {failure.words}",
            remedy=failure.remedy,
            command=f"epochal groups show {name}",
            page="reactions",
            group=name,
            runbook=FAILS if failure.is_failed_load else BLOCKED,
        )
    if any(group.behind is None for group in standings):
        yield KnownProblem(
            text=f"{name} has a checkpoint of another index",
            remedy="Reset it to a place in this index.",
            command=f"epochal groups reset {name} --to beginning",
            page="reactions",
            group=name,
        )
    if parked := sum(group.parked for group in standings):
        yield KnownProblem(
            text=f"{name} has parked {quantity(parked, 'stream')}",
            remedy="Fix the cause, deploy, and replay the streams. Give up events that can never be handled.",
            command=f"epochal parked list {name}",
            page="reactions",
            group=name,
            runbook=PARKED,
        )
    if paused := min((group.paused for group in standings if group.paused), default=""):
        yield KnownProblem(
            text=f"{name} has been paused since {paused}",
            remedy="It handles no events until it is resumed.",
            command=f"epochal groups resume {name}",
            page="reactions",
            group=name,
        )


def _find_lag_problems(
    name: str, standings: list[GroupStanding], oldest: float | None
) -> Iterator[KnownProblem]:
    """Yield a problem if a group is late though nothing else is known to stop it."""
    stopped = any(group.blocked or group.paused or group.behind is None for group in standings)
    if oldest is not None and oldest > LATE_SECONDS and not stopped:
        yield KnownProblem(
            text=f"{name} has not handled events that arrived {ago(oldest)} ago",
            remedy="A new reaction first reads the whole feed. If it is not new, its function fails or is not "
            "called.",
            command=f"epochal groups show {name}",
            page="reactions",
            group=name,
            runbook=BEHIND,
        )
