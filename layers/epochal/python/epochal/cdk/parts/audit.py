"""The auditor: on a schedule it compares a bit of every table of heads with the index, and mends the index.

Each invocation scans on from where the last one stopped, at a price that does not grow with the store
(decision 100). What it finds missing is indexed by then: the alarm asks why nobody had told. It also asks whether the
mappings are enabled that bring streams to the indexer and the notifier: one that is not has no metrics to alarm on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_events_targets import LambdaFunction
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.alarms import ONCE, Alarms, metric, watch_function
from epochal.cdk.parts.functions import Function, Shared, settings_of
from epochal.cdk.stages import Stage

SCHEDULE: Final = Duration.hours(1)
"""Streams keep records for a day: what the indexer has given up on is found while it can be looked into."""

TIMEOUT: Final = Duration.minutes(10)
"""A hundred pages take a minute; streams of which much is missing take longer to read."""


class AuditResources(Construct):
    """The function `auditor`, its schedule, and its alarms."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        shared: Shared,
        mappings: Sequence[lambda_.CfnEventSourceMapping],
    ) -> None:
        super().__init__(scope, id_)
        stage, stores = shared.stage, shared.stores
        self.function: Final = Function(
            self,
            "Auditor",
            name="auditor",
            description="heads of tables against the index, a bit at a time",
            shared=shared,
            timeout=TIMEOUT,
            environment=replace(
                settings_of(stage, stores), mappings=tuple(each.attr_id for each in mappings)
            ).environment("auditor"),
            allowed=[
                *grants.auditor(stage, stores),
                grants.on_mappings(mappings, named=stage.batches_named),
            ],
        ).function
        rule = events.Rule(self, "Schedule", schedule=events.Schedule.rate(SCHEDULE))
        # A tick that failed is made up for by the next one.
        rule.add_target(LambdaFunction(self.function, retry_attempts=0))
        self._watch(Alarms(self, stage), stage)

    def _watch(self, alarms: Alarms, stage: Stage) -> None:
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
            counted = metric("Epochal", f"Audit.{measure}", {"service": stage.named("auditor")})
            alarms.when(name, description, counted, minutes=ONCE)
