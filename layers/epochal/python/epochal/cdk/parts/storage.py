"""What must outlive everything else: tables, and the bucket of large bodies and projection states.

Names are explicit, so that a table that outlived its stack is found again, by hand or by `existing_tips` and its like
(docs/deploy.md).
"""

from __future__ import annotations

from typing import Final, cast

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.cdk.parts.buckets import private_bucket
from epochal.cdk.parts.environments import settings_of
from epochal.cdk.parts.names import changes_of
from epochal.cdk.parts.outputs import output
from epochal.cdk.parts.stores import UPLOADS, Stores, specs_of
from epochal.cdk.parts.tables import keyed_table
from epochal.cdk.stages import Stage
from epochal.layout.registry import declared
from epochal.plan.tables import TableSpec


class Storage:
    """The tables of every layout, the index, and the bucket, as children of `scope`.

    Attributes:
        streams: ARNs of the tables' streams, of those that somebody follows, by the kind of their table.
        changes: the Kinesis stream that tables of heads send their changes to; None where the stage has none.
    """

    def __init__(self, scope: Construct, *, stage: Stage, outputs: str = "") -> None:
        self._scope: Final = scope
        self.key: Final = kms.Key.from_key_arn(scope, "Key", stage.kms_key) if stage.kms_key else None
        self.changes: Final = self._changes(stage) if stage.feed_kinesis_shards else None
        self.tables: Final = {spec.kind: self._table(spec, stage) for spec in specs_of(stage)}
        self.streams: Final = {
            spec.kind: cast(str, self.tables[spec.kind].table_stream_arn)
            for spec in specs_of(stage)
            if spec.stream
        }
        self.stores: Final = Stores(tables=self.tables, bucket=self._bucket(stage), key=self.key)
        self._outputs(stage, outputs)

    def _table(self, spec: TableSpec, stage: Stage) -> dynamodb.ITableV2:
        words = spec.kind.split("-")
        return keyed_table(
            self._scope,
            "".join(word.capitalize() for word in words),
            spec=spec,
            stage=stage,
            key=self.key,
            existing=stage.existing(spec.kind),
            changes=self.changes if spec.kind in stage.sending() else None,
        )

    def _changes(self, stage: Stage) -> kinesis.Stream:
        """It keeps changes for a day, as tables' streams do, and has nothing that the tables do not have."""
        return kinesis.Stream(
            self._scope,
            "Changes",
            stream_name=changes_of(stage),
            stream_mode=kinesis.StreamMode.PROVISIONED,
            shard_count=stage.feed_kinesis_shards,
            encryption=kinesis.StreamEncryption.KMS if self.key else kinesis.StreamEncryption.MANAGED,
            encryption_key=self.key,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _bucket(self, stage: Stage) -> s3.IBucket:
        """Nothing in it expires but uploads that nobody claimed: an event may refer to a body for ever, a state is live
        until it is replaced.

        The library deletes states that nothing names any more; bodies stay, since equal ones share an object.
        """
        if stage.existing_bucket:
            return s3.Bucket.from_bucket_attributes(
                self._scope, "Bodies", bucket_name=stage.existing_bucket, encryption_key=self.key
            )
        return private_bucket(
            self._scope, "Bodies", kind="bodies", stage=stage, key=self.key, rules=_unclaimed()
        )

    def _outputs(self, stage: Stage, of: str) -> None:
        """What a client past the API must know to find what is stored."""
        values = settings_of(stage, self.stores).outputs()
        for each in declared().values():
            if each.output in values:
                output(self._scope, each.output, values[each.output], each.help, of=of)


def _unclaimed() -> list[s3.LifecycleRule]:
    """An upload goes after a day, and the version that is left of it after another: a claim has copied it by then.

    A marker of the deletion is a rule of its own, as S3 has it.
    """
    day = Duration.days(1)
    return [
        s3.LifecycleRule(id="unclaimed", prefix=UPLOADS, expiration=day, noncurrent_version_expiration=day),
        s3.LifecycleRule(id="unclaimed-markers", prefix=UPLOADS, expired_object_delete_marker=True),
    ]
