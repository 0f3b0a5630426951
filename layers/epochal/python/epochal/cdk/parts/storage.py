"""The stored data of a deployment: it creates tables and the bucket of large bodies and projection states, or finds
existing ones by name.

They must outlive all other resources.
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
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.iam_statements import UPLOADS
from epochal.cdk.parts.outputs import output
from epochal.cdk.parts.resource_names import changes_of
from epochal.cdk.parts.stores import Stores
from epochal.cdk.parts.tables import keyed_table
from epochal.cdk.stages import Stage
from epochal.layout.registry import declared
from epochal.plan.tables import TableSpec


class Storage:
    """The tables of every layout, the index, and the bucket, as children of a construct.

    Attributes:
        key: customer managed key of tables and bucket; None for keys that AWS owns.
        tables: tables by their kinds.
        streams: ARNs of the tables' streams that are followed, by kind of table.
        changes: the Kinesis stream to which tables of heads send their changes; None where the stage has none.
        stores: the tables, the bucket and the key.
    """

    def __init__(self, scope: Construct, *, stage: Stage, outputs: str = "") -> None:
        """Make or find the tables and the bucket; make the Kinesis stream, if configured, and the outputs.

        Args:
            scope: parent construct.
            outputs: prefix of the outputs' names.
        """
        self._scope: Final = scope
        self.key: Final = kms.Key.from_key_arn(scope, "Key", stage.kms_key) if stage.kms_key else None
        self.changes: Final = self._changes(stage) if stage.feed_kinesis_shards else None
        self.tables: Final = {spec.kind: self._table(spec, stage) for spec in stage.tables()}
        self.streams: Final = {
            spec.kind: cast(str, self.tables[spec.kind].table_stream_arn)
            for spec in stage.tables()
            if spec.stream
        }
        self.stores: Final = Stores(tables=self.tables, bucket=self._bucket(stage), key=self.key)
        self._outputs(stage, outputs)

    def _table(self, spec: TableSpec, stage: Stage) -> dynamodb.ITableV2:
        """Make the table of a specification, or refer to the existing one."""
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
        """Make the Kinesis stream of changes, which keeps them for a day, as tables' streams do.

        It can be deleted with its stack, since the tables hold the same data.
        """
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
        """Make the bucket of bodies and states, or refer to the existing one.

        Only unclaimed uploads expire: an event may refer to a body for ever, and a state is live until it is replaced.
        The library deletes states that nothing refers to any more; bodies stay, since equal bodies share an object.
        """
        if stage.existing_bucket:
            return s3.Bucket.from_bucket_attributes(
                self._scope, "Bodies", bucket_name=stage.existing_bucket, encryption_key=self.key
            )
        return private_bucket(
            self._scope, "Bodies", kind="bodies", stage=stage, key=self.key, rules=_unclaimed()
        )

    def _outputs(self, stage: Stage, prefix: str) -> None:
        """Make outputs by which a client of the tables finds them and their settings."""
        values = settings_of(stage, self.stores).outputs()
        for setting in declared().values():
            if setting.output in values:
                output(self._scope, setting.output, values[setting.output], setting.help, group=prefix)


def _unclaimed() -> list[s3.LifecycleRule]:
    """Return lifecycle rules that delete uploads after a day, and their old versions after another.

    A claim has copied its upload by then. S3 needs a separate rule for the markers of deletions.
    """
    day = Duration.days(1)
    return [
        s3.LifecycleRule(id="unclaimed", prefix=UPLOADS, expiration=day, noncurrent_version_expiration=day),
        s3.LifecycleRule(id="unclaimed-markers", prefix=UPLOADS, expired_object_delete_marker=True),
    ]
