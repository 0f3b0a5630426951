"""Notices: after each batch, the indexer publishes which partitions have new entries (FORMATS §5).

A notice is a wake-up and carries no data. If a notice cannot be published, its batch is delivered once more; after
that, later batches and reactions' schedules make up for it: the index does not wait for a topic.

The topic is FIFO, so that notices of a partition arrive one after the other, and are deduplicated by their content.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_sns as sns
from constructs import Construct

from epochal.cdk.parts import iam_statements
from epochal.cdk.parts.functions import Shared
from epochal.cdk.parts.resource_names import topic_of


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
        self.publishing: Final = iam_statements.on_topic(
            self.topic, *iam_statements.batched("Publish", named=stage.batches_named)
        )
