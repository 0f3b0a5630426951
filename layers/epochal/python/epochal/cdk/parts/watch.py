"""A dashboard, and alarms from the first deployment on, which tell operators of failures before users do.

    the feed lags            the indexer's last record is minutes old
    a record was set aside   the record cannot be indexed; an operator decides
    records were given up    the failure destination got a record, or could not be reached
    changes wait             Kinesis throttles the tables' changes, or DynamoDB is late with them, or gave some up
    a function failed        handlers answer every foreseen failure, so an error is a fault of code or configuration
    a replica lags           a second region is further behind than usual
    something throttled      functions or tables at a limit: the stage's, or the account's
    the API answers 5xx      as a share of requests: one in a million is no reason to wake anyone

What to do about each is in docs/runbook.md.

Metrics name mappings and the gateway by ids that AWS chooses, which change whenever these are made anew. So their
alarms are in the same stack and update: in another stack they would watch a deleted resource until that stack is
deployed as well. All other resources have names that stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from epochal.cdk.parts.alarms import LAG_SECONDS, LASTING, MINUTE, ONCE, Alarms, metric, watch_function
from epochal.cdk.parts.api import FUNCTIONS, Api
from epochal.cdk.parts.dashboard import dashboard, reacting
from epochal.cdk.parts.feed import Feed
from epochal.cdk.parts.resource_names import changes_of, function_of
from epochal.cdk.parts.stores import Stores
from epochal.cdk.stages import Stage
from epochal.layout.tables import TIMERS
from epochal.plan.tables import TableSpec

FAILING_PERCENT: Final = 1
"""Percentage of 5xx answers that raises an alarm. Clients retry these, so that few users notice less."""

TIMED: Final = ("append", "replay")
"""Functions whose latency may raise an alarm. Requests to `feed` may wait for events, as their callers ask."""

REPLICA_MS: Final = 60_000
"""Lag of a replica that raises an alarm, in milliseconds. A replica is usually a second or two behind."""


class Watch:
    """The alarms and the dashboard of a store, except alarms of reactions, mappings and the API.

    Reactions make their own alarms; `watch_mappings` and `watch_api` make the others.

    Attributes:
        dashboard: the dashboard.
    """

    def __init__(
        self, scope: Construct, *, stage: Stage, stores: Stores, functions: Iterable[str] = FUNCTIONS
    ) -> None:
        """Make the alarms and the dashboard as children of `scope`.

        Args:
            functions: functions of the HTTP API.
        """
        self._stage: Final = stage
        self._alarms: Final = Alarms(scope, stage)
        self._watch_feed()
        if stage.feed_kinesis_shards:
            self._watch_changes([stage.named(kind) for kind in stage.sending()])
        watched = (*functions, "indexer")
        for name in watched:
            watch_function(self._alarms, name, stage.named(name))
        for spec in stage.tables():
            table_name = stores.tables[spec.kind].table_name
            self._watch_table(spec.kind, table_name)
            if spec.indexes:
                self._watch_indexes(spec, table_name)
            if stage.replica_region and not stage.existing(spec.kind):
                self._watch_replica(spec.kind, table_name)
        others = [function_of(name) for name in reacting(stage)] + ([TIMERS.kind] if stage.timers else [])
        self.dashboard: Final = dashboard(scope, stage, functions=(*watched, *others), tables=stores.tables)

    def _watch_feed(self) -> None:
        """Make alarms on the indexer, on records that it set aside, and on notices that failed."""
        self._watch_indexer(self._stage.named("indexer"))
        self._alarms.when(
            "feed-set-aside",
            "Records that can never be indexed were set aside, with the cause.",
            metric("Epochal", "Indexed.setAside", self._stage.named("indexer")),
            minutes=ONCE,
        )
        self._alarms.when(
            "notices-fail",
            "The indexer could not tell reactions: they wake up late.",
            metric("Epochal", "Notified.failed", self._stage.named("indexer")),
            minutes=LASTING,
        )

    def _watch_changes(self, tables: Sequence[str]) -> None:
        """Make alarms on the Kinesis stream of changes and on DynamoDB's delivery to the stream.

        Kinesis does not measure the age of a change that arrives late or never, so that DynamoDB's metrics are needed.

        Args:
            tables: names of the tables that send changes.
        """
        self._alarms.when(
            "changes-throttled",
            "The Kinesis stream takes less than the tables send: it has too few shards.",
            metric("AWS/Kinesis", "WriteProvisionedThroughputExceeded", changes_of(self._stage)),
            minutes=LASTING,
        )
        self._alarms.when(
            "changes-lag",
            "DynamoDB is minutes behind with sending changes to Kinesis.",
            _sent("MAX", "AgeOfOldestUnreplicatedRecord", tables),
            above=LAG_SECONDS * 1_000,
            # DynamoDB measures it every five minutes.
            minutes=(1, 5),
        )
        self._alarms.when(
            "changes-skipped",
            "DynamoDB could not send changes to Kinesis, where they are too large, and goes on without them.",
            _sent("SUM", "FailedToReplicateRecordCount", tables),
            minutes=ONCE,
        )

    def _watch_indexer(self, name: str) -> None:
        """Make alarms on the indexer's lag and on failures that could not be delivered.

        Args:
            name: full name of the function.
        """
        self._alarms.when(
            "feed-lags",
            "The indexer is minutes behind. Is the function throttled or failing?",
            metric("AWS/Lambda", "IteratorAge", name, statistic="Maximum"),
            above=LAG_SECONDS * 1_000,
            minutes=LASTING,
        )
        self._alarms.when(
            "feed-failures-undelivered",
            "Records that the indexer gave up on could not be put into the failures bucket.",
            metric("AWS/Lambda", "DestinationDeliveryFailures", name),
            minutes=ONCE,
        )

    def _watch_table(self, kind: str, table_name: str) -> None:
        """Make alarms on throttled reads and writes of a table."""
        for what in ("Read", "Write"):
            self._alarms.when(
                f"{kind}-{what.lower()}s-throttled",
                f"{what}s of the {kind} table are throttled: a hot stream, or the stage's ceiling.",
                metric("AWS/DynamoDB", f"{what}ThrottleEvents", table_name),
                minutes=LASTING,
                entry=f"table-{what.lower()}s-throttled",
            )

    def _watch_replica(self, kind: str, table_name: str) -> None:
        """Make an alarm on the lag of a table's replica."""
        dimensions = {"TableName": table_name, "ReceivingRegion": self._stage.replica_region}
        self._alarms.when(
            f"{kind}-replica-lags",
            f"The replica of the {kind} table is a minute behind: a failover now would lose that much.",
            metric("AWS/DynamoDB", "ReplicationLatency", dimensions, statistic="Average"),
            above=REPLICA_MS,
            minutes=LASTING,
            entry="table-replica-lags",
        )

    def _watch_indexes(self, spec: TableSpec, table_name: str) -> None:
        """Make one alarm on throttled requests of a table's secondary indexes.

        A throttled index blocks writes to its table, and has metrics of its own.
        """
        counted = {
            f"{what}{number}": metric(
                "AWS/DynamoDB",
                f"{what.capitalize()}ThrottleEvents",
                {"TableName": table_name, "GlobalSecondaryIndexName": index.name},
            )
            for number, index in enumerate(spec.indexes)
            for what in ("read", "write")
        }
        throttled = cloudwatch.MathExpression(
            expression="SUM(METRICS())",
            label="requests throttled by indexes",
            using_metrics=dict(counted),
            period=MINUTE,
        )
        self._alarms.when(
            f"{spec.kind}-indexes-throttled",
            f"Indexes of the {spec.kind} table are throttled: one hot key of theirs, or the stage's ceiling.",
            throttled,
            minutes=LASTING,
            entry="table-indexes-throttled",
        )


def _sent(function: str, measured: str, tables: Sequence[str]) -> cloudwatch.IMetric:
    """Return a metric of DynamoDB's delivery to Kinesis, aggregated over tables by a metrics query.

    A query is needed since the metric has a dimension whose values AWS does not document.
    """
    places = " OR ".join(f"TableName = '{name}'" for name in tables)
    schema = 'SCHEMA("AWS/DynamoDB", DelegatedOperation, TableName)'
    return cloudwatch.MathExpression(
        expression=f"SELECT {function}({measured}) FROM {schema} WHERE {places}",  # noqa: S608  it reads metrics
        label=measured,
        using_metrics={},
        period=MINUTE,
    )


def watch_mappings(scope: Construct, *, stage: Stage, feed: Feed) -> None:
    """Make alarms on records that the feed's mappings give up or drop.

    The alarms are children of `scope`, which must be in the stack of `feed`.
    """
    alarms = Alarms(scope, stage)
    for kind, mapping in feed.mappings.items():
        dimensions = {"EventSourceMappingUUID": mapping.attr_id}
        alarms.when(
            f"feed-gave-up-{kind}",
            f"Records of {kind} were given up on: they are in the failures bucket, with the cause.",
            metric("AWS/Lambda", "OnFailureDestinationDeliveredEventCount", dimensions),
            minutes=ONCE,
            entry="feed-gave-up-table",
        )
        alarms.when(
            f"feed-dropped-{kind}",
            f"Records of {kind} were dropped, and are nowhere to be found.",
            metric("AWS/Lambda", "DroppedEventCount", dimensions),
            minutes=ONCE,
            entry="feed-dropped-table",
        )


def watch_api(scope: Construct, *, stage: Stage, api: Api) -> None:
    """Make an alarm on the API's share of 5xx answers and, if `latency_ms` is set, on slow functions.

    The alarms are children of `scope`, which must be in the stack of `api`.
    """
    failed, requests = _requests(stage, api)
    share = cloudwatch.MathExpression(
        expression=f"100 * {_sum(failed)} / {_sum(requests)}",
        label="requests answered 5xx, %",
        using_metrics={**failed, **requests},
        period=MINUTE,
    )
    alarms = Alarms(scope, stage)
    alarms.when("api-fails", "The HTTP API answers with 5xx.", share, above=FAILING_PERCENT, minutes=LASTING)
    for name in TIMED if stage.latency_ms else ():
        alarms.when(
            f"{name}-slow",
            f"Of a hundred requests to the function {name} one takes longer than {stage.latency_ms:,} ms.",
            metric("AWS/Lambda", "Duration", stage.named(name), statistic="p99"),
            above=stage.latency_ms,
            minutes=LASTING,
            entry="function-slow",
        )


def _requests(stage: Stage, api: Api) -> tuple[dict[str, cloudwatch.IMetric], dict[str, cloudwatch.IMetric]]:
    """Return metrics of an API's failed requests, and of all its requests, as two mappings by id.

    They are metrics of the gateway, or of each function's URL.
    """
    if api.gateway is not None:
        dimensions = {"ApiId": api.gateway.api_id}
        failed = metric("AWS/ApiGateway", "5xx", dimensions)
        return {"failed": failed}, {"requests": metric("AWS/ApiGateway", "Count", dimensions)}

    def of_each(counted: str, name: str) -> dict[str, cloudwatch.IMetric]:
        """Return a metric of each function's URL, by id in an expression."""
        return {
            f"{counted}{number}": metric("AWS/Lambda", name, stage.named(function))
            for number, function in enumerate(api.functions)
        }

    return of_each("failed", "Url5xxCount"), of_each("requests", "UrlRequestCount")


def _sum(names: Iterable[str]) -> str:
    """Return an expression for the sum of metrics, in which a missing value counts as zero.

    With `+` a missing value would make the sum missing.
    """
    first, *others = names
    return f"SUM([{', '.join([first, *others])}])" if others else first
