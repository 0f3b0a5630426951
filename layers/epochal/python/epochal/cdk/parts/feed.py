"""The indexer: heads from the streams of the layouts' tables in, entries of epochs out (DESIGN §5.7 to
5.10).

One function, because its code is one; an event source mapping for each layout, because each stream has records of its
own to wait for and to give up on. A mapping decides what a failure costs. The rules of all of them,
with the numbers below:

    only heads wake the function        what else changes is filtered out before it is paid for (`heads.py`)
    a batch may fail in part            what the function reports is retried, what came before it stands
    a batch that raises is halved       until what makes it raise stands alone, and its neighbours have passed
    nothing blocks a shard for a day    retries end; what they end with goes to a bucket, whole
    nothing is lost with it             the stream's next append finds the gap and heals it from the store

A stage may have its tables send their changes to one Kinesis stream (`feed_kinesis_shards`). Then one mapping takes the
place of those of the tables' streams, under the same rules.

Beside it stand the notifier, which tells reactions what the indexer has got to (`notices.py`), and the auditor, which
looks after what nobody told the indexer (`audit.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.audit import AuditResources
from epochal.cdk.parts.functions import Function, Shared, settings_of
from epochal.cdk.parts.heads import heads_of, heads_sent
from epochal.cdk.parts.notices import Notices
from epochal.cdk.parts.storage import MAX_AGE_SECONDS, RETRIES, Failures
from epochal.cdk.parts.stores import changes_of, output
from epochal.cdk.stages import Stage
from epochal.layout.tables import INDEX
from epochal.plan.tables import TableSpec
from epochal.plugins import layouts
from epochal.settings import Settings

PARALLELIZATION: Final = 1
"""More would divide a shard by stream, while entries are divided by partition: every invocation would meet the others
at every epoch. DynamoDB adds shards with the load, and each has an invocation of its own anyway."""

POLLING_SECONDS: Final = 1
"""Lambda asks a Kinesis shard for records once a second, and a table's stream four times: what gathers in that second
need not be waited for again."""

TIMEOUT: Final = Duration.minutes(2)
"""A batch takes a second or two; healing a long gap and waiting out throttling take longer."""


class Feed:
    """The indexer, the notifier, what wakes them, and where their failures go, as children of `scope`.

    Attributes:
        mappings: of the indexer, by the kind of their table; `changes` is that of what tables send to Kinesis.
    """

    def __init__(
        self,
        scope: Construct,
        shared: Shared,
        streams: Mapping[str, str],
        changes: kinesis.IStream | None = None,
    ) -> None:
        """Make them.

        Args:
            scope: what they are children of.
            shared: what functions have in common.
            streams: ARNs of tables' streams, by the kinds of the tables.
            changes: the Kinesis stream that tables send changes to, where this stack makes it; else its name tells.
        """
        stage, stores = shared.stage, shared.stores
        self._scope: Final = scope
        self._failures: Final = Failures(scope, stage=stage, key=stores.key)
        settings, window = Settings(service=stage.service), stage.feed_window_seconds
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
                _id(port.heads), streams[kind], [heads_of(port.source(settings))], stage, window
            )
            for kind, port in ports.items()
        }
        if sending:
            sent = [heads_sent(port.source(settings), stage.named(kind)) for kind, port in sending.items()]
            waited = max(0, window - POLLING_SECONDS)
            self.mappings["changes"] = self._mapping("Changes", sent_to, sent, stage, waited)
        self.notices: Final = Notices(
            scope, "Notices", shared, failures=self._failures, stream=streams[INDEX.kind]
        )
        self.audit: Final = AuditResources(
            scope, "Audit", shared, [*self.mappings.values(), self.notices.mapping]
        )
        topic = self.notices.topic.topic_arn
        output(scope, "NoticesTopic", topic, "Topic that reactions subscribe to", of=shared.outputs)

    def _indexer(self, shared: Shared, following: Sequence[iam.PolicyStatement]) -> lambda_.Function:
        stage, stores = shared.stage, shared.stores
        return Function(
            self._scope,
            "Indexer",
            name="indexer",
            description="heads from the streams of tables into epochs of the index",
            shared=shared,
            timeout=TIMEOUT,
            environment=settings_of(stage, stores).environment("indexer"),
            allowed=[*following, *self._failures.reporting(), *grants.indexer(stage, stores)],
        ).function

    def _mapping(
        self, id_: str, stream_arn: str, heads: Sequence[str], stage: Stage, window: int
    ) -> lambda_.CfnEventSourceMapping:
        """CloudFormation's own resource: the construct above it would grant more for the destination."""
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
    """The Kinesis stream that another stack makes: unlike a table's stream, it is called as the stage says."""
    return Stack.of(scope).format_arn(
        service="kinesis",
        resource="stream",
        resource_name=changes_of(stage),
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )


def _id(heads: TableSpec) -> str:
    """The id of a table's mapping.

    The first layout's is from when it was the only one: another id is another mapping of the same stream, which Lambda
    refuses as long as the first one is there.
    """
    return "Heads" if heads is layouts()[0].port.heads else f"{heads.kind.capitalize()}Heads"
