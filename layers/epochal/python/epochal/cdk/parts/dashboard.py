"""The dashboard of a stage: what the alarms look at, over time, and what they do not: how much passes through.

    how late      the indexer and the notifier behind their streams, reactions behind the feed, wake-ups that wait
    how much      events indexed, notices, events handled
    what failed   records set aside, streams parked, wake-ups given up, errors
    at a ceiling  throttles of tables and functions
    what it takes units of tables, and conditions that failed: writers that were in each other's way

Reactions here are those that the stage declares; one in a stack of one's own has its metrics under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from epochal.cdk.parts.alarms import behind, metric
from epochal.cdk.parts.names import function_of, queue_of
from epochal.cdk.stages import Stage

TAKEN = (
    ("Write units", "ConsumedWriteCapacityUnits"),
    ("Read units", "ConsumedReadCapacityUnits"),
    ("Conditions that failed", "ConditionalCheckFailedRequests"),
)
"""What tables take; `epochal console` plots the same under the same titles."""

INDEXED = ("events", "healed", "pruned", "setAside")
"""What the indexer counts."""


def dashboard(
    scope: Construct, stage: Stage, *, functions: Sequence[str], tables: Mapping[str, dynamodb.ITableV2]
) -> cloudwatch.Dashboard:
    """The dashboard, named after the stage; `functions` are those of the stage, `tables` by their kinds."""
    reactions = sorted(stage.reactions)
    rows = [
        [
            _graph("Behind the stream, ms", [_age(stage, each) for each in ("indexer", "notifier")]),
            _graph("Indexed", [_own(stage, f"Indexed.{each}", "indexer", each) for each in INDEXED]),
            _graph("Notices", [_own(stage, "Notified", "notifier", "published")]),
        ],
        [
            _graph("Reactions behind the feed, ms", [_lag(stage, each) for each in reactions]),
            _graph(
                "Handled", [_own(stage, "Reaction.handled", function_of(each), each) for each in reactions]
            ),
            _graph(
                "Parked and blocked",
                [
                    _own(stage, f"Reaction.{what}", function_of(each), f"{each} {what}")
                    for each in reactions
                    for what in ("parked", "blocked")
                ],
            ),
            _graph("Wake-ups given up", [_given_up(stage, each) for each in reactions]),
        ],
        [
            _graph("Wake-ups waiting, s", [_waiting(stage, each) for each in reactions]),
            _graph("Errors", [_of_function(stage, each, "Errors") for each in functions]),
            _graph("Functions throttled", [_of_function(stage, each, "Throttles") for each in functions]),
            _graph(
                "Tables throttled",
                [
                    _of_table(table, kind, what)
                    for kind, table in tables.items()
                    for what in ("Read", "Write")
                ],
            ),
        ],
        [
            _graph(title, [_taken(table, kind, name) for kind, table in tables.items()])
            for title, name in TAKEN
        ],
    ]
    return cloudwatch.Dashboard(
        scope,
        "Dashboard",
        dashboard_name=stage.named(""),
        widgets=[[graph for graph in row if graph is not None] for row in rows],
    )


def _graph(title: str, metrics: list[cloudwatch.IMetric]) -> cloudwatch.GraphWidget | None:
    """A graph, unless there is nothing to show: CloudWatch takes no graph without metrics."""
    return cloudwatch.GraphWidget(title=title, left=metrics, width=6) if metrics else None


def _own(stage: Stage, name: str, function: str, label: str) -> cloudwatch.IMetric:
    return metric("Epochal", name, {"service": stage.named(function)}).with_(label=label)


def _age(stage: Stage, function: str) -> cloudwatch.IMetric:
    dimensions = {"FunctionName": stage.named(function)}
    return metric("AWS/Lambda", "IteratorAge", dimensions, statistic="Maximum").with_(label=function)


def _lag(stage: Stage, reaction: str) -> cloudwatch.IMetric:
    return behind(stage.named(function_of(reaction))).with_(label=reaction)


def _waiting(stage: Stage, reaction: str) -> cloudwatch.IMetric:
    dimensions = {"QueueName": queue_of(stage, reaction)}
    age = metric("AWS/SQS", "ApproximateAgeOfOldestMessage", dimensions, statistic="Maximum")
    return age.with_(label=reaction)


def _given_up(stage: Stage, reaction: str) -> cloudwatch.IMetric:
    dimensions = {"QueueName": queue_of(stage, reaction, failed=True)}
    depth = metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", dimensions, statistic="Maximum")
    return depth.with_(label=reaction)


def _of_function(stage: Stage, function: str, name: str) -> cloudwatch.IMetric:
    return metric("AWS/Lambda", name, {"FunctionName": stage.named(function)}).with_(label=function)


def _taken(table: dynamodb.ITableV2, kind: str, name: str) -> cloudwatch.IMetric:
    return metric("AWS/DynamoDB", name, {"TableName": table.table_name}).with_(label=kind)


def _of_table(table: dynamodb.ITableV2, kind: str, what: str) -> cloudwatch.IMetric:
    throttles = metric("AWS/DynamoDB", f"{what}ThrottleEvents", {"TableName": table.table_name})
    return throttles.with_(label=f"{kind} {what.lower()}s")
