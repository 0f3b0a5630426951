"""What goes on, whether the index is well, and the feed, a page of a partition at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from epochal.care.arrivals import arrivals
from epochal.care.audit_cursor import AuditCursor, read_cursor
from epochal.care.auditor import auditor_of
from epochal.care.heads import ScannedHead, heads_by_partition, read_heads, scan
from epochal.care.quarantined import PoisonRecord, PoisonRecords
from epochal.care.status import PartitionStanding, standings
from epochal.contrib.console.events_behind import EventsBehind, events_behind, in_all_partitions
from epochal.contrib.console.page import Plot, Services, body, clock, over_time, whole
from epochal.contrib.console.problems import find_problems
from epochal.contrib.console.reactions import oldest
from epochal.deployment import Deployment
from epochal.errors import EventsPruned, InvalidInput, StreamDeleted
from epochal.feed.latest import before
from epochal.feed.results import FeedItem, PartitionTail
from epochal.feed.whole import WholeFeed
from epochal.hosting.services import Metric
from epochal.index.checkpoints import parse_place, poison_stream
from epochal.index.series import read_series
from epochal.index.tip import load_tip
from epochal.layout.registry import layout_of, layouts_in, source_of
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks, parse_time, unix_seconds
from epochal.model.stream_names import TAG_STREAMS
from epochal.pages.frames import time_of
from epochal.plugins import NATIVE

# Whether the index is well, as far as a few reads show: recorded partitions, quarantined records, progress of audits.

NOTES: Final = 200
"""Notes of quarantined and resolved records that are read: of more notes, only the number is shown."""

COMPARED: Final = 200
"""Heads that are compared with the index, at most."""

SCANNED: Final = 500
"""Items of a request that looks for heads: idempotency keys and full pages are among them."""

SCANS: Final = 4
"""Requests that look for heads, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Health of a source: its partitions, quarantined records, and the auditor's progress.

    Attributes:
        source: name of the source.
        recorded: number of partitions on record; None where the indexer has never run.
        partitions: number of partitions that the deployment has.
        notes: number of notes ever made of quarantined records and their resolutions.
        waiting: records that nothing has been done about; None where there are too many notes to read them here.
        audit: cursor of the auditor.
    """

    source: str
    recorded: int | None
    partitions: int
    notes: int
    waiting: tuple[PoisonRecord, ...] | None
    audit: AuditCursor


def health(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the health of each source; with `check`, compare that source's heads with the index."""
    driver, table = deployment.driver, deployment.settings.index_table
    recorded = driver.run(read_series(table)).partitions
    sources_health = [_health(deployment, source, recorded.get(source.name)) for source in deployment.sources]
    return {"found": sources_health, "checked": _checked(deployment, arguments.get("check", ""))}


def read_quarantine(deployment: Deployment, source: Source) -> tuple[int, tuple[PoisonRecord, ...] | None]:
    """Return the number of a source's quarantine notes, and its waiting records or None.

    The records are None where there are more than `NOTES` notes, too many to read here.
    """
    tip = deployment.driver.run(load_tip(deployment.settings.index_table, poison_stream(source.base)))
    notes = 0 if tip is None else tip.version
    if notes > NOTES:
        return notes, None
    records = PoisonRecords(indexer=deployment.indexer)
    return notes, tuple(
        record for record in records.waiting() if record.source == source.name
    ) if notes else ()


def _health(deployment: Deployment, source: Source, recorded: int | None) -> Health:
    """Read the health of a source, whose number of recorded partitions is `recorded`."""
    driver, table = deployment.driver, deployment.settings.index_table
    notes, waiting = read_quarantine(deployment, source)
    return Health(
        source=source.name,
        recorded=recorded,
        partitions=source.partitions,
        notes=notes,
        waiting=waiting,
        audit=driver.run(read_cursor(table, source.base)),
    )


def _checked(deployment: Deployment, name: str) -> dict[str, Any] | None:
    """Return the number of a source's first heads, and those late in the index; None without a source.

    The index may lack the last events of a head, or not have them yet. None where no source is named.

    Raises:
        InvalidInput: the deployment has no source of this name.
    """
    if not name:
        return None
    sources = {source.name: source for source in deployment.sources}
    if name not in sources:
        raise InvalidInput("check", f"must be one of {', '.join(sources)}")
    source = sources[name]
    heads, after = list[ScannedHead](), None
    for _ in range(SCANS):
        page = deployment.driver.ask(replace(scan(source, after=after, consistent=False), limit=SCANNED))
        heads += read_heads(source, page.items)
        after = page.last
        if after is None or len(heads) >= COMPARED:
            break
    every = after is None and len(heads) <= COMPARED
    heads = heads[:COMPARED]
    late = [
        behind
        for number, mine in heads_by_partition(source, heads).items()
        for behind in auditor_of(deployment.settings, deployment.driver).mender.behind(source, number, mine)
    ]
    return {"source": name, "heads": len(heads), "late": late, "all": every}


# The latest events, the lag of the feed and the reactions, quarantined records, and the tables.

LATEST: Final = 15
"""Events that are shown."""

CHANGES_KEPT_SECONDS: Final = 24 * 3600
"""Seconds for which a table's stream keeps its changes."""

GROUPS: Final = 8
"""Groups that the overview shows, at most: each takes a read of every partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestEvent:
    """An event in the index; `seconds` is the time of its indexing in seconds since 1970."""

    seconds: float
    source: str
    partition: int
    stream: str
    index: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """Lag of a group in all partitions: events behind, age of the oldest one, parked streams.

    Attributes:
        behind: number of events that the group is behind; None where a checkpoint is beyond the end of its partition.
        oldest: seconds since the oldest unhandled event was indexed; None where there is none.
        parked: number of streams that the group has parked.
    """

    group: str
    behind: EventsBehind | None
    oldest: float | None
    parked: int


def show(services: Services, deployment: Deployment, _: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the overview: problems, latest events, lags of groups, table sizes."""
    table, groups = deployment.settings.index_table, services.groups()
    partitions = list(standings(deployment.driver, table, groups[:GROUPS]))
    late = {partition.partition: _late(deployment, partition) for partition in partitions}
    newest = max((seconds for seconds in late.values() if seconds is not None), default=None)
    lags, indexer = _lags(services, deployment, partitions), services.indexer_states(partitions)
    aside = (
        {source.name: read_quarantine(deployment, source) for source in deployment.sources}
        if partitions
        else {}
    )
    return {
        "problems": find_problems(
            indexer=indexer[0],
            partitions=partitions,
            oldest={lag.group: lag.oldest for lag in lags},
            late=newest,
            aside=aside,
        ),
        "events": _latest(deployment, partitions),
        "partitions": [(partition, late[partition.partition]) for partition in partitions],
        "indexer": indexer,
        "late": newest,
        "groups": lags,
        "beyond": max(0, len(groups) - GROUPS),
        "prefix": services.prefix,
        "dated": any(late[standing.partition] is None and standing.tail for standing in partitions),
        "tables": _tables(services, deployment),
    }


def _latest(deployment: Deployment, partitions: Iterable[PartitionStanding]) -> list[LatestEvent]:
    """Return the latest events of all partitions, newest first, at most `LATEST`."""
    tails = {standing.partition: standing.tail for standing in partitions}
    return [
        LatestEvent(
            seconds=unix_seconds(Ticks(entry.ticks)) if entry.ticks else 0.0,
            source=source_of(entry.partition),
            partition=entry.partition,
            stream=item.stream,
            index=item.index,
            type=item.type,
        )
        for entry, item in WholeFeed(deployment.feed).latest(LATEST, tails)
    ]


def _late(deployment: Deployment, standing: PartitionStanding) -> float | None:
    """Return the seconds that the newest append took until it was indexed; None if unknown.

    They are unknown where there is no event, or it has been removed. In layouts that do not store when an append was
    made, the time of the event counts, and they are unknown where it is of its own, as that of imported events:
    DynamoDB keeps a change for a day, so no event comes to the feed later than that after its append.
    """
    partition, start = standing.partition, before(standing.tail, 1) if standing.tail else standing.tail
    arrived = list(arrivals(deployment.driver, deployment.settings.index_table, partition, start))
    if not arrived or not arrived[-1].spans:
        return None
    span = arrived[-1].spans[-1]
    (event,) = deployment.feed.events(partition, span.stream, span.index, span.index + 1, fetch=False)
    if not event.timestamp:
        return None
    appended = max(parse_time(event.timestamp), _append_time(deployment, partition, span.stream, span.index))
    seconds = arrived[-1].seconds - unix_seconds(appended)
    return max(0.0, seconds) if seconds <= CHANGES_KEPT_SECONDS else None


def _append_time(deployment: Deployment, partition: int, stream: str, index: int) -> Ticks:
    """Return when the append that begins with an event was made, from its stamp; 0 if that is not stored."""
    if layout_of(partition).name != NATIVE or stream.startswith(TAG_STREAMS):
        return Ticks(0)
    with suppress(EventsPruned, StreamDeleted):
        for event in deployment.streams.page(stream, start=index, limit=1, fetch=False).events:
            return Ticks(0) if event.append_id is None else time_of(event.append_id)
    return Ticks(0)


def _lags(
    services: Services, deployment: Deployment, standings: Iterable[PartitionStanding]
) -> list[GroupLag]:
    """Return the lag of each group over all partitions of the standings."""
    now = services.now() / 1e9
    partitions = list(standings)
    counts = events_behind(services, deployment.groups, partitions)
    rows: dict[str, list[tuple[int | None, float | None, int]]] = {}
    for partition in partitions:
        for standing in partition.groups:
            count = counts[standing.group, partition.partition].count
            age = oldest(deployment, partition, standing, now) if count else None
            rows.setdefault(standing.group, []).append((standing.behind, age, standing.parked))
    return [
        GroupLag(
            group=group,
            behind=None if any(behind is None for behind, _, _ in row) else in_all_partitions(counts, group),
            oldest=max((age for _, age, _ in row if age is not None), default=None),
            parked=sum(parked for _, _, parked in row),
        )
        for group, row in rows.items()
    ]


def _tables(services: Services, deployment: Deployment) -> list[tuple[str, str, int]]:
    """Return the kind, the name and the bytes of each table whose size is known."""
    kinds = deployment.settings.kinds
    return [(kinds.get(name, ""), name, size) for name, size in services.bytes_of_tables().items()]


# The feed, a page of a partition at a time: the latest items, or those from a checkpoint on.

WINDOW: Final = 50

READ: Final = 200
"""Items whose bodies are read to look for a text."""


def show_feed(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of feed items of a partition, filtered by category, type and text.

    The page begins at the checkpoint `from`, or ends at the checkpoint `before`; without either it has the latest
    items. `text` is looked for in names, data and metadata, whatever its case.

    Raises:
        InvalidInput: the deployment has no such partition.
    """
    feed = deployment.feed
    tails = {tail.partition: tail for tail in feed.partitions()}
    if not tails:
        return {"tails": {}, "partition": None}
    partition = whole(arguments, "partition", _fullest(tails.values()), 2**31)
    if partition not in tails:
        raise InvalidInput("partition", f"must be one of {', '.join(map(str, tails))}")
    names = ("category", "type", "text", "from", "before")
    category, type_, text, start, end = (arguments.get(name, "").strip() for name in names)
    page = feed.page(
        partition,
        start=parse_place(start or end or "tail"),
        direction="forward" if start else "backward",
        limit=READ if text else WINDOW,
        categories=[category] if category else None,
        predicate=(lambda span: type_ in span.types) if type_ else None,
        data=True,
        removals=True,
    )
    items = [item for item in page.items if type_ in ("", item.type)]
    return {
        "tails": tails,
        "layouts": {tail: layout_of(tail).name for tail in tails},
        "partition": partition,
        "category": category,
        "type": type_,
        "text": text,
        "start": start,
        "before": end,
        "items": [item for item in items if _says(item, text.casefold())],
        "looked": len(items),
        "next": page.next if start or not page.at_tail else None,
    }


def _fullest(tails: Iterable[PartitionTail]) -> int:
    """Return the partition with the most entries, which a page shows if it names no partition.

    The first partition might be of a layout that nobody uses.
    """
    return max(tails, key=lambda tail: tail.tail).partition


def _says(item: FeedItem, text: str) -> bool:
    """Whether the names or bodies of an item contain a lower-case text; True for an empty one."""
    if not text or text in f"{item.stream} {item.type}".casefold():
        return True
    bodies = (item.event.data, item.event.meta) if item.event is not None else ()
    return any(text in body(stored).casefold() for stored in bodies if stored)


# Activity: events a minute by the time of their indexing and, on request, sums of CloudWatch's metrics.

ENTRIES_READ: Final = 500
MOST: Final = 10_000
"""Entries of each partition that are read, by default and at most."""

MINUTE: Final = 60
MINUTES: Final = 60
"""Minutes that a plot of the index goes back."""

PLOTTED: Final = (
    ("Write units", "ConsumedWriteCapacityUnits"),
    ("Read units", "ConsumedReadCapacityUnits"),
    ("Conditions that failed", "ConditionalCheckFailedRequests"),
)
"""Titles and DynamoDB metrics that are plotted; a stage's dashboard has the same titles."""

PERIOD: Final = 5 * MINUTE
PERIODS: Final = 36
"""Periods that a plot of CloudWatch's metrics goes back: three hours."""


def show_activity(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return plots of events a minute and, with `metrics`, of CloudWatch's metrics."""
    count = whole(arguments, "items", ENTRIES_READ, MOST)
    events, since = _events(deployment, count)
    plotted = over_time("Events a minute", events, MINUTE, MINUTES)
    asks_cloudwatch = "metrics" in arguments and services.measure is not None
    return {
        "items": count,
        "more": min(10 * count, MOST),
        "events": plotted,
        "since": None if since is None else clock(since),
        "measured": _measured(services, deployment) if asks_cloudwatch else None,
        "metrics": len(_asked(deployment)) if services.measure is not None else 0,
        "besides": "1 request to CloudWatch" if asks_cloudwatch else "",
    }


def _events(deployment: Deployment, count: int) -> tuple[dict[float, float], float | None]:
    """Return event counts by minute, and the time in seconds from which they are complete.

    A partition may have more than the `count` entries that are read of it. The time is None where none has.
    """
    counts: Counter[float] = Counter()
    complete: list[float] = []
    table = deployment.settings.index_table
    for tail in deployment.feed.partitions():
        start = before(tail.tail, count)
        arrived = list(arrivals(deployment.driver, table, tail.partition, start))[-count:]
        for item in arrived:
            counts[item.seconds // MINUTE * MINUTE] += item.events
        if arrived and (start > 0 or len(arrived) == count):
            complete.append(arrived[0].seconds)
    since = max(complete, default=None)
    whole_minutes = {
        second: float(events) for second, events in counts.items() if since is None or second > since - MINUTE
    }
    return whole_minutes, since


def _metrics(deployment: Deployment) -> list[tuple[str, list[Metric]]]:
    """Return the title of each plot with the CloudWatch metrics that it sums, one for each table."""
    settings = deployment.settings
    tables = [settings.value(layout.table) for layout in layouts_in(settings)] + [settings.index_table]

    def of_tables(name: str) -> list[Metric]:
        return [
            Metric(namespace="AWS/DynamoDB", name=name, dimensions={"TableName": table}) for table in tables
        ]

    return [(title, of_tables(name)) for title, name in PLOTTED]


def _asked(deployment: Deployment) -> list[Metric]:
    return [metric for _, metrics in _metrics(deployment) for metric in metrics]


def _measured(services: Services, deployment: Deployment) -> list[Plot]:
    """Return the plots of CloudWatch's metrics that have values, in periods of five minutes."""
    if services.measure is None:
        return []
    end = services.now() / 1e9
    answers = iter(services.measure(_asked(deployment), end - PERIOD * PERIODS, end, PERIOD))
    plots = []
    for title, metrics in _metrics(deployment):
        sums: Counter[float] = Counter()
        for _ in metrics:
            sums.update(next(answers))
        plots.append(over_time(f"{title}, per five minutes", sums, PERIOD, PERIODS))
    return [plot for plot in plots if plot.bars]
