"""Reactions: how far their groups are behind, and what they have parked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochal.care.status import groups_of, standings
from epochal.console.parked import parking_of
from epochal.deployment import Deployment
from epochal.layout.registry import layout_of
from epochal.reactions.parking import ParkedStream


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The groups that `group` names, with commas; with `find`, all of them, which reads the whole index table."""
    table = deployment.settings.index_table
    named = [each.strip() for each in arguments.get("group", "").split(",") if each.strip()]
    groups = groups_of(deployment.driver, table) if "find" in arguments else named
    rows = [
        (layout_of(standing.partition).name, standing, group)
        for standing in (standings(deployment.driver, table, groups) if groups else ())
        for group in standing.groups
    ]
    parked: dict[str, list[ParkedStream]] = {}
    for _, at, group in rows:
        if group.parked:
            found = parking_of(deployment, group.group).streams(at.partition)
            parked.setdefault(group.group, []).extend(found)
    return {
        "group": ", ".join(groups),
        "rows": rows,
        "parked": parked,
        "asked": bool(groups or "find" in arguments),
    }
