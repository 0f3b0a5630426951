"""Timers: what is due and has not fired, how late it is, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import takewhile
from typing import Any, Final

from epochal.console.page import Services, whole
from epochal.deployment import Deployment
from epochal.layout.port import layout_named, partition_of
from epochal.model.events import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds
from epochal.timers.care import coming
from epochal.timers.engine import engine_of
from epochal.timers.items import Armed

MOST: Final = 1_000
"""Timers of each list; reading them takes a read unit for some hundred."""


def show(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What is due, by time and by stream; and what comes next. One that was called off is here until its time."""
    count, table = whole(arguments, "items", 100, MOST), deployment.settings.timers_table
    if not table:
        return {"table": "", "items": count}
    now = from_unix_nanoseconds(services.now())
    engine = engine_of(deployment, table, lambda _: None)
    late = list(takewhile(lambda each: each.due <= now, coming(engine, limit=count + 1)))
    onward = coming(engine, since=Ticks(now + 1), limit=count)
    return {
        "table": table,
        "items": count,
        "more": len(late) > count,
        "late": [_row(deployment, each, now) for each in late[:count]],
        "coming": [_row(deployment, each, now) for each in onward],
        "streams": Counter(each.stream or ", ".join(each.tags) for each in late[:count]).most_common(10),
    }


def _row(deployment: Deployment, timer: Armed, now: Ticks) -> dict[str, Any]:
    """A timer, and where its stream is shown."""
    layout = layout_named(timer.layout)
    partitions = deployment.settings.partitions(layout.partitions)
    return {
        "timer": timer,
        "due": format_ticks(timer.due),
        "late": (now - timer.due) / PER_SECOND,
        "partition": partition_of(timer.stream, partitions, layout.base),
    }
