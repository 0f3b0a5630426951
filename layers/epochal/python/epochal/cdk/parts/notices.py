"""The notifier: changes of the index in, one notice for each partition that has moved out (FORMATS §5).

A notice is a wake-up and carries no data, so what becomes of one may be decided lightly:

    a batch is published at once           waiting would add to the time from append to reaction
    it is tried again for most of an hour  later notices, and reactions' schedules, make up for what is given up
    what is given up goes to the bucket    as the indexer's, with its cause
    a new mapping tells all that is there  the topic drops what it has had lately, and a reaction that has got
                                           further does nothing

The topic is FIFO, so that notices of a partition come one after the other, and are deduplicated by what they say.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from epochal.cdk.parts import grants, heads
from epochal.cdk.parts.functions import Function, Shared
from epochal.cdk.parts.storage import MAX_AGE_SECONDS, RETRIES, Failures
from epochal.cdk.parts.stores import Stores, topic_of
from epochal.cdk.stages import Stage
from epochal.settings import Settings

BATCH_SIZE: Final = 100
"""Changes of Tips, which are whole epochs' ends: a record may have tens of kilobytes, a batch at most 6 MB."""

TIMEOUT: Final = Duration.seconds(30)


class Notices(Construct):
    """The topic, the function `notifier`, and its mapping to the stream of the index."""

    def __init__(
        self, scope: Construct, id_: str, shared: Shared, *, failures: Failures, stream: str
    ) -> None:
        super().__init__(scope, id_)
        stage, stores = shared.stage, shared.stores
        self.topic: Final = self._topic(stage, stores)
        self._stream: Final = stream
        self.notifier: Final = Function(
            self,
            "Notifier",
            name="notifier",
            description="tells reactions which partitions of the index have moved",
            shared=shared,
            timeout=TIMEOUT,
            environment=Settings(topic=self.topic.topic_arn).environment("notifier"),
            allowed=[
                *grants.on_streams([self._stream]),
                grants.on_topic(self.topic, *grants.batched("Publish", named=stage.batches_named)),
                *failures.reporting(),
                *grants.on_key(stores.key, write=True),
            ],
        ).function
        self.mapping: Final = self._mapping(failures)

    def _topic(self, stage: Stage, stores: Stores) -> sns.Topic:
        return sns.Topic(
            self,
            "Topic",
            topic_name=topic_of(stage),
            fifo=True,
            # A notice says where a partition is: that it has been there already is what makes it a duplicate.
            content_based_deduplication=False,
            # Limits and deduplication by partition, or all partitions would share 300 notices a second.
            fifo_throughput_scope=sns.FifoThroughputScope.MESSAGE_GROUP,
            master_key=stores.key,
            enforce_ssl=stage.tls_only,
        )

    def _mapping(self, failures: Failures) -> lambda_.CfnEventSourceMapping:
        mapping = lambda_.CfnEventSourceMapping
        return mapping(
            self,
            "Index",
            function_name=self.notifier.function_name,
            event_source_arn=self._stream,
            # Not LATEST: what changes while a mapping is being made would never be told of.
            starting_position="TRIM_HORIZON",
            batch_size=BATCH_SIZE,
            maximum_batching_window_in_seconds=0,
            filter_criteria=mapping.FilterCriteriaProperty(
                filters=[mapping.FilterProperty(pattern=heads.epochs())]
            ),
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=RETRIES,
            maximum_record_age_in_seconds=MAX_AGE_SECONDS,
            destination_config=failures.destination(),
            metrics_config=mapping.MetricsConfigProperty(metrics=["EventCount"]),
        )
