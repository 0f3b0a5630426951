"""The indexer, which reads heads from the streams of the layouts' tables and writes entries of epochs (DESIGN §5.7 to
5.10).

There is one function for all layouts, and an event source mapping for each layout, since each stream has its own
retries and failures. All mappings have the same rules, with the numbers below:

    only heads wake the function        other changes are filtered out before they cost anything (below)
    a batch may fail in part            failed records are retried, the records before them are done
    a batch that raises is halved       until the record that makes it raise is alone, and all others are done
    nothing blocks a shard for a day    retries end; then the whole record goes to a bucket
    no event is lost by that            the stream's next append finds the gap and heals it from the store

A stage may have its tables send their changes to one Kinesis stream (`feed_kinesis_shards`). Then one mapping replaces
those of the tables' streams, under the same rules.

The indexer publishes the partitions' new positions to a topic (below). The auditor finds appends that never reached the
indexer.
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
from epochal.cdk.parts.limits import check_filters
from epochal.cdk.parts.storage import MAX_AGE_SECONDS, RETRIES, Failures, changes_of, output, topic_of
from epochal.cdk.stages import Stage
from epochal.layout.source import Source
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
"""Timeout of the indexer. A batch takes a second or two; healing a long gap and waiting out throttling take longer."""


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
            check_filters("feed_kinesis_shards", sent, "Leave out a layout by layouts, or set it to 0")
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

        Raises:
            BadSetting: Lambda does not allow that many filters.
        """
        check_filters(
            "layouts", heads, "The layout of the table has to declare fewer conditions of its heads"
        )
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
            # Counts the records that were given up on, for alarms.
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


# Notices: after each batch, the indexer publishes which partitions have new entries (FORMATS §5).
#
# A notice is a wake-up and carries no data. If a notice cannot be published, its batch is delivered once more; after
# that, later batches and reactions' schedules make up for it: the index does not wait for a topic.
#
# The topic is FIFO, so that notices of a partition arrive one after the other, and are deduplicated by their content.


class Notices(Construct):
    """The topic of notices, and the permission to publish to it.

    Attributes:
        topic: FIFO topic.
        publishing: permission to publish to the topic.
    """

    def __init__(self, scope: Construct, id_: str, shared: Shared) -> None:
        """Make the FIFO topic of notices and the statement that allows publishing to it."""
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


# The auditor: on a schedule, it compares a part of every table of heads with the index, and repairs the index.
#
# Each invocation continues the scan where the last one stopped, at a price that does not grow with the store (decision
# 100). Missing events are indexed at once; the alarm is there to find out why they were missing. The auditor also
# checks whether the indexer's event source mappings are enabled: a disabled mapping has no metrics to alarm on.

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


# Filters of event source mappings: the changes of a table that concern heads, and so matter to the indexer.
#
# Lambda applies them before it wakes the function; dropped changes cost nothing and are never seen again. So the
# filters test only the attributes that make an item a head written by an append, and drop nothing that the library
# would index: a head that is malformed elsewhere passes, and is set aside with its cause. They are made from the
# conditions that the layouts declare (`layout.source.Source`), and mean the same.
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
