"""What must outlive everything else: tables and the bucket of large bodies.

Its own stack, because it is the only one that holds data: the others can be deleted and deployed again, and
this one refuses to go in production. Names are explicit, so that a table that outlived its stack is found
again, by hand or by `existing_tips` and its like (docs/deploy.md).
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.layout.tables import INDEX, JOURNAL, SNAPSHOT, TIPS
from stacks.parts.buckets import private_bucket
from stacks.parts.tables import keyed_table
from stacks.stages import Stage

BODIES: Final = "bodies/"
"""Where the library keeps bodies too large for an item."""


class StoreStack(Stack):
    """Tables `tips`, `index`, `journal` and `snapshot`, and the bucket."""

    def __init__(self, scope: Construct, id_: str, *, stage: Stage, **stack: Any) -> None:
        super().__init__(scope, id_, **stack)
        self.key: Final = kms.Key.from_key_arn(self, "Key", stage.kms_key) if stage.kms_key else None
        self.tips: Final = keyed_table(
            self, "Tips", spec=TIPS, stage=stage, key=self.key, existing=stage.existing_tips
        )
        self.index: Final = keyed_table(
            self, "Index", spec=INDEX, stage=stage, key=self.key, existing=stage.existing_index
        )
        self.journal: Final = keyed_table(
            self, "Journal", spec=JOURNAL, stage=stage, key=self.key, existing=stage.existing_journal
        )
        self.snapshot: Final = keyed_table(
            self, "Snapshot", spec=SNAPSHOT, stage=stage, key=self.key, existing=stage.existing_snapshot
        )
        self.bucket: Final = self._bucket(stage)
        CfnOutput(self, "TipsTable", value=self.tips.table_name, description="Table of streams")
        CfnOutput(self, "IndexTable", value=self.index.table_name, description="Table of the feed")
        CfnOutput(self, "JournalTable", value=self.journal.table_name, description="Events of aggregates")
        CfnOutput(self, "SnapshotTable", value=self.snapshot.table_name, description="Heads of aggregates")
        CfnOutput(
            self, "JournalShards", value=str(stage.journal_shards), description="Shards of aggregates' keys"
        )
        CfnOutput(self, "BucketName", value=self.bucket.bucket_name, description="Bucket of large bodies")

    def _bucket(self, stage: Stage) -> s3.IBucket:
        """Bodies never expire: an event may refer to one for ever, and equal bodies share an object."""
        if stage.existing_bucket:
            return s3.Bucket.from_bucket_attributes(
                self, "Bodies", bucket_name=stage.existing_bucket, encryption_key=self.key
            )
        return private_bucket(self, "Bodies", kind="bodies", stage=stage, key=self.key, rules=[])
