"""The common form of Epochal's alarms: named after the stage, sent to its topic, quiet without data.

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
"""Lag in seconds that raises an alarm. Readers and reactions usually get an append within two seconds. Five minutes is
more than a burst causes, and leaves a day to act."""

MINUTE: Final = Duration.minutes(1)
"""Period of every metric. There are hundreds of metrics, and making a duration is a call to Node."""

Minutes = tuple[int, int]
"""Minutes above the threshold that raise an alarm, and the minutes that are looked at."""

LASTING: Final[Minutes] = (3, 5)
"""Minutes for conditions that must last, since on-demand tables throttle for a minute while they grow."""

ONCE: Final[Minutes] = (1, 1)
"""Minutes for conditions that must never occur."""

RUNBOOK: Final = "docs/runbook.md"
"""Page of Epochal's documentation with the remedy for each alarm."""


class Alarms:
    """Makes alarms as children of a construct, with the stage's topic as their action, if it has one.

    Attributes:
        made: the alarms made so far.
    """

    def __init__(self, scope: Construct, stage: Stage) -> None:
        """Refer to the stage's alarm topic, if it has one."""
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
        """Make an alarm on a metric above a threshold in some of the last minutes; collect it in `made`.

        Args:
            name: kind of the alarm, from which its full name is made.
            description: sentence that says what is wrong.
            measured: the metric.
            minutes: minutes above the threshold that raise the alarm, and the minutes that are looked at.
            above: the threshold.
            entry: anchor of the runbook's entry, which alarms may share; empty for the alarm's name.
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
"""Dimension that names the resource of a metric, by namespace."""


def metric(
    namespace: str,
    name: str,
    of: str | Mapping[str, str],
    *,
    statistic: str = "Sum",
    label: str | None = None,
) -> cloudwatch.Metric:
    """Return a CloudWatch metric, with a period of a minute, of one resource or of the given dimensions.

    Args:
        of: name of the resource, or dimensions and their values.
        label: label in graphs; None for CloudWatch's.
    """
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map={_SUBJECTS[namespace]: of} if isinstance(of, str) else of,
        statistic=statistic,
        label=label,
        period=MINUTE,
    )


def largest(name: str, queue: sqs.IQueue) -> cloudwatch.Metric:
    """Return the maximum of a queue's metric."""
    return metric("AWS/SQS", name, queue.queue_name, statistic="Maximum")


BEHIND: Final = ("Epochal", "Reaction.behind")
"""Metric of a reaction's lag: milliseconds since the first entry after its checkpoint was indexed."""

LATE: Final = ("Epochal", "Timers.late")
"""Metric of late timers: milliseconds between the due time and the firing."""


def watch_function(alarms: Alarms, name: str, function_name: str, *, entry: str = "function") -> None:
    """Make alarms on the errors and throttles of a function.

    The function handles every foreseen failure, so an error is a fault of code or configuration.

    Args:
        name: kind of the function.
        function_name: full name of the function.
        entry: beginning of the anchors of the runbook's entries.
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
