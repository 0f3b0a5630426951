"""Tables from their specifications, with the recovery, encryption and retention that a deployment adds.

Each is a `TableV2` with an explicit name: a second region then is a property of this resource instead of a new
table, and a table that outlived its stack can be found again. An existing table is referenced by its stream's
ARN, which names the table as well, or by its own where it needs no stream.

A replica has the properties of its table: keys, indexes, expiry, recovery, protection. A table of several regions
has to have a stream, and DynamoDB gives it none in the update that adds a region. So every table has one from the
beginning; a stream without readers costs nothing and holds keys alone. A table that sends its changes to Kinesis
keeps its stream: a stage that stops sending them finds the changes of the last day in the stream.
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
    """Make the table of a specification, or refer to the existing table.

    A new table sends its changes to `changes`; its replica, which is never written to, sends none.

    Args:
        spec: keys, indexes and stream of the table.
        key: customer managed key; None for a key that AWS owns.
        existing: ARN of an existing table or of its stream; empty to make the table.
        changes: Kinesis stream of changes; None for none.
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
        global_secondary_indexes=[_index(index, stage) for index in spec.indexes] or None,
        time_to_live_attribute=spec.ttl,
        kinesis_stream=changes,
        dynamo_stream=dynamodb.StreamViewType.NEW_IMAGE if spec.stream else dynamodb.StreamViewType.KEYS_ONLY,
        billing=_billing(stage),
        warm_throughput=_warm_throughput(stage),
        encryption=_encryption(stage, key),
        point_in_time_recovery_specification=_recovery(stage),
        table_class=_class(stage, spec),
        deletion_protection=stage.deletion_protection,
        replicas=_replicas(stage),
        removal_policy=RemovalPolicy.RETAIN if stage.retain else RemovalPolicy.DESTROY,
    )


def _class(stage: Stage, spec: TableSpec) -> dynamodb.TableClass | None:
    """Return the table class Standard-IA, or None for the default, which leaves existing tables unchanged."""
    return dynamodb.TableClass.STANDARD_INFREQUENT_ACCESS if stage.is_infrequent(spec.kind) else None


def _attribute(key: KeyAttribute) -> dynamodb.Attribute:
    """Convert a key attribute to CDK's form."""
    return dynamodb.Attribute(name=key.name, type=_TYPES[key.type])


def _index(spec: IndexSpec, stage: Stage) -> dynamodb.GlobalSecondaryIndexPropsV2:
    """Convert the specification of a secondary index to CDK's form."""
    projection = dynamodb.ProjectionType.KEYS_ONLY if spec.keys_only else dynamodb.ProjectionType.ALL
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=spec.name,
        partition_key=_attribute(spec.partition),
        sort_key=_attribute(spec.sort) if spec.sort else None,
        projection_type=projection,
        warm_throughput=_warm_throughput(stage),
    )


def _warm_throughput(stage: Stage) -> dynamodb.WarmThroughput | None:
    """Return the warm throughput of a table or an index; None for DynamoDB's own."""
    if not stage.warm_read_units and not stage.warm_write_units:
        return None
    return dynamodb.WarmThroughput(
        read_units_per_second=stage.warm_read_units or None,
        write_units_per_second=stage.warm_write_units or None,
    )


def _replicas(stage: Stage) -> list[dynamodb.ReplicaTableProps] | None:
    """Return the replica of a table in the stage's second region; None where there is none.

    The table's settings hold for its replica. None leaves the stack's region open.
    """
    return [dynamodb.ReplicaTableProps(region=stage.replica_region)] if stage.replica_region else None


def _encryption(stage: Stage, key: kms.IKey | None) -> dynamodb.TableEncryptionV2 | None:
    """Return the encryption of a table and its replica, whose region needs its own key; None by default."""
    if key is None:
        return None
    keys = {stage.replica_region: stage.replica_kms_key} if stage.replica_region else None
    return dynamodb.TableEncryptionV2.customer_managed_key(key, keys)


def _billing(stage: Stage) -> dynamodb.Billing:
    """Return the billing of a stage's tables: on demand with limits, or provisioned with autoscaling."""
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
    """Return provisioned capacity with autoscaling between `least` and `most` units.

    The seed is the capacity until autoscaling begins; DynamoDB refuses a former on-demand table without a seed.
    """
    return dynamodb.Capacity.autoscaled(min_capacity=least, max_capacity=most, seed_capacity=least)


def _recovery(stage: Stage) -> dynamodb.PointInTimeRecoverySpecification:
    """Return the point-in-time recovery of a stage's tables."""
    return dynamodb.PointInTimeRecoverySpecification(
        point_in_time_recovery_enabled=stage.recovery_days > 0,
        recovery_period_in_days=stage.recovery_days or None,
    )
