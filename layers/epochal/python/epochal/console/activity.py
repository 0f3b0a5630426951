"""How much happens: events a minute, as the index noted them, and what CloudWatch has counted, when it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from epochal.care.activity import arrivals
from epochal.console.plots import Plot, clock, over_time
from epochal.console.services import Services
from epochal.console.show import whole
from epochal.deployment import Deployment
from epochal.dynamo.cloudwatch import Metric
from epochal.feed.latest import before
from epochal.layout.registry import layouts_in

READ: Final = 500
MOST: Final = 10_000
"""Entries of each partition that are read."""

MINUTE: Final = 60
MINUTES: Final = 60
"""That a plot of the index goes back."""

PLOTTED: Final = (
    ("Write units", "ConsumedWriteCapacityUnits"),
    ("Read units", "ConsumedReadCapacityUnits"),
    ("Conditions that failed", "ConditionalCheckFailedRequests"),
)
"""Of DynamoDB's metrics of all tables; a stage's dashboard has them under the same titles."""

PERIOD: Final = 5 * MINUTE
PERIODS: Final = 36
"""That a plot of CloudWatch's goes back: three hours."""


def show(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Events a minute from the last entries of each partition; with `metrics`, what CloudWatch says besides."""
    count = whole(arguments, "items", READ, MOST)
    events, since = _events(deployment, count)
    plotted = over_time("Events a minute", events, MINUTE, MINUTES)
    asked = "metrics" in arguments and services.measure is not None
    return {
        "items": count,
        "more": min(10 * count, MOST),
        "events": plotted,
        "since": None if since is None else clock(since),
        "measured": _measured(services, deployment) if asked else None,
        "metrics": len(_asked(deployment)) if services.measure is not None else 0,
        "besides": "1 request to CloudWatch" if asked else "",
    }


def _events(deployment: Deployment, count: int) -> tuple[dict[float, float], float | None]:
    """Events by minute, and from when on they are complete: a partition may have more than was read of it."""
    found: Counter[float] = Counter()
    complete: list[float] = []
    table = deployment.settings.index_table
    for at in deployment.feed.partitions():
        start = before(at.tail, count)
        arrived = list(arrivals(deployment.driver, table, at.partition, start))[-count:]
        for each in arrived:
            found[each.seconds // MINUTE * MINUTE] += each.events
        if arrived and (start > 0 or len(arrived) == count):
            complete.append(arrived[0].seconds)
    since = max(complete, default=None)
    whole_minutes = {
        at: float(events) for at, events in found.items() if since is None or at > since - MINUTE
    }
    return whole_minutes, since


def _metrics(deployment: Deployment) -> list[tuple[str, list[Metric]]]:
    """What is plotted, and the metrics that it is the sum of."""
    settings = deployment.settings
    tables = [settings.value(each.table) for each in layouts_in(settings)] + [settings.index_table]

    def of_tables(name: str) -> list[Metric]:
        return [
            Metric(namespace="AWS/DynamoDB", name=name, dimensions={"TableName": table}) for table in tables
        ]

    return [(title, of_tables(name)) for title, name in PLOTTED]


def _asked(deployment: Deployment) -> list[Metric]:
    return [metric for _, metrics in _metrics(deployment) for metric in metrics]


def _measured(services: Services, deployment: Deployment) -> list[Plot]:
    """A plot of each that has values, by five minutes."""
    if services.measure is None:
        return []
    end = services.now() / 1e9
    answers = iter(services.measure(_asked(deployment), end - PERIOD * PERIODS, end, PERIOD))
    plots = []
    for title, metrics in _metrics(deployment):
        sums: Counter[float] = Counter()
        for _ in metrics:
            sums.update(next(answers))
        plots.append(over_time(f"{title}, by five minutes", sums, PERIOD, PERIODS))
    return [each for each in plots if each.bars]
