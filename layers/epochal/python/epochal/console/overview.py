"""What goes on: the latest events, how late the feed and the reactions are, what waits for somebody, and the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from epochal.care.activity import Arrival, arrivals
from epochal.care.status import PartitionStanding, standings
from epochal.console.health import set_aside
from epochal.console.reactions import oldest
from epochal.console.services import Services
from epochal.deployment import Deployment
from epochal.feed.latest import before
from epochal.model.times import parse_time, unix_seconds

LATEST: Final = 15
"""Events that are shown, and entries that are read of each partition to find them."""

GROUPS: Final = 8
"""That are looked at here: each takes a read of every partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestEvent:
    """An event that is in the index, and when it came there, in seconds since 1970."""

    seconds: float
    source: str
    partition: int
    stream: str
    index: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """A group in all partitions: entries that it is behind, seconds since the oldest came, streams that it parked.

    Attributes:
        behind: None where a checkpoint is beyond the end of its partition.
    """

    group: str
    behind: int | None
    oldest: float | None
    parked: int


def show(services: Services, deployment: Deployment, _: Mapping[str, str]) -> dict[str, Any]:
    """The newest entries of each partition, the groups that are known, records set aside, and the sizes of tables."""
    table, groups = deployment.settings.index_table, services.groups()
    found = list(standings(deployment.driver, table, groups[:GROUPS]))
    arrived = {
        at.partition: list(
            arrivals(deployment.driver, table, at.partition, before(at.tail, LATEST) if at.tail else at.tail)
        )[-LATEST:]
        for at in found
    }
    late = {at.partition: _late(deployment, at.partition, arrived[at.partition]) for at in found}
    return {
        "events": _latest(found, arrived),
        "partitions": [(at, late[at.partition]) for at in found],
        "late": max((each for each in late.values() if each is not None), default=None),
        "groups": _lags(services, deployment, found),
        "beyond": max(0, len(groups) - GROUPS),
        "prefix": services.prefix,
        "aside": {each.name: set_aside(deployment, each) for each in deployment.sources} if found else {},
        "tables": _tables(services, deployment),
    }


def _latest(found: Iterable[PartitionStanding], arrived: Mapping[int, list[Arrival]]) -> list[LatestEvent]:
    """Those that came last of all partitions, newest first."""
    events = [
        LatestEvent(
            seconds=arrival.seconds,
            source=at.source,
            partition=at.partition,
            stream=span.stream,
            index=span.index + offset,
            type=type_,
        )
        for at in found
        for arrival in arrived[at.partition]
        for span in arrival.spans
        for offset, type_ in enumerate(span.types)
    ]
    events.sort(key=lambda each: each.seconds)  # of one time, in the order of their partition
    return events[: -LATEST - 1 : -1]


def _late(deployment: Deployment, partition: int, arrived: list[Arrival]) -> float | None:
    """Seconds from the newest event's append until it was indexed; None where there is none, or it is gone."""
    if not arrived or not arrived[-1].spans:
        return None
    span = arrived[-1].spans[-1]
    (event,) = deployment.feed.events(partition, span.stream, span.next - 1, span.next, fetch=False)
    if not event.timestamp:
        return None
    return max(0.0, arrived[-1].seconds - unix_seconds(parse_time(event.timestamp)))


def _lags(services: Services, deployment: Deployment, found: Iterable[PartitionStanding]) -> list[GroupLag]:
    now = services.now() / 1e9
    rows: dict[str, list[tuple[int | None, float | None, int]]] = {}
    for at in found:
        for each in at.groups:
            age = oldest(deployment, at, each, now)
            rows.setdefault(each.group, []).append((each.behind, age, each.parked))
    return [
        GroupLag(
            group=group,
            behind=None if any(behind is None for behind, _, _ in each) else sum(row[0] or 0 for row in each),
            oldest=max((age for _, age, _ in each if age is not None), default=None),
            parked=sum(parked for _, _, parked in each),
        )
        for group, each in rows.items()
    ]


def _tables(services: Services, deployment: Deployment) -> list[tuple[str, str, int]]:
    """Kind, name and bytes of each table whose size is known."""
    kinds = deployment.settings.kinds
    return [(kinds.get(name, ""), name, size) for name, size in services.bytes_of_tables().items()]
