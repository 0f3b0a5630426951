"""What must outlive everything else: tables, and the bucket of large bodies and projection states.

Its own stack, because it is the only one that holds data: the others can be deleted and deployed again, and
this one refuses to go in production. Names are explicit, so that a table that outlived its stack is found
again, by hand or by `existing_tips` and its like (docs/deploy.md).
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import CfnOutput, CfnResource, CfnWaitConditionHandle, Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.plan.tables import TableSpec
from epochal.settings import PROJECTIONS
from stacks.parts.buckets import private_bucket
from stacks.parts.stores import UPLOADS, Stores, specs_of
from stacks.parts.tables import keyed_table
from stacks.stages import Stage


class StoreStack(Stack):
    """The tables of every layout, the index, and the bucket."""

    def __init__(self, scope: Construct, id_: str, *, stage: Stage, **stack: Any) -> None:
        super().__init__(scope, id_, **stack)
        self.key: Final = kms.Key.from_key_arn(self, "Key", stage.kms_key) if stage.kms_key else None
        self.tables: Final = {spec.kind: self._table(spec, stage) for spec in specs_of(stage)}
        self.stores: Final = Stores.of(self.tables, bucket=self._bucket(stage), key=self.key)
        self._outputs(stage)
        self._exist()

    def _table(self, spec: TableSpec, stage: Stage) -> dynamodb.ITableV2:
        words = spec.kind.split("-")
        return keyed_table(
            self,
            "".join(word.capitalize() for word in words),
            spec=spec,
            stage=stage,
            key=self.key,
            existing=stage.existing(spec.kind),
        )

    def _bucket(self, stage: Stage) -> s3.IBucket:
        """Nothing in it expires but uploads that nobody claimed: an event may refer to a body for ever, a state is live
        until it is replaced.

        The library deletes states that nothing names any more; bodies stay, since equal ones share an object.
        """
        if stage.existing_bucket:
            return s3.Bucket.from_bucket_attributes(
                self, "Bodies", bucket_name=stage.existing_bucket, encryption_key=self.key
            )
        return private_bucket(self, "Bodies", kind="bodies", stage=stage, key=self.key, rules=_unclaimed())

    def _outputs(self, stage: Stage) -> None:
        """What a client past the API must know to find what is stored."""
        values = {
            "TipsTable": (self.stores.tips.table_name, "Table of streams"),
            "IndexTable": (self.stores.index.table_name, "Table of the feed"),
            "JournalTable": (self.stores.journal.table_name, "Events of aggregates"),
            "SnapshotTable": (self.stores.snapshot.table_name, "Heads of aggregates"),
            "JournalShards": (str(stage.journal_shards), "Shards of aggregates' keys"),
            "JournalKeys": (stage.journal_keys, "Library by whose hash aggregates' keys are made"),
            "JournalSerializer": (stage.journal_serializer, "Library as which aggregates are written"),
            "EventsTable": (self.stores.events.table_name, "Tagged events"),
            "TagsTable": (self.stores.tags.table_name, "Heads and entries of tags"),
            "WriteShards": (str(stage.write_shards), "Shards of the index of all tagged events"),
            "Equinox": (flag(stage.equinox), "Whether Equinox applications use the table of streams too"),
            "TypeHeads": (flag(stage.type_heads), "Whether there are conditions by type alone"),
            "ProjectionStatesTable": (self.stores.projection_states.table_name, "States of projections"),
            "StatesPrefix": (PROJECTIONS, "Where large states lie in the bucket"),
            "BucketName": (self.stores.bucket.bucket_name, "Bucket of large bodies and states"),
        }
        if self.stores.archive:
            values["ArchiveTable"] = (self.stores.archive.table_name, "Streams as they were before pruning")
        if self.stores.read_models:
            values["ReadModelsTable"] = (self.stores.read_models.table_name, "Read models of reactions")
        # An output may not be empty.
        if stage.aggregate_types:
            values["AggregateTypes"] = (",".join(stage.aggregate_types), "Types of aggregates, as declared")
        if stage.service:
            values["Service"] = (stage.service, "Tenant of tagged events and projection states")
        for name, (value, description) in values.items():
            CfnOutput(self, name, value=value, description=description)

    def _exist(self) -> None:
        """Where everything is taken over, make what costs and does nothing.

        A stack without resources is not deployed, or deleted where it was, and with it go the outputs.
        """
        if not any(CfnResource.is_cfn_resource(each) for each in self.node.find_all()):
            CfnWaitConditionHandle(self, "Nothing")


def _unclaimed() -> list[s3.LifecycleRule]:
    """An upload goes after a day, and the version that is left of it after another: a claim has copied it by then.

    A marker of the deletion is a rule of its own, as S3 has it.
    """
    day = Duration.days(1)
    return [
        s3.LifecycleRule(id="unclaimed", prefix=UPLOADS, expiration=day, noncurrent_version_expiration=day),
        s3.LifecycleRule(id="unclaimed-markers", prefix=UPLOADS, expired_object_delete_marker=True),
    ]


def flag(value: bool) -> str:
    """A flag as environments and outputs have it."""
    return "true" if value else "false"
