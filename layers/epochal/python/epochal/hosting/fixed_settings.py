"""Refuses a deployment that changes settings on which stored events depend.

CloudFormation invokes this check before it changes any function, with the new settings, and in an update also with the
old ones. The rules:

    name                      another name is another store, without what this one holds
    numbers of partitions     are those that the index has on record; an index without a record takes any
    other settings            change as their declarations allow (`broken`), and freely while a layout has no events
    a rollback                is never refused: it brings back what was there
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from epochal.declaration import Setting
from epochal.deployment import Deployment
from epochal.dynamo.aws_errors import translate_errors
from epochal.errors import EpochalError, InvalidInput
from epochal.hosting.first_wakeups import SPARED_SECONDS, patiently
from epochal.index.series import read_series
from epochal.layout.registry import layout_named
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Scan
from epochal.plugins import NATIVE, Layout, layouts, own_settings
from epochal.settings import DECLARED


def fixed(layout: Layout) -> Iterator[Setting]:
    """Return the settings that stored events of a layout depend on, except for the number of partitions."""
    of_tags = DECLARED.values() if layout.name == NATIVE else ()
    return (setting for setting in (*of_tags, *own_settings(layout).values()) if setting.broken is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broken:
    """A rule that a changed setting breaks if the layout has events."""

    layout: str
    setting: str
    rule: str
    now: str


def check_settings(
    now: Mapping[str, Any], before: Mapping[str, Any], deployment: Deployment, seconds: float
) -> None:
    """Raise `InvalidInput` if a deployment's settings do not fit the events that are stored.

    Args:
        now: the properties of the custom resource.
        before: its previous properties; empty for a new resource.
        deployment: deployment whose tables are read.
        seconds: seconds that the function may still take.

    Raises:
        InvalidInput: a setting does not fit.
        EpochalError: the tables cannot be read.
    """
    if before and before["Store"] != now["Store"]:
        rule = (
            f"must stay {before['Store']}: {now['Store']} is another store, which lacks these events. "
            "Add it as an EventStore with another id"
        )
        raise InvalidInput("name", rule)
    broken = [*_changes(now, before)]

    def read() -> tuple[dict[str, int], set[str]]:
        series = deployment.driver.run(read_series(deployment.settings.index_table))
        filled = {
            layout for layout in {layout.layout for layout in broken} if _has_events(deployment, layout)
        }
        return series.partitions, filled

    recorded, filled = patiently(read, seconds - SPARED_SECONDS)
    _check_partitions(now, recorded)
    for setting in broken:
        if setting.layout in filled:
            rule = f"{setting.rule}, not become {setting.now or 'unset'}"
            table = _table(deployment, setting.layout)
            raise InvalidInput(setting.setting, f"{rule}: the table {table} has events that depend on it")


def _changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[_Broken]:
    """Yield the rules that changed settings break, layout by layout."""
    were = before.get("Layouts", {})
    for layout in layouts():
        old, new = (record.get(layout.name, {}).get("Settings", {}) for record in (were, now["Layouts"]))
        for setting in fixed(layout):
            if setting.broken is None or setting.name not in old or setting.name not in new:
                continue
            if rule := setting.broken(old[setting.name], new[setting.name]):
                yield _Broken(layout=layout.name, setting=setting.name, rule=rule, now=new[setting.name])


def _check_partitions(now: Mapping[str, Any], recorded: Mapping[str, int]) -> None:
    """Raise `InvalidInput` if a number of partitions differs from the one that the index has on record."""
    for layout in layouts():
        chosen = now["Layouts"].get(layout.name, {}).get("Partitions", "")
        if chosen and layout.name in recorded and int(chosen) != recorded[layout.name]:
            rule = (
                f"must stay {recorded[layout.name]}, which the index {now['Index']} has on record, not {chosen}: "
                "another number needs a rebuilt index (docs/guide/index-care.md)"
            )
            raise InvalidInput(layout.partitions, rule)


def _has_events(deployment: Deployment, layout: str) -> bool:
    scan = Scan(table=_table(deployment, layout), limit=1)
    return any(page.items for page in deployment.driver.pages(scan))


def _table(deployment: Deployment, layout: str) -> str:
    return deployment.settings.table(layout_named(layout).port.heads.kind)


def is_rolling_back(client: Any, stack: str) -> bool:
    """Return whether CloudFormation is rolling a stack back; False if it does not say.

    Args:
        client: a CloudFormation client.
        stack: id of the stack.
    """
    try:
        with translate_errors("DescribeStacks"):
            (described,) = client.describe_stacks(StackName=stack)["Stacks"]
    except EpochalError:
        return False
    return "ROLLBACK" in described["StackStatus"]
