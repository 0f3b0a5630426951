"""Reactions: how far their groups are behind, and what they have parked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from epochal.care.activity import arrivals
from epochal.care.status import GroupStanding, PartitionStanding, groups_of, standings
from epochal.console.parked import parking_of
from epochal.console.plots import Plot, clock, plot
from epochal.console.services import Services
from epochal.deployment import Deployment
from epochal.errors import BeyondTheEnd
from epochal.reactions.parking import ParkedStream


def show(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The groups that `group` names, with commas, or those that are known; with `find`, all that there are, which reads
    the whole index table.
    """
    table = deployment.settings.index_table
    named = [each.strip() for each in arguments.get("group", "").split(",") if each.strip()]
    finding = "find" in arguments
    groups = groups_of(deployment.driver, table) if finding else named or services.groups()
    found = list(standings(deployment.driver, table, groups)) if groups else []
    rows = [(each, group) for each in found for group in each.groups]
    now = services.now() / 1e9
    return {
        "group": ", ".join(groups),
        "rows": [(at, group, oldest(deployment, at, group, now)) for at, group in rows],
        "plots": _plots(services, [group for _, group in rows], now),
        "parked": _parked(deployment, rows),
        "known": not named and not finding,
        "finding": finding,
    }


def oldest(deployment: Deployment, at: PartitionStanding, group: GroupStanding, now: float) -> float | None:
    """Seconds since the first entry was written that the group has not handled; None where there is none."""
    if not group.behind:
        return None
    table = deployment.settings.index_table
    try:
        first = next(arrivals(deployment.driver, table, at.partition, group.checkpoint), None)
    except BeyondTheEnd:  # the index has been rebuilt since
        return None
    return None if first is None else max(0.0, now - first.seconds)


def _plots(services: Services, groups: list[GroupStanding], now: float) -> list[Plot]:
    """Of each group that was looked at more than once, how far it was behind."""
    behind = Counter[str]()
    for each in groups:
        behind[each.group] += each.behind or 0
    looks = {name: services.lags.add(name, now, entries) for name, entries in behind.items()}
    return [
        plot(f"Entries that {name} was behind", [(clock(at), entries) for at, entries in seen])
        for name, seen in looks.items()
        if len(seen) > 1
    ]


def _parked(
    deployment: Deployment, rows: list[tuple[PartitionStanding, GroupStanding]]
) -> dict[str, list[ParkedStream]]:
    parked: dict[str, list[ParkedStream]] = {}
    for at, group in rows:
        if group.parked:
            found = parking_of(deployment, group.group).streams(at.partition)
            parked.setdefault(group.group, []).extend(found)
    return parked
