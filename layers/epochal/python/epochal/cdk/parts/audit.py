"""The auditor: on a schedule, it compares a part of every table of heads with the index, and repairs the index.

Each invocation continues the scan where the last one stopped, at a price that does not grow with the store (decision
100). Missing events are indexed at once; the alarm is there to find out why they were missing. The auditor also
checks whether the indexer's event source mappings are enabled: a disabled mapping has no metrics to alarm on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.parts import grants, iam_statements
from epochal.cdk.parts.alarms import ONCE, Alarms, metric, watch_function
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.functions import Function, Shared
from epochal.cdk.parts.notices import Notices
from epochal.cdk.parts.schedules import run_on_schedule
from epochal.cdk.stages import Stage
from epochal.lazy_dataclasses import replace

SCHEDULE: Final = Duration.hours(1)
"""Interval of audits. Streams keep records for a day, so that records that the indexer gave up on can still be read."""

AUDITOR_TIMEOUT: Final = Duration.minutes(10)
"""Timeout of one audit. A hundred pages take a minute; streams with many missing events take longer to read."""


class AuditResources(Construct):
    """The function `auditor`, its schedule and its alarms.

    Attributes:
        function: the function.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        shared: Shared,
        mappings: Sequence[lambda_.CfnEventSourceMapping],
        notices: Notices,
    ) -> None:
        """Make the auditor's function, its schedule and its alarms.

        Args:
            mappings: event source mappings that the auditor checks.
            notices: topic to which the auditor publishes.
        """
        super().__init__(scope, id_)
        stage, stores = shared.stage, shared.stores
        self.function: Final = Function(
            self,
            "Auditor",
            name="auditor",
            description="heads of tables against the index, a bit at a time",
            shared=shared,
            timeout=AUDITOR_TIMEOUT,
            environment=replace(
                settings_of(stage, stores),
                topic=notices.topic.topic_arn,
                mappings=tuple(mapping.attr_id for mapping in mappings),
            ).environment("auditor"),
            allowed=[
                *grants.allowed("auditor", stage, stores),
                iam_statements.on_mappings(mappings, named=stage.batches_named),
                notices.publishing,
            ],
        ).function
        run_on_schedule(self, "Schedule", self.function, SCHEDULE)
        self._watch(Alarms(self, stage), stage)

    def _watch(self, alarms: Alarms, stage: Stage) -> None:
        """Make alarms on the auditor's errors and on its findings."""
        watch_function(alarms, "auditor", stage.named("auditor"))
        for name, measure, description in (
            ("index-gaps-found", "missing", "Events were missing from the index, and are indexed now."),
            ("index-audit-troubles", "troubles", "The auditor met what it could neither read nor mend."),
            (
                "mappings-disabled",
                "disabled",
                "A stream does not reach its function: the mapping is disabled.",
            ),
        ):
            counted = metric("Epochal", f"Audit.{measure}", stage.named("auditor"))
            alarms.when(name, description, counted, minutes=ONCE)
