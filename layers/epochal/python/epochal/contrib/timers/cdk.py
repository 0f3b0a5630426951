"""Timers as they are deployed: what puts them into their table, what wakes the function that fires them, and that.

the feed ──► reaction `timers` ──► table of timers, THEN ──► queue ──────────────► function `timers` ──► the stream
                                                       └───► schedule of a minute ─┘      │
                                                             (gone once it has sent)      └─► the item is deleted

what is due soon has a message of its own    which the queue keeps back for so long, at most 15 minutes
what is due later has a schedule             one for all that is due in the same minute and shard
a wake-up may fail in part                   others of its batch are done; it comes again after some seconds
nothing is lost with a wake-up               a tick fires what is due and was not fired (`SWEEP`)
a deployment without timers has none of it   and nothing that it has knows of them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from epochal.cdk.parts import grants, iam_statements
from epochal.cdk.parts.alarms import (
    LAG_SECONDS,
    LASTING,
    LATE,
    ONCE,
    Alarms,
    Minutes,
    largest,
    metric,
    watch_function,
)
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.functions import Function, Shared, wake_up_queues
from epochal.cdk.parts.notices import Notices
from epochal.cdk.parts.schedules import run_on_schedule
from epochal.cdk.reaction import Reaction
from epochal.hosting.leases import MAX_RECEIVES, hidden_seconds
from epochal.layout.tables import TIMERS
from epochal.lazy_dataclasses import replace
from epochal.settings import Settings

if TYPE_CHECKING:
    from epochal.cdk.store import Store

TIMEOUT: Final = Duration.minutes(1)
"""Timeout of the function. For the timers that it has no time for, it sends another wake-up."""

AT_ONCE: Final = 10
"""Maximum of concurrent invocations. Each fires the timers of a stream one after another, so conflicts are rare."""

SWEEP: Final = Duration.minutes(15)
"""Interval of sweeps: the longest delay of a timer whose wake-up was lost.

A sweep queries each shard once: 1,600 requests a day.
"""

DELAYED: Final = 15 * 60
"""Maximum delay of an SQS message, in seconds. The delay counts as part of the message's age."""


class Timers(Construct):
    """Construct with everything that fires a store's timers: function, queues, schedules, reaction.

    Attributes:
        function: the Lambda function that fires timers.
        queue: the queue of wake-ups, which invokes the function.
        failed: the dead-letter queue of wake-ups that failed too often.
        reaction: the reaction that puts timers that were set into their table, and has their wake-ups sent.
    """

    def __init__(self, scope: Construct, id_: str, *, store: Store, shared: Shared, notices: Notices) -> None:
        """Add the queues, functions and alarms that fire a store's timers to the stack of its feed.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct in its scope.
            store: the store whose timers are fired.
            shared: what the store's functions have in common.
            notices: the construct whose notifications wake the reaction.
        """
        super().__init__(scope, id_)
        stage, stores = shared.stage, shared.stores
        self._stage: Final = stage
        self._name: Final = stage.named(TIMERS.kind)
        queue, failed = wake_up_queues(
            self,
            stage,
            self._name,
            f"{self._name}-failed",
            hidden=Duration.seconds(hidden_seconds(TIMEOUT.to_seconds())),
            receives=MAX_RECEIVES,  # what is set aside then, a sweep finds all the same
        )
        self.queue: Final = queue
        self.failed: Final = failed
        self._group: Final = scheduler.CfnScheduleGroup(self, "Group", name=self._name)
        role = self._role()
        settings = replace(
            settings_of(stage, stores),
            timers_queue=self.queue.queue_url,
            timers_schedules=(self._name, self.queue.queue_arn, role.role_arn),
        )
        self._waking: Final = iam_statements.on_queue(
            self.queue, *iam_statements.batched("SendMessage", named=stage.batches_named)
        )
        scheduling = [
            iam.PolicyStatement(actions=["scheduler:CreateSchedule"], resources=self._schedules()),
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[role.role_arn],
                conditions={"StringEquals": {"iam:PassedToService": _SCHEDULER}},
            ),
        ]
        table = stores.tables[TIMERS.kind]
        putting = iam_statements.on_table(table, "PutItem")
        self.function: Final = self._function(
            shared, settings, iam_statements.on_table(table, "Query", "DeleteItem")
        )
        self.reaction: Final = self._reaction(store, settings, [putting, *scheduling])
        # The reaction knows the notices of this stack by name only, from which CloudFormation derives no dependency.
        self.reaction.node.add_dependency(notices)
        self._watch(Alarms(self, stage))

    def _role(self) -> iam.Role:
        """Make the role with which schedules of this group send messages to the queue.

        Only schedules of the group may assume the role, and it allows nothing else.
        """
        ours = {
            "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
            "ArnEquals": {"aws:SourceArn": self._group.attr_arn},
        }
        sending = (
            iam_statements.on_queue(self.queue, "SendMessage"),
            *iam_statements.on_queue_key(self._stage),
        )
        send = iam.PolicyDocument(statements=[*sending])
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(_SCHEDULER, conditions=ours),
            inline_policies={"allowed": send},
        )

    def _schedules(self) -> list[str]:
        """Return ARN patterns of the schedules that may be created: in the group, perhaps in `default`.

        The embedded AWS reports every schedule as one of the default group when it checks permissions, so that group
        is added there.
        """
        groups = [self._name, *(["default"] if self._stage.batches_named else [])]
        return [
            Stack.of(self).format_arn(service="scheduler", resource="schedule", resource_name=f"{group}/*")
            for group in groups
        ]

    def _function(
        self, shared: Shared, settings: Settings, on_timers: iam.PolicyStatement
    ) -> lambda_.Function:
        """Make the function that fires timers, invoked by the queue of wake-ups and by a sweep every `SWEEP`."""
        stage = shared.stage
        function = Function(
            self,
            "Function",
            name="timers",
            description="appends the events of timers that are due",
            shared=shared,
            timeout=TIMEOUT,
            # The function appends, so it needs the settings of the append function, too.
            environment=settings.environment("append") | settings.environment("timers"),
            allowed=[
                *grants.allowed("timers", stage, shared.stores),
                on_timers,
                iam_statements.on_queue(
                    self.queue, *iam_statements.consuming(named=self._stage.batches_named)
                ),
                self._waking,
                *iam_statements.on_queue_key(stage),
            ],
            wakes_itself=True,
        ).function
        # Invocations above the reserved concurrency would be throttled, and their wake-ups dead-lettered. AWS takes no
        # less than two.
        at_once = max(2, min(AT_ONCE, stage.reserved_concurrency.get(TIMERS.kind, AT_ONCE)))
        lambda_.CfnEventSourceMapping(
            self,
            "WakeUps",
            function_name=function.function_name,
            event_source_arn=self.queue.queue_arn,
            batch_size=10,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=lambda_.CfnEventSourceMapping.ScalingConfigProperty(maximum_concurrency=at_once),
        )
        run_on_schedule(self, "Sweep", function, SWEEP)
        return function

    def _reaction(
        self, store: Store, settings: Settings, permissions: Sequence[iam.PolicyStatement]
    ) -> Reaction:
        """Make the reaction that arms timers, with the given settings and permissions."""
        return Reaction(
            self,
            "Arming",
            store=store,
            name=TIMERS.kind,
            entry=store.code().lambdas / "timers",
            handler="arming.handler",
            environment=settings.environment("arming"),
            permissions=[*permissions, self._waking],
        )

    def _watch(self, alarms: Alarms) -> None:
        """Add alarms on the function, on timers late, swept or stuck, and on wake-ups that wait, fail or drop."""

        def when(what: str, does: str, measured: cloudwatch.Metric, minutes: Minutes, above: int = 0) -> None:
            """Add one alarm on a metric, named `timers-<what>` and described by `does`."""
            alarms.when(f"timers-{what}", does, measured, minutes=minutes, above=above)

        watch_function(alarms, "timers", self._name)
        late = metric(*LATE, self._name, statistic="Maximum")
        when("late", "Timers fire minutes after their time.", late, LASTING, LAG_SECONDS * 1_000)
        age = largest("ApproximateAgeOfOldestMessage", self.queue)
        waits = "Wake-ups of timers are waiting: the function fails, is throttled, or is not called."
        when("wait", waits, age, LASTING, DELAYED + LAG_SECONDS)
        depth = largest("ApproximateNumberOfMessagesVisible", self.failed)
        when("gave-up", "Wake-ups of timers failed too often and were set aside.", depth, ONCE)
        dropped = metric("AWS/Scheduler", "InvocationDroppedCount", self._name)
        when("dropped", "Schedules could not send wake-ups of timers to their queue.", dropped, ONCE)
        for what, does in _COUNTED:
            when(what, does, metric("Epochal", f"Timers.{what}", self._name), ONCE)


_COUNTED: Final = (
    ("swept", "Timers were due without a wake-up; the sweep fires them late."),
    ("stuck", "Timers cannot be fired, and wait."),
)
"""Metrics of the function that must stay at zero, each with the description of its alarm."""

_SCHEDULER: Final = "scheduler.amazonaws.com"
