"""The feed, a page of a partition at a time, and how much happens in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from epochal.care.status import arrivals
from epochal.console.page import Plot, Services, body, clock, over_time, whole
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.causes import before
from epochal.feed.results import FeedItem, PartitionTail
from epochal.hosting.services import Metric
from epochal.index.checkpoints import parse_place
from epochal.layout.registry import layout_of, layouts_in

# The feed, a page of a partition at a time: the latest items, or those from a checkpoint on.

WINDOW: Final = 50

READ: Final = 200
"""Items whose bodies are read to look for a text."""


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Items of `partition`: the latest, those before the checkpoint `before`, or from `from` on. They are of streams in
    `category`, of `type`, and with `text` in names, data or metadata, whatever its case, where these are named.
    """
    feed = deployment.feed
    tails = {each.partition: each for each in feed.partitions()}
    if not tails:
        return {"tails": {}, "partition": None}
    partition = whole(arguments, "partition", _fullest(tails.values()), 2**31)
    if partition not in tails:
        raise InvalidInput("partition", f"must be one of {', '.join(map(str, tails))}")
    names = ("category", "type", "text", "from", "before")
    category, type_, text, start, end = (arguments.get(each, "").strip() for each in names)
    page = feed.page(
        partition,
        start=parse_place(start or end or "tail"),
        direction="forward" if start else "backward",
        limit=READ if text else WINDOW,
        categories=[category] if category else None,
        predicate=(lambda span: type_ in span.types) if type_ else None,
        data=True,
    )
    found = [each for each in page.items if type_ in ("", each.type)]
    return {
        "tails": tails,
        "layouts": {each: layout_of(each).name for each in tails},
        "partition": partition,
        "category": category,
        "type": type_,
        "text": text,
        "start": start,
        "before": end,
        "items": [each for each in found if _says(each, text.casefold())],
        "looked": len(found),
        "next": page.next if start or not page.at_tail else None,
    }


def _fullest(tails: Iterable[PartitionTail]) -> int:
    """Where a page begins that names no partition: where most has come, not at a layout that nobody uses."""
    return max(tails, key=lambda each: each.tail).partition


def _says(item: FeedItem, text: str) -> bool:
    if not text or text in f"{item.stream} {item.type}".casefold():
        return True
    bodies = (item.event.data, item.event.meta) if item.event is not None else ()
    return any(text in body(each).casefold() for each in bodies if each)


# How much happens: events a minute, as the index noted them, and what CloudWatch has counted, when it is asked.

ENTRIES_READ: Final = 500
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


def show_activity(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Events a minute from the last entries of each partition; with `metrics`, what CloudWatch says besides."""
    count = whole(arguments, "items", ENTRIES_READ, MOST)
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
