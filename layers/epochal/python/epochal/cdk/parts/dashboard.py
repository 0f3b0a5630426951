"""The dashboard of a stage: graphs of the alarms' metrics, and of throughput.

    lag           the indexer behind its streams, reactions behind the feed, wake-ups that wait
    throughput    events indexed, notices, rests of the indexer, events handled
    failures      records set aside, streams parked, wake-ups given up, errors
    limits        throttles of tables and functions
    load          units of tables, and conditions that failed because of concurrent writers

It shows the reactions that the stage declares; a reaction in another stack has metrics of the same names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from epochal.cdk.parts.alarms import BEHIND, LATE, metric
from epochal.cdk.parts.resource_names import function_of, queue_of
from epochal.cdk.stages import Stage
from epochal.layout.tables import TIMERS

TAKEN = (
    ("Write units", "ConsumedWriteCapacityUnits"),
    ("Read units", "ConsumedReadCapacityUnits"),
    ("Conditions that failed", "ConditionalCheckFailedRequests"),
)
"""Titles and metrics of the load of tables; `epochal console` plots the same under the same titles."""

INDEXED = ("events", "healed", "pruned", "setAside")
"""Metrics that the indexer counts."""


def dashboard(
    scope: Construct, stage: Stage, *, functions: Sequence[str], tables: Mapping[str, dynamodb.ITableV2]
) -> cloudwatch.Dashboard:
    """Make the dashboard of a stage, named after it.

    Args:
        functions: functions of the stage.
        tables: tables of the stage by their kinds.
    """
    names_by_function = {function: stage.named(function) for function in functions}
    reactions = {reaction: stage.named(function_of(reaction)) for reaction in reacting(stage)}
    timers = {TIMERS.kind: stage.named(TIMERS.kind)} if stage.timers else {}
    waiting = {reaction: queue_of(stage, reaction) for reaction in reactions}
    given_up = {reaction: queue_of(stage, reaction, failed=True) for reaction in reactions}
    kinds = {kind: table.table_name for kind, table in tables.items()}
    indexed = [
        metric("Epochal", f"Indexed.{measure}", stage.named("indexer"), label=measure) for measure in INDEXED
    ]
    parked = [
        metric("Epochal", f"Reaction.{what}", place, label=f"{name} {what}")
        for name, place in reactions.items()
        for what in ("parked", "blocked")
    ]
    throttled = [
        metric("AWS/DynamoDB", f"{what}ThrottleEvents", name, label=f"{kind} {what.lower()}s")
        for kind, name in kinds.items()
        for what in ("Read", "Write")
    ]
    indexer = {"indexer": stage.named("indexer")}
    age, depth = "ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"
    rows = [
        [
            _graph("Behind the stream, ms", _each("AWS/Lambda", "IteratorAge", indexer, "Maximum")),
            _graph("Indexed", indexed),
            _graph("Notices", _each("Epochal", "Notified", {"published": indexer["indexer"]})),
            _graph("Indexer's rests, ms", _each("Epochal", "Indexer.rest", {"rests": indexer["indexer"]})),
        ],
        [
            _graph("Reactions behind the feed, ms", _each(*BEHIND, reactions, "Maximum")),
            _graph("Handled", _each("Epochal", "Reaction.handled", reactions)),
            _graph("Parked and blocked", parked),
            _graph("Wake-ups given up", _each("AWS/SQS", depth, given_up, "Maximum")),
        ],
        [
            _graph("Wake-ups waiting, s", _each("AWS/SQS", age, waiting, "Maximum")),
            _graph("Errors", _each("AWS/Lambda", "Errors", names_by_function)),
            _graph("Functions throttled", _each("AWS/Lambda", "Throttles", names_by_function)),
            _graph("Tables throttled", throttled),
        ],
        [_graph(title, _each("AWS/DynamoDB", name, kinds)) for title, name in TAKEN],
        [
            _graph("Timers fired", _each("Epochal", "Timers.fired", timers)),
            _graph("Timers late, ms", _each(*LATE, timers, "Maximum")),
        ],
    ]
    return cloudwatch.Dashboard(
        scope,
        "Dashboard",
        dashboard_name=stage.named(""),
        widgets=[graphs for row in rows if (graphs := [graph for graph in row if graph is not None])],
    )


def reacting(stage: Stage) -> list[str]:
    """Return the names of reactions that are deployed with the stage, that of timers included."""
    return sorted([*stage.reactions, *([TIMERS.kind] if stage.timers else [])])


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget | None:
    """Make a graph of metrics; None without metrics, since CloudWatch refuses such a graph."""
    return cloudwatch.GraphWidget(title=title, left=[*metrics], width=6) if metrics else None


def _each(
    namespace: str, name: str, subjects: Mapping[str, str], statistic: str = "Sum"
) -> list[cloudwatch.Metric]:
    """Return a metric of each resource, labelled by the keys of `subjects`.

    Args:
        subjects: names of the resources by label.
    """
    return [
        metric(namespace, name, subject, statistic=statistic, label=label)
        for label, subject in subjects.items()
    ]
