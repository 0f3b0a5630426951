"""The indexer, which reads heads from the streams of the layouts' tables and writes entries of epochs (DESIGN §5.7 to
5.10).

There is one function for all layouts, and an event source mapping for each layout, since each stream has its own
retries and failures. All mappings have the same rules, with the numbers below:

    only heads wake the function        other changes are filtered out before they cost anything (`head_filters`)
    a batch may fail in part            failed records are retried, the records before them are done
    a batch that raises is halved       until the record that makes it raise is alone, and all others are done
    nothing blocks a shard for a day    retries end; then the whole record goes to a bucket
    no event is lost by that            the stream's next append finds the gap and heals it from the store

A stage may have its tables send their changes to one Kinesis stream (`feed_kinesis_shards`). Then one mapping replaces
those of the tables' streams, under the same rules.

The indexer publishes the partitions' new positions to a topic (`notices`). The auditor (`audit`) finds appends that
never reached the indexer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.parts import grants, iam_statements
from epochal.cdk.parts.audit import AuditResources
from epochal.cdk.parts.failures import MAX_AGE_SECONDS, RETRIES, Failures
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.functions import Function, Shared
from epochal.cdk.parts.head_filters import heads_of, heads_sent
from epochal.cdk.parts.limits import check_filters
from epochal.cdk.parts.notices import Notices
from epochal.cdk.parts.outputs import output
from epochal.cdk.parts.resource_names import changes_of
from epochal.cdk.stages import Stage
from epochal.lazy_dataclasses import replace
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
        """Add the indexer with its event sources, the failure bucket, the topic and the auditor to `scope`.

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
        ports = {layout.port.heads.kind: layout.port for layout in stage.deployed_layouts()}
        sending = {kind: ports.pop(kind) for kind in stage.sending()}
        sent_to = changes.stream_arn if changes else _arn_of(scope, stage)
        self.indexer: Final = self._indexer(
            shared,
            [
                *(iam_statements.on_streams([streams[kind] for kind in ports]) if ports else ()),
                *(iam_statements.on_kinesis(sent_to) if sending else ()),
            ],
        )
        self.mappings: Final = {
            kind: self._mapping(
                _id(port.heads), streams[kind], heads_of(port.source(settings)), stage, window
            )
            for kind, port in ports.items()
        }
        if sending:
            patterns = [
                pattern
                for kind, port in sending.items()
                for pattern in heads_sent(port.source(settings), stage.named(kind))
            ]
            check_filters("feed_kinesis_shards", patterns, "Leave out a layout by layouts, or set it to 0")
            waited = max(0, window - POLLING_SECONDS)
            self.mappings["changes"] = self._mapping("Changes", sent_to, patterns, stage, waited)
        self.audit: Final = AuditResources(scope, "Audit", shared, [*self.mappings.values()], self.notices)
        topic = self.notices.topic.topic_arn
        output(scope, "NoticesTopic", topic, "Topic that reactions subscribe to", group=shared.outputs)

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
