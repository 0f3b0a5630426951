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

from epochal.layout.registry import declared
from epochal.plan.tables import TableSpec
from stacks.environments import settings_of
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
        self.stores: Final = Stores(tables=self.tables, bucket=self._bucket(stage), key=self.key)
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
        values = settings_of(stage, self.stores).outputs()
        for each in declared().values():
            if each.output in values:
                CfnOutput(self, each.output, value=values[each.output], description=each.help)

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
