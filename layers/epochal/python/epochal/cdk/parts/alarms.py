"""Alarms as all of Epochal's are: named after the stage, sent to its topic, quiet where nothing happens.

Missing data is a good sign everywhere here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_cloudwatch_actions import SnsAction
from constructs import Construct

from epochal.cdk.stages import Stage

LAG_SECONDS: Final = 5 * 60
"""Readers and reactions usually hear of an append within two seconds. Five minutes is no burst, and leaves a day to
act."""

Minutes = tuple[int, int]
"""Bad ones, out of how many."""

LASTING: Final[Minutes] = (3, 5)
"""On-demand tables throttle for a minute while they grow."""

ONCE: Final[Minutes] = (1, 1)
"""For what must never happen."""

RUNBOOK: Final = "docs/runbook.md"
"""What to do about each alarm, in Epochal's documentation."""


class Alarms:
    """Makes the alarms that belong to `scope`; they are in the console alone where the stage has no topic for them."""

    def __init__(self, scope: Construct, stage: Stage) -> None:
        self._scope: Final = scope
        self._stage: Final = stage
        topic = stage.alarm_topic
        self._action: Final = SnsAction(sns.Topic.from_topic_arn(scope, "Topic", topic)) if topic else None
        self.made: Final[list[cloudwatch.Alarm]] = []

    def when(
        self,
        name: str,
        description: str,
        measured: cloudwatch.IMetric,
        *,
        minutes: Minutes,
        above: int = 0,
        entry: str = "",
    ) -> None:
        """Alarm when what is measured is above `above` in so many of so many minutes.

        `entry` is the anchor of what the runbook says, the alarm's name unless told: it may say it of several.
        """
        bad, observed = minutes
        alarm = cloudwatch.Alarm(
            self._scope,
            "".join(word.capitalize() for word in name.split("-")),
            alarm_name=self._stage.named(name),
            alarm_description=f"{description} What to do: {RUNBOOK}#{entry or name}",
            metric=measured,
            threshold=above,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            datapoints_to_alarm=bad,
            evaluation_periods=observed,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        self.made.append(alarm)
        if self._action:
            alarm.add_alarm_action(self._action)


_SUBJECTS: Final = {
    "AWS/DynamoDB": "TableName",
    "AWS/Firehose": "DeliveryStreamName",
    "AWS/Kinesis": "StreamName",
    "AWS/Lambda": "FunctionName",
    "AWS/SQS": "QueueName",
    "AWS/Scheduler": "ScheduleGroup",
    "Epochal": "service",
}
"""The dimension that tells of what a metric of a namespace is."""


def metric(
    namespace: str,
    name: str,
    of: str | Mapping[str, str],
    *,
    statistic: str = "Sum",
    label: str | None = None,
) -> cloudwatch.Metric:
    """A metric by the minute, of one subject, or of these dimensions."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map={_SUBJECTS[namespace]: of} if isinstance(of, str) else of,
        statistic=statistic,
        label=label,
        period=Duration.minutes(1),
    )


def largest(name: str, queue: sqs.IQueue) -> cloudwatch.Metric:
    """A metric of a queue, at its highest."""
    return metric("AWS/SQS", name, queue.queue_name, statistic="Maximum")


BEHIND: Final = ("Epochal", "Reaction.behind")
"""How far a reaction is behind the feed: milliseconds since what its checkpoint has not passed was indexed."""

LATE: Final = ("Epochal", "Timers.late")
"""How late timers fired: milliseconds since they were due."""


def watch_function(alarms: Alarms, name: str, function_name: str, *, entry: str = "function") -> None:
    """Alarms on a function that answers every foreseen failure: an error is a fault of code or set-up.

    Entries of the runbook begin with `entry`.
    """
    alarms.when(
        f"{name}-fails",
        f"The function {name} raised, ran out of time or of memory: see its log.",
        metric("AWS/Lambda", "Errors", function_name),
        minutes=ONCE,
        entry=f"{entry}-fails",
    )
    alarms.when(
        f"{name}-throttled",
        f"The function {name} is at its concurrency limit: its own reservation, or the account's.",
        metric("AWS/Lambda", "Throttles", function_name),
        minutes=LASTING,
        entry=f"{entry}-throttled",
    )
