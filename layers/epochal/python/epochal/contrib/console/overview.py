"""What goes on, whether the index is well, and the feed, a page of a partition at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from epochal.care.arrivals import Arrival, arrivals
from epochal.care.audit_cursor import AuditCursor, read_cursor
from epochal.care.auditor import auditor_of
from epochal.care.heads import ScannedHead, heads_by_partition, read_heads, scan
from epochal.care.quarantined import PoisonRecord, PoisonRecords
from epochal.care.status import PartitionStanding, standings
from epochal.contrib.console.page import Plot, Services, body, clock, over_time, whole
from epochal.contrib.console.reactions import oldest
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.history import FeedItem, PartitionTail
from epochal.feed.whole import before
from epochal.hosting.services import Metric
from epochal.index.checkpoints import parse_place, poison_stream
from epochal.index.epochs import read_series
from epochal.index.tip import load_tip
from epochal.layout.port import Source, layout_of, layouts_in
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import parse_time, unix_seconds

# Whether the index is well, as far as that can be told cheaply: what is on record, what waits, how far audits are.

NOTES: Final = 200
"""Of what was set aside and resolved: with more of them, only their number is told."""

COMPARED: Final = 200
"""Heads that are compared with the index, at most."""

SCANNED: Final = 500
"""Items of a request that looks for heads: keys of idempotency and full pages stand among them."""

SCANS: Final = 4
"""Requests that look for heads, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Of a source.

    Attributes:
        recorded: partitions on record; None where the indexer has never run.
        partitions: that the deployment has.
        notes: records set aside, and resolutions of such, ever.
        waiting: those that nothing has been done about; None where there are too many notes to read them here.
        audit: where the auditor stands.
    """

    source: str
    recorded: int | None
    partitions: int
    notes: int
    waiting: tuple[PoisonRecord, ...] | None
    audit: AuditCursor


def health(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Each source; with `check`, the first heads of that source compared with the index."""
    driver, table = deployment.driver, deployment.settings.index_table
    recorded = driver.run(read_series(table)).partitions
    found = [_health(deployment, each, recorded.get(each.name)) for each in deployment.sources]
    return {"found": found, "checked": _checked(deployment, arguments.get("check", ""))}


def set_aside(deployment: Deployment, source: Source) -> tuple[int, tuple[PoisonRecord, ...] | None]:
    """How many notes there are, and the records that wait; None where there are too many notes to read them here."""
    tip = deployment.driver.run(load_tip(deployment.settings.index_table, poison_stream(source.base)))
    notes = 0 if tip is None else tip.version
    if notes > NOTES:
        return notes, None
    records = PoisonRecords(indexer=deployment.indexer)
    return notes, tuple(each for each in records.waiting() if each.source == source.name) if notes else ()


def _health(deployment: Deployment, source: Source, recorded: int | None) -> Health:
    driver, table = deployment.driver, deployment.settings.index_table
    notes, waiting = set_aside(deployment, source)
    return Health(
        source=source.name,
        recorded=recorded,
        partitions=source.partitions,
        notes=notes,
        waiting=waiting,
        audit=driver.run(read_cursor(table, source.base)),
    )


def _checked(deployment: Deployment, name: str) -> dict[str, Any] | None:
    """How many heads were looked at, and those whose last events the index lacks, or lacks yet."""
    if not name:
        return None
    sources = {each.name: each for each in deployment.sources}
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


# What goes on: the latest events, how late the feed and the reactions are, what waits for somebody, and the tables.

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
        "indexer": services.indexer_states(found),
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


# The feed, a page of a partition at a time: the latest items, or those from a checkpoint on.

WINDOW: Final = 50

READ: Final = 200
"""Items whose bodies are read to look for a text."""


def show_feed(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
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
        removals=True,
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
