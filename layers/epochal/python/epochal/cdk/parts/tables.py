"""A table from its specification, and the promises a deployment adds to it: recovery, encryption, retention.

`TableV2`, always with a name of its own: a second region then is a property of this resource instead of a new
table, and a table that outlived its stack can be found again. An existing table is referenced by its stream's
ARN, which names the table as well, or by its own where it needs no stream.

A replica is what the table is: keys, indexes, expiry, recovery, protection. A table of several regions has to have a
stream, and DynamoDB gives it none in the update that adds a region. So every table has one from the beginning; where
nobody reads it, it costs nothing and holds keys alone. That stream stays where a table sends its changes to Kinesis
too: a stage that no longer wants that finds the last day in it.
"""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from constructs import Construct

from epochal.cdk.stages import Stage
from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec

_TYPES = {
    "S": dynamodb.AttributeType.STRING,
    "N": dynamodb.AttributeType.NUMBER,
    "B": dynamodb.AttributeType.BINARY,
}


def keyed_table(
    scope: Construct,
    id_: str,
    *,
    spec: TableSpec,
    stage: Stage,
    key: kms.IKey | None,
    existing: str = "",
    changes: kinesis.IStream | None = None,
) -> dynamodb.ITableV2:
    """The table of `spec` in `stage`: made, or taken over where `existing` is its ARN or its stream's.

    One that is made sends its changes to `changes`; its replica, which nobody writes to, sends none.
    """
    if existing:
        return dynamodb.TableV2.from_table_attributes(
            scope,
            id_,
            table_arn=existing.partition("/stream/")[0],
            table_stream_arn=existing if spec.stream else None,
            encryption_key=key,
        )
    return dynamodb.TableV2(
        scope,
        id_,
        table_name=stage.named(spec.kind),
        partition_key=_attribute(spec.partition),
        sort_key=_attribute(spec.sort) if spec.sort else None,
        global_secondary_indexes=[_index(index) for index in spec.indexes] or None,
        time_to_live_attribute=spec.ttl,
        kinesis_stream=changes,
        dynamo_stream=dynamodb.StreamViewType.NEW_IMAGE if spec.stream else dynamodb.StreamViewType.KEYS_ONLY,
        billing=_billing(stage),
        encryption=_encryption(stage, key),
        point_in_time_recovery_specification=_recovery(stage),
        deletion_protection=stage.deletion_protection,
        replicas=_replicas(stage),
        removal_policy=RemovalPolicy.RETAIN if stage.retain else RemovalPolicy.DESTROY,
    )


def _attribute(key: KeyAttribute) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=key.name, type=_TYPES[key.type])


def _index(spec: IndexSpec) -> dynamodb.GlobalSecondaryIndexPropsV2:
    projection = dynamodb.ProjectionType.KEYS_ONLY if spec.keys_only else dynamodb.ProjectionType.ALL
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=spec.name,
        partition_key=_attribute(spec.partition),
        sort_key=_attribute(spec.sort) if spec.sort else None,
        projection_type=projection,
    )


def _replicas(stage: Stage) -> list[dynamodb.ReplicaTableProps] | None:
    """What is said of the table itself holds for each; to say nothing of replicas leaves a stack's region open."""
    return [dynamodb.ReplicaTableProps(region=stage.replica_region)] if stage.replica_region else None


def _encryption(stage: Stage, key: kms.IKey | None) -> dynamodb.TableEncryptionV2 | None:
    """A key of one's own, which exists in one region: a replica has another."""
    if key is None:
        return None
    keys = {stage.replica_region: stage.replica_kms_key} if stage.replica_region else None
    return dynamodb.TableEncryptionV2.customer_managed_key(key, keys)


def _billing(stage: Stage) -> dynamodb.Billing:
    if stage.billing == "provisioned":
        return dynamodb.Billing.provisioned(
            read_capacity=_autoscaled(stage.min_read_units, stage.max_read_units),
            write_capacity=_autoscaled(stage.min_write_units, stage.max_write_units),
        )
    return dynamodb.Billing.on_demand(
        max_read_request_units=stage.max_read_units or None,
        max_write_request_units=stage.max_write_units or None,
    )


def _autoscaled(least: int, most: int) -> dynamodb.Capacity:
    """A table that was on demand is refused without a seed: what it has until autoscaling is there."""
    return dynamodb.Capacity.autoscaled(min_capacity=least, max_capacity=most, seed_capacity=least)


def _recovery(stage: Stage) -> dynamodb.PointInTimeRecoverySpecification:
    return dynamodb.PointInTimeRecoverySpecification(
        point_in_time_recovery_enabled=stage.recovery_days > 0,
        recovery_period_in_days=stage.recovery_days or None,
    )
