"""Reactions: how far their groups are behind, and what they have parked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochal.care.status import groups_of, standings
from epochal.deployment import Deployment
from epochal.layout.registry import layout_of
from epochal.reactions.group_member import Member
from epochal.reactions.parking import ParkedStream, Parking
from epochal.reactions.reaction import Delivery, Reaction
from epochal.reactions.reactor import Reactor


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
    parked = {
        name: _parked(deployment, name) for name in {group.group for _, _, group in rows if group.parked}
    }
    return {
        "group": ", ".join(groups),
        "rows": rows,
        "parked": parked,
        "asked": bool(groups or "find" in arguments),
    }


def _parked(deployment: Deployment, group: str) -> list[ParkedStream]:
    reader = deployment.feed
    parking = Parking(
        reactor=Reactor(member=Member(reaction=Reaction(name=group, handler=_never), reader=reader))
    )
    return [each for at in reader.partitions() for each in parking.streams(at.partition)]


def _never(_: Delivery) -> None:
    raise RuntimeError("the console handles nothing")
