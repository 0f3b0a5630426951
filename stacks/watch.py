"""Alarms from the first deployment on: what someone should be told before users tell them.

    the feed lags            the age of the last record the indexer got to
    records were given up    the failure destination got something, or could not be reached
    a function failed        handlers answer every foreseen failure, so an error is a fault of code or set-up
    something throttled      functions or tables at a ceiling: the stage's, or the account's
    the API answers 5xx      as a share of requests: one in a million is no reason to wake anyone

Missing data is a good sign everywhere here: nothing happened. Alarms go to the stage's topic, if it has one,
and stand in the console otherwise.
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from aws_cdk.aws_cloudwatch_actions import SnsAction
from constructs import Construct

from epochal.layout.tables import ALL
from epochal.plan.tables import TableSpec
from stacks.api import ApiStack
from stacks.feed import FeedStack
from stacks.stages import Stage
from stacks.store import StoreStack

LAG_MILLISECONDS: Final = 5 * 60 * 1_000
"""Readers usually see an append within two seconds. Five minutes is no burst, and leaves a day to act."""

FAILING_PERCENT: Final = 1
"""Of requests answered 5xx. Clients retry those, so that few users notice less."""

LASTING: Final = (3, 5)
"""Bad minutes, out of how many: on-demand tables throttle for a minute while they grow."""

ONCE: Final = (1, 1)
"""For what must never happen."""


class WatchStack(Stack):
    """Alarms on the other stacks."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        stage: Stage,
        store: StoreStack,
        feed: FeedStack,
        api: ApiStack,
        **stack: Any,
    ) -> None:
        super().__init__(scope, id_, **stack)
        self._stage: Final = stage
        self._action: Final = self._notify(stage.alarm_topic)
        self._watch_feed(feed)
        for name in (*api.functions, "indexer", "notifier"):
            self._watch_function(name, stage.named(name))
        for spec in ALL:
            table_name = store.tables[spec.kind].table_name
            self._watch_table(spec.kind, table_name)
            if spec.indexes:
                self._watch_indexes(spec, table_name)
        self._watch_api(api.api.api_id)

    def _notify(self, topic_arn: str) -> SnsAction | None:
        return SnsAction(sns.Topic.from_topic_arn(self, "Topic", topic_arn)) if topic_arn else None

    def _watch_feed(self, feed: FeedStack) -> None:
        self._watch_lag("feed-lags", "indexer", "The indexer is minutes behind.")
        self._watch_lag("notices-lag", "notifier", "The notifier is minutes behind: reactions wake up late.")
        for kind, mapping in feed.mappings.items():
            self._watch_mapping("feed", f"-{kind}", f"Records of {kind}", mapping.attr_id)
        self._watch_mapping("notices", "", "Notices", feed.notices.mapping.attr_id)

    def _watch_lag(self, name: str, function: str, description: str) -> None:
        dimensions = {"FunctionName": self._stage.named(function)}
        self._alarm(
            name,
            f"{description} Is the function throttled or failing?",
            _metric("AWS/Lambda", "IteratorAge", dimensions, statistic="Maximum"),
            above=LAG_MILLISECONDS,
            minutes=LASTING,
        )
        subject = name.partition("-")[0]
        self._alarm(
            f"{subject}-failures-undelivered",
            f"Records that the {function} gave up on could not be put into the failures bucket.",
            _metric("AWS/Lambda", "DestinationDeliveryFailures", dimensions),
            minutes=ONCE,
        )

    def _watch_mapping(self, subject: str, suffix: str, records: str, mapping_id: str) -> None:
        dimensions = {"EventSourceMappingUUID": mapping_id}
        self._alarm(
            f"{subject}-gave-up{suffix}",
            f"{records} were given up on: they are in the failures bucket, with the cause.",
            _metric("AWS/Lambda", "OnFailureDestinationDeliveredEventCount", dimensions),
            minutes=ONCE,
        )
        self._alarm(
            f"{subject}-dropped{suffix}",
            f"{records} were dropped, and are nowhere to be found.",
            _metric("AWS/Lambda", "DroppedEventCount", dimensions),
            minutes=ONCE,
        )

    def _watch_function(self, name: str, function_name: str) -> None:
        dimensions = {"FunctionName": function_name}
        self._alarm(
            f"{name}-fails",
            f"The function {name} raised, ran out of time or of memory: see its log.",
            _metric("AWS/Lambda", "Errors", dimensions),
            minutes=ONCE,
        )
        self._alarm(
            f"{name}-throttled",
            f"The function {name} is at its concurrency limit: its own reservation, or the account's.",
            _metric("AWS/Lambda", "Throttles", dimensions),
            minutes=LASTING,
        )

    def _watch_table(self, kind: str, table_name: str) -> None:
        for what in ("Read", "Write"):
            self._alarm(
                f"{kind}-{what.lower()}s-throttled",
                f"{what}s of the {kind} table are throttled: a hot stream, or the stage's ceiling.",
                _metric("AWS/DynamoDB", f"{what}ThrottleEvents", {"TableName": table_name}),
                minutes=LASTING,
            )

    def _watch_indexes(self, spec: TableSpec, table_name: str) -> None:
        """An index that cannot keep up holds up the writes of its table, and is counted by itself."""
        counted = {
            f"{what}{number}": _metric(
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
            period=Duration.minutes(1),
        )
        self._alarm(
            f"{spec.kind}-indexes-throttled",
            f"Indexes of the {spec.kind} table are throttled: one hot key of theirs, or the stage's ceiling.",
            throttled,
            minutes=LASTING,
        )

    def _watch_api(self, api_id: str) -> None:
        dimensions = {"ApiId": api_id}
        share = cloudwatch.MathExpression(
            expression="100 * failed / requests",
            label="requests answered 5xx, %",
            using_metrics={
                "failed": _metric("AWS/ApiGateway", "5xx", dimensions),
                "requests": _metric("AWS/ApiGateway", "Count", dimensions),
            },
            period=Duration.minutes(1),
        )
        self._alarm(
            "api-fails", "The HTTP API answers with 5xx.", share, above=FAILING_PERCENT, minutes=LASTING
        )

    def _alarm(
        self,
        name: str,
        description: str,
        metric: cloudwatch.IMetric,
        *,
        minutes: tuple[int, int],
        above: int = 0,
    ) -> None:
        """Alarm when `metric` is above `above` in so many of so many minutes."""
        bad, observed = minutes
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.capitalize() for word in name.split("-")),
            alarm_name=self._stage.named(name),
            alarm_description=description,
            metric=metric,
            threshold=above,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            datapoints_to_alarm=bad,
            evaluation_periods=observed,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._action:
            alarm.add_alarm_action(self._action)


def _metric(
    namespace: str, name: str, dimensions: dict[str, str], *, statistic: str = "Sum"
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dimensions,
        statistic=statistic,
        period=Duration.minutes(1),
    )
