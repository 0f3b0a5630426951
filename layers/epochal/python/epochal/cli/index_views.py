"""What commands on the index print: a line for people, a document for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from epochal.care.quarantined import PoisonRecord
from epochal.care.status import PartitionStanding
from epochal.care.verify import Repaired
from epochal.index.chain_check import Finding, Kind

SENTENCES: Final = MappingProxyType[Kind, str](
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
    said = SENTENCES[found.kind].format(
        events=_events(found.index, found.end), index=found.index, end=found.end, at=found.at
    )
    cause = f" ({found.cause})" if found.cause else ""
    return f"{place}{stream}: {said}{cause}"


def repaired(done: Repaired) -> dict[str, Any]:
    """What became of a finding, as JSON."""
    return finding(done.finding) | {"mended": done.mended} | ({} if done.mended else {"why": done.why})


def repaired_line(done: Repaired) -> str:
    """What became of a finding."""
    return f"{finding_line(done.finding)}: {'mended' if done.mended else f'left: {done.why}'}"


def standing(found: PartitionStanding) -> dict[str, Any]:
    """A partition as JSON."""
    return {
        "source": found.source,
        "partition": found.partition,
        "epoch": found.tail.epoch,
        "tail": str(found.tail),
        "entries": found.entries,
        "bytes": found.bytes,
        "groups": [
            {
                "group": each.group,
                "checkpoint": str(each.checkpoint),
                "behind": each.behind,
                "parked": each.parked,
            }
            for each in found.groups
        ],
    }


def standing_lines(found: Sequence[PartitionStanding], poison: Mapping[str, int]) -> Iterator[str]:
    """Partitions, each with its groups; then what waits."""
    for each in found:
        yield (
            f"{each.source} {each.partition}  tail {each.tail}, its epoch {each.entries:,} entries, "
            f"{each.bytes:,} bytes"
        )
        for group in each.groups:
            behind = (
                "beyond the end: of another index" if group.behind is None else f"{group.behind:,} behind"
            )
            parked = f", {group.parked:,} streams parked" if group.parked else ""
            yield f"  {group.group}  at {group.checkpoint}, {behind}{parked}"
    for source, count in sorted(poison.items()):
        yield f"{source}  {count:,} records set aside, see epochal index poison list"


def poison(record: PoisonRecord) -> dict[str, Any]:
    """A record that was set aside, as JSON."""
    return {
        "source": record.source,
        "index": record.index,
        "since": record.since,
        "cause": record.cause,
        "key": {name: next(iter(value.values())) for name, value in record.key.items()},
        "outcome": record.outcome,
    }


def poison_line(record: PoisonRecord) -> str:
    """A record that was set aside."""
    key = " ".join(str(value) for value in poison(record)["key"].values())
    return f"{record.source} {record.index}  {record.since[:19]}  {key}: {record.cause} ({record.outcome or 'waits'})"


def _events(index: int | None, end: int | None) -> str:
    if index is None or end is None:
        return ""
    return f"event {index} is" if end == index + 1 else f"events {index} to {end - 1} are"
