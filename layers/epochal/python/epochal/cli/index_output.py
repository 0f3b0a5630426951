"""What commands on the index print: a line for people, a document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from epochal.care.repair import Repaired
from epochal.care.status import PartitionStanding
from epochal.cli import output
from epochal.hosting.group_summaries import lag_words, state_of
from epochal.hosting.indexer_state import IndexerState
from epochal.index.chain_check import Finding, FindingKind
from epochal.reactions.steering import GroupFigures, blocked_view

Figures = Mapping[tuple[str, int], GroupFigures]
"""Figures of groups, by group and partition."""

SENTENCES: Final = MappingProxyType[FindingKind, str](
    {
        "unregistered": "the index has no number of partitions on record",
        "missing": "{events} not indexed",
        "mark low": "its mark is {index}, but it is indexed up to {end}: events would be indexed again",
        "mark high": "its mark is {end}, but the chain ends at {index}: events would be skipped",
        "gap": "{events} missing from the chain before {at}",
        "backwards": "{events} twice in the chain, again at {at}",
        "misplaced": "{events} at {at}, in the wrong partition",
        "entry unreadable": "the entry at {at} cannot be read",
        "epoch unreadable": "its epoch cannot be read from {at} on",
        "epoch lost": "the epoch at {at} does not exist",
        "epoch left open": "its epoch ends at {at} but is not marked as ended",
        "epoch continued": "its epoch continues at {at}, after its end",
        "too far": "{events} indexed but not in the store",
        "orphan": "{events} indexed, but the store has no such stream",
        "head unreadable": "its head cannot be read",
        "checkpoint beyond": "its checkpoint {at} is beyond the end: it belongs to another index",
        "stray stream": "{events} in the table of the index, but in no feed: a store of streams was opened on it",
    }
)


def finding_view(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON, without the fields that do not apply."""
    view = {
        "kind": finding.kind,
        "remedy": finding.remedy,
        "source": finding.source,
        "partition": finding.partition,
        "stream": finding.stream,
        "index": finding.index,
        "end": finding.end,
        "at": None if finding.at is None else str(finding.at),
        "cause": finding.cause or None,
    }
    return {name: value for name, value in view.items() if value is not None}


def finding_line(finding: Finding) -> str:
    """Return a finding as a line."""
    place = finding.source if finding.partition is None else f"{finding.source} {finding.partition}"
    stream = "" if finding.stream is None else f" {finding.stream}"
    sentence = SENTENCES[finding.kind].format(
        events=_events(finding.index, finding.end), index=finding.index, end=finding.end, at=finding.at
    )
    cause = f" ({finding.cause})" if finding.cause else ""
    return f"{place}{stream}: {sentence}{cause}"


def repair_view(repaired: Repaired) -> dict[str, Any]:
    """Return a finding as JSON, with whether it was mended, or why not."""
    return (
        finding_view(repaired.finding)
        | {"mended": repaired.mended}
        | ({} if repaired.mended else {"why": repaired.why})
    )


def repair_line(repaired: Repaired) -> str:
    """Return a finding as a line, with whether it was mended, or why not."""
    return f"{finding_line(repaired.finding)}: {'repaired' if repaired.mended else f'not repaired: {repaired.why}'}"


def partition_view(partition: PartitionStanding, figures: Figures) -> dict[str, Any]:
    """Return a partition as JSON, with its groups and the events that they are behind."""
    return {
        "source": partition.source,
        "partition": partition.partition,
        "epoch": partition.tail.epoch,
        "tail": str(partition.tail),
        "entries": partition.entries,
        "bytes": partition.bytes,
        "indexerFailure": partition.indexer or None,
        "groups": [
            {
                "group": group.group,
                "checkpoint": str(group.checkpoint),
                "behind": group.behind,
                **_events_behind(figures[group.group, partition.partition]),
                "parked": group.parked,
                "blocked": list(map(blocked_view, group.blocked)),
            }
            for group in partition.groups
        ],
    }


def _events_behind(figures: GroupFigures) -> dict[str, Any]:
    return {"events": figures.events, "ofAllEvents": figures.of_all}


def partition_lines(
    partitions: Iterable[PartitionStanding],
    figures: Figures,
    states: Mapping[str, IndexerState],
    poison: Mapping[str, int],
) -> Iterator[str]:
    """Yield lines for each partition, its groups, each indexer, and each source with records set aside."""
    for partition in partitions:
        yield (
            f"{partition.source} {partition.partition}  tail {partition.tail}, its epoch {partition.entries:,} "
            f"entries, {partition.bytes:,} bytes"
        )
        for group in partition.groups:
            lag = "beyond the end: its checkpoint belongs to another index"
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


def _events(index: int | None, end: int | None) -> str:
    if index is None or end is None:
        return ""
    return f"event {index} is" if end == index + 1 else f"events {index} to {end - 1} are"
