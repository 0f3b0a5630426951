"""The indexer: heads from the streams of the layouts' tables in, entries of epochs out (DESIGN §5.7 to
5.10).

One function, because its code is one; an event source mapping for each layout, because each stream has records of its
own to wait for and to give up on. A mapping decides what a failure costs. The rules of all of them,
with the numbers below:

    only heads wake the function        what else changes is filtered out before it is paid for (below)
    a batch may fail in part            what the function reports is retried, what came before it stands
    a batch that raises is halved       until what makes it raise stands alone, and its neighbours have passed
    nothing blocks a shard for a day    retries end; what they end with goes to a bucket, whole
    nothing is lost with it             the stream's next append finds the gap and heals it from the store

A stage may have its tables send their changes to one Kinesis stream (`feed_kinesis_shards`). Then one mapping takes the
place of those of the tables' streams, under the same rules.

It tells reactions what it has got to through a topic (below). The auditor looks after what nobody told the indexer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk.aws_events_targets import LambdaFunction
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.functions import ONCE, Alarms, Function, Shared, metric, settings_of, watch_function
from epochal.cdk.parts.storage import MAX_AGE_SECONDS, RETRIES, Failures, changes_of, output, topic_of
from epochal.cdk.stages import Stage
from epochal.layout.port import Source
from epochal.lazy_dataclasses import replace
from epochal.plan.conditions import All, BeginsWith, Compare, Condition, Not, Present
from epochal.plan.tables import TableSpec
from epochal.plugins import layouts
from epochal.settings import Settings

PARALLELIZATION: Final = 1
"""Concurrent invocations per shard. More would divide a shard by stream, while entries are divided by partition: every
invocation would conflict with the others at every epoch. DynamoDB adds shards with the load, and each has an invocation
of its own anyway."""

POLLING_SECONDS: Final = 1
"""Lambda polls a Kinesis shard once a second, and a table's stream four times. Records gather in that second, which
the window therefore need not include."""

TIMEOUT: Final = Duration.minutes(2)
"""A batch takes a second or two; healing a long gap and waiting out throttling take longer."""


class Feed:
    """The indexer, its event source mappings, bucket of failures and topic, and the auditor.

    Attributes:
        notices: topic of notices.
        indexer: the function.
        mappings: event source mappings of the indexer, by kind of table; `changes` is that of the Kinesis stream.
        audit: the auditor.
    """

    def __init__(
        self,
        scope: Construct,
        shared: Shared,
        streams: Mapping[str, str],
        changes: kinesis.IStream | None = None,
    ) -> None:
        """Make the constructs as children of `scope`.

        Args:
            scope: parent construct.
            shared: settings, stores, code and layers of the functions.
            streams: ARNs of tables' streams, by the kinds of the tables.
            changes: the Kinesis stream of changes, if this stack makes it; None to refer to the stream by its name.
        """
        stage, stores = shared.stage, shared.stores
        self._scope: Final = scope
        self._failures: Final = Failures(scope, stage=stage, key=stores.key)
        self.notices: Final = Notices(scope, "Notices", shared)
        settings, window = Settings(of_layouts=stage.of_layouts), stage.feed_window_seconds
        ports = {each.port.heads.kind: each.port for each in stage.deployed_layouts()}
        sending = {kind: ports.pop(kind) for kind in stage.sending()}
        sent_to = changes.stream_arn if changes else _arn_of(scope, stage)
        self.indexer: Final = self._indexer(
            shared,
            [
                *(grants.on_streams([streams[kind] for kind in ports]) if ports else ()),
                *(grants.on_kinesis(sent_to) if sending else ()),
            ],
        )
        self.mappings: Final = {
            kind: self._mapping(
                _id(port.heads), streams[kind], heads_of(port.source(settings)), stage, window
            )
            for kind, port in ports.items()
        }
        if sending:
            sent = [
                pattern
                for kind, port in sending.items()
                for pattern in heads_sent(port.source(settings), stage.named(kind))
            ]
            waited = max(0, window - POLLING_SECONDS)
            self.mappings["changes"] = self._mapping("Changes", sent_to, sent, stage, waited)
        self.audit: Final = AuditResources(scope, "Audit", shared, [*self.mappings.values()], self.notices)
        topic = self.notices.topic.topic_arn
        output(scope, "NoticesTopic", topic, "Topic that reactions subscribe to", of=shared.outputs)

    def _indexer(self, shared: Shared, following: Sequence[iam.PolicyStatement]) -> lambda_.Function:
        """Make the function `indexer`.

        Args:
            following: permissions to read the streams.
        """
        stage, stores = shared.stage, shared.stores
        return Function(
            self._scope,
            "Indexer",
            name="indexer",
            description="heads from the streams of tables into epochs of the index",
            shared=shared,
            timeout=TIMEOUT,
            environment=replace(settings_of(stage, stores), topic=self.notices.topic.topic_arn).environment(
                "indexer"
            ),
            allowed=[
                *following,
                *self._failures.reporting(),
                *grants.allowed("indexer", stage, stores),
                self.notices.publishing,
            ],
        ).function

    def _mapping(
        self, id_: str, stream_arn: str, heads: Sequence[str], stage: Stage, window: int
    ) -> lambda_.CfnEventSourceMapping:
        """Make an event source mapping that invokes the indexer with the heads in a stream.

        It is a resource of CloudFormation, since CDK's construct would grant more for the destination.

        Args:
            heads: filter patterns of heads.
            window: seconds for which Lambda gathers a batch.
        """
        mapping = lambda_.CfnEventSourceMapping
        return mapping(
            self._scope,
            id_,
            function_name=self.indexer.function_name,
            event_source_arn=stream_arn,
            # Appends made before the mapping existed are in the stream, and belong in the feed.
            starting_position="TRIM_HORIZON",
            batch_size=stage.feed_batch_size,
            maximum_batching_window_in_seconds=window,
            parallelization_factor=PARALLELIZATION,
            filter_criteria=mapping.FilterCriteriaProperty(
                filters=[mapping.FilterProperty(pattern=pattern) for pattern in heads]
            ),
            function_response_types=["ReportBatchItemFailures"],
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=RETRIES,
            maximum_record_age_in_seconds=MAX_AGE_SECONDS,
            destination_config=self._failures.destination(),
            # Counts what was given up on, which alarms look at.
            metrics_config=mapping.MetricsConfigProperty(metrics=["EventCount"]),
        )


def _arn_of(scope: Construct, stage: Stage) -> str:
    """Return the ARN of the Kinesis stream that another stack makes, by the stream's name."""
    return Stack.of(scope).format_arn(
        service="kinesis",
        resource="stream",
        resource_name=changes_of(stage),
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )


def _id(heads: TableSpec) -> str:
    """Return the construct id of the mapping for a table of heads.

    The first layout's id is from when it was the only layout: another id would make another mapping of the same stream,
    which Lambda refuses as long as the first one exists.
    """
    is_first = any(layout.base == 0 and heads is layout.port.heads for layout in layouts())
    return "Heads" if is_first else f"{heads.kind.capitalize()}Heads"


# Notices: the indexer tells which partitions have moved, after each batch (FORMATS §5).
#
# A notice is a wake-up and carries no data. One that could not be published has its batch delivered once more; then
# later batches, and reactions' schedules, make up for it: the index does not wait for a topic.
#
# The topic is FIFO, so that notices of a partition come one after the other, and are deduplicated by what they say.


class Notices(Construct):
    """The topic of notices, and the permission to publish to it.

    Attributes:
        topic: FIFO topic.
        publishing: permission to publish to the topic.
    """

    def __init__(self, scope: Construct, id_: str, shared: Shared) -> None:
        """Make the topic."""
        super().__init__(scope, id_)
        stage = shared.stage
        self.topic: Final = sns.Topic(
            self,
            "Topic",
            topic_name=topic_of(stage),
            fifo=True,
            # A notice names the position of a partition; a second notice of the same position is a duplicate.
            content_based_deduplication=False,
            # Limits and deduplication by partition, or all partitions would share 300 notices a second.
            fifo_throughput_scope=sns.FifoThroughputScope.MESSAGE_GROUP,
            master_key=shared.stores.key,
            enforce_ssl=stage.tls_only,
        )
        self.publishing: Final = grants.on_topic(
            self.topic, *grants.batched("Publish", named=stage.batches_named)
        )


# The auditor: on a schedule it compares a bit of every table of heads with the index, and mends the index.
#
# Each invocation scans on from where the last one stopped, at a price that does not grow with the store (decision
# 100). What it finds missing is indexed by then: the alarm asks why nobody had told. It also asks whether the
# mappings are enabled that bring streams to the indexer: one that is not has no metrics to alarm on.

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
        """Make the function, its schedule and its alarms.

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
                mappings=tuple(each.attr_id for each in mappings),
            ).environment("auditor"),
            allowed=[
                *grants.allowed("auditor", stage, stores),
                grants.on_mappings(mappings, named=stage.batches_named),
                notices.publishing,
            ],
        ).function
        rule = events.Rule(self, "Schedule", schedule=events.Schedule.rate(SCHEDULE))
        # The next scheduled audit makes up for a failed one.
        rule.add_target(LambdaFunction(self.function, retry_attempts=0))
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


# Filters of event source mappings: which changes of a table are of heads, and so matter to the indexer.
#
# Lambda compares them before it wakes the function; what they drop costs nothing and is never seen again. So they
# look only at what makes an item a head that an append wrote, and drop nothing that the library would index: a head
# that is malformed elsewhere gets through, and is set aside with its cause. They are made of the conditions that the
# layouts state (`layout.port.Source`), and mean the same.
#
# Numbers are text here, as they are in records. Only operators that Lambda documents for filters are used.


def heads_of(source: Source) -> list[str]:
    """Return filter patterns of changes to heads in a table's stream, one of which must match.

    A change matches if an append, a prune or a deletion may have written the head.
    """
    return [json.dumps(_written(each)) for each in _moved(source)]


def heads_sent(source: Source, table: str) -> list[str]:
    """Return filter patterns of changes to heads that a table sends to Kinesis, one of which must match.

    Kinesis has each change as JSON under `data`.
    """
    return [json.dumps({"data": {"tableName": [table], **_written(each)}}) for each in _moved(source)]


def _moved(source: Source) -> list[Condition]:
    """Return conditions for heads that an append, a prune or a deletion may have written."""
    either = (source.moved, source.pruned)
    return [All((source.where, each)) for each in either if each is not None] or [source.where]


def _written(condition: Condition) -> dict[str, Any]:
    """Return the filter pattern of a written item that meets a condition."""
    return {"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": _image(condition)}}


def _image(condition: Condition) -> dict[str, Any]:
    """Return the part of a filter pattern that matches the new image of an item that meets a condition.

    Raises:
        ValueError: no filter can express the condition.
    """
    match condition:
        case Compare(name, "=", value):
            return {name: {kind: [content] for kind, content in value.items()}}
        case Present(name, kind) if kind:
            return {name: {kind: [{"exists": True}]}}
        case BeginsWith(name, prefix):
            return {name: {"S": [{"prefix": prefix}]}}
        case Not(Compare(name, "=", value)):
            return {
                name: {
                    kind: [{"anything-but": [content]}, {"exists": False}] for kind, content in value.items()
                }
            }
        case All(conditions):
            return {name: value for each in conditions for name, value in _image(each).items()}
        case _:
            raise ValueError(f"no filter has a form for {condition}")
