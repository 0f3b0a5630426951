"""The stored data of a deployment, made or found by name: tables, and the bucket of large bodies and projection states.
They must outlive all other resources.

Names are explicit, so that a table that outlived its stack is found again, by hand or by settings such as
`existing_tips` (docs/deploy.md). They are the same in every deployment of a stage, so a stack needs no export of
another stack to use its resources. All stacks of Epochal's find each other in this way: CloudFormation refuses to
delete or change an export as long as it is imported, and every table may be left out or taken over one day.

The ARN of a table's stream cannot be derived from the table's name: the stack that makes the table writes the ARN to a
parameter of Parameter Store, from which other stacks read it. CloudFormation reads the parameter while it plans an
update, so it sees whether the ARN has changed; `Fn::GetStackOutput` is read too late for that, and an unchanged mapping
would be replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.functions import settings_of
from epochal.cdk.parts.grants import UPLOADS
from epochal.cdk.stages import Stage
from epochal.layout.registry import declared
from epochal.layout.tables import INDEX
from epochal.lazy_dataclasses import dataclass
from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The tables and the bucket of a store, and their encryption key.

    Attributes:
        tables: tables by their kinds.
        bucket: bucket of bodies and states.
        key: customer managed key of tables and bucket; None for keys that AWS owns.
    """

    tables: Mapping[str, dynamodb.ITableV2]
    bucket: s3.IBucket
    key: kms.IKey | None

    @classmethod
    def named(cls, scope: Construct, stage: Stage) -> Stores:
        """Refer by name to the stores of a stage deployed in the same account and region."""
        tables = {spec.kind: _table(scope, spec.kind, stage) for spec in stage.tables()}
        bucket = stage.existing_bucket or f"{stage.named('bodies')}-{Aws.ACCOUNT_ID}-{Aws.REGION}"
        return cls(
            tables=tables,
            bucket=s3.Bucket.from_bucket_name(scope, "Bodies", bucket),
            key=kms.Key.from_key_arn(scope, "Key", stage.kms_key) if stage.kms_key else None,
        )


def streams_named(scope: Construct, stage: Stage) -> dict[str, str]:
    """Return the ARNs of streams to follow, by kind of table, where another stack makes the tables."""
    sending = stage.sending()
    return {
        spec.kind: stage.existing(spec.kind)
        or ssm.StringParameter.value_for_string_parameter(scope, stream_of(stage, spec.kind))
        for spec in stage.tables()
        if spec.stream and spec.kind not in sending and spec.kind != INDEX.kind
    }


def _table(scope: Construct, kind: str, stage: Stage) -> dynamodb.ITableV2:
    """Refer to a table by its name or ARN, without its stream."""
    id_, existing = f"Table-{kind}", stage.existing(kind)
    if existing:
        return dynamodb.TableV2.from_table_arn(scope, id_, existing.partition("/stream/")[0])
    return dynamodb.TableV2.from_table_name(scope, id_, stage.named(kind))


# Names by which parts of a deployment find each other without exports.


def topic_of(stage: Stage) -> str:
    """Return the name of the topic of notices."""
    return f"{stage.named('notices')}.fifo"


def stream_of(stage: Stage, kind: str) -> str:
    """Return the name of the parameter in Parameter Store that holds the ARN of a table's stream.

    A stream's ARN cannot be derived from the table's name.
    """
    return f"/epochal/{stage.named('')}/streams/{kind}"


def changes_of(stage: Stage) -> str:
    """Return the name of the Kinesis stream to which tables of heads send their changes."""
    return stage.named("changes")


def function_of(reaction: str) -> str:
    """Return the kind of a reaction's function, from which `stage.named` makes its name."""
    return f"reaction-{reaction}"


def queue_of(stage: Stage, reaction: str, *, failed: bool = False) -> str:
    """Return the name of a reaction's queue of wake-ups, or of its dead-letter queue."""
    return f"{stage.named(function_of(reaction))}{'-failed' if failed else ''}.fifo"


# Outputs, by which commands, clients and the local deployment find a stack's resources by the stack's name alone.


def output(scope: Construct, name: str, value: str, description: str, *, of: str = "") -> CfnOutput:
    """Make an output of the stack of `scope`, called by `name` whatever the depth of `scope`.

    Args:
        of: prefix of the output's name.
    """
    made = CfnOutput(scope, name, value=value, description=description)
    made.override_logical_id(of + name)
    return made


def whose(scope: Construct, name: str) -> str:
    """Return the prefix of the names of a store's outputs: empty for the first store of a stack.

    Args:
        name: id of the store's construct.
    """
    stack = Stack.of(scope)
    if stack.node.try_find_child(_FIRST) is None:
        Construct(stack, _FIRST)
        return ""
    return "".join(each for each in name if each.isalnum())


_FIRST = "EpochalOutputs"
"""Id of the construct that marks a stack whose outputs without a prefix are taken."""


# Tables and the bucket of a store, made or taken over.


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
        """Make the tables, the bucket, the Kinesis stream, and their outputs.

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

    def _outputs(self, stage: Stage, of: str) -> None:
        """Make outputs by which a client of the tables finds them and their settings."""
        values = settings_of(stage, self.stores).outputs()
        for each in declared().values():
            if each.output in values:
                output(self._scope, each.output, values[each.output], each.help, of=of)


def _unclaimed() -> list[s3.LifecycleRule]:
    """Return lifecycle rules that delete uploads after a day, and their old versions after another.

    A claim has copied its upload by then. S3 needs a separate rule for the markers of deletions.
    """
    day = Duration.days(1)
    return [
        s3.LifecycleRule(id="unclaimed", prefix=UPLOADS, expiration=day, noncurrent_version_expiration=day),
        s3.LifecycleRule(id="unclaimed-markers", prefix=UPLOADS, expired_object_delete_marker=True),
    ]


# Tables from their specifications, with the recovery, encryption and retention that a deployment adds.
#
# Each is a `TableV2` with an explicit name: a second region then is a property of this resource instead of a new
# table, and a table that outlived its stack can be found again. An existing table is referenced by its stream's
# ARN, which names the table as well, or by its own where it needs no stream.
#
# A replica has the properties of its table: keys, indexes, expiry, recovery, protection. A table of several regions
# has to have a stream, and DynamoDB gives it none in the update that adds a region. So every table has one from the
# beginning; a stream without readers costs nothing and holds keys alone. A table that sends its changes to Kinesis
# keeps its stream: a stage that stops sending them finds the changes of the last day in the stream.

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


# A private bucket: encrypted, closed to the public, reached by TLS only.


def private_bucket(
    scope: Construct,
    id_: str,
    *,
    kind: str,
    stage: Stage,
    key: kms.IKey | None,
    rules: Sequence[s3.LifecycleRule],
) -> s3.Bucket:
    """Make the bucket of a kind, which keeps replaced and deleted objects for a month.

    Its name contains account and region, since bucket names are unique in all of AWS, and a predictable name lets a
    retained bucket be found again.

    Args:
        kind: kind of the bucket, from which its name is made.
        key: customer managed key; None for a key of S3.
        rules: further lifecycle rules.
    """
    return s3.Bucket(
        scope,
        id_,
        bucket_name=f"{stage.named(kind)}-{Aws.ACCOUNT_ID}-{Aws.REGION}",
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        # Without it every object read is a request to KMS, which costs more than the read.
        bucket_key_enabled=True if key else None,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=stage.tls_only,
        versioned=True,
        lifecycle_rules=[_tidy(), *rules],
        removal_policy=RemovalPolicy.RETAIN if stage.retain else RemovalPolicy.DESTROY,
    )


def _tidy() -> s3.LifecycleRule:
    """Return the lifecycle rule that deletes old versions after a month and broken uploads after a week.

    A month is time to notice that an object was overwritten or deleted by mistake.
    """
    return s3.LifecycleRule(
        id="tidy",
        noncurrent_version_expiration=Duration.days(30),
        abort_incomplete_multipart_upload_after=Duration.days(7),
    )


# The bucket to which mappings of streams write records that their function gave up on. It keeps the records themselves
# for a while (decision 24).
#
# The records are evidence, not data: events are in the store, gaps heal from there, and later notices replace lost
# ones.

RETRIES: Final = 20
"""Retries of a batch. Functions wait out throttling by themselves, and the indexer sets malformed records aside. The
remaining errors are a crash, which fails within seconds and is alone after ten halvings that do not count, and an
outage, in which twenty attempts last for the better part of an hour. More retries would let one record block its
shard; fewer would empty a shard into the bucket."""

MAX_AGE_SECONDS: Final = 22 * 60 * 60
"""Age in seconds at which a record is given up, two hours before its stream deletes it, so that it always reaches the
bucket. A lower age would not do: a new mapping begins with all records of the stream, and would give up old ones
unread."""

DAYS: Final = 90

PREFIX: Final = "aws/lambda/"
"""Prefix of the keys of all records that Lambda writes to the bucket."""


class Failures:
    """The bucket for records that event source mappings gave up on.

    Attributes:
        bucket: the bucket.
    """

    def __init__(self, scope: Construct, *, stage: Stage, key: kms.IKey | None) -> None:
        """Make the bucket, whose objects expire after `DAYS` days."""
        rule = s3.LifecycleRule(id="evidence", expiration=Duration.days(DAYS))
        # A direct child of the stack, so that its logical id stays as it was when no other part had failures.
        self.bucket: Final = private_bucket(
            scope, "Failures", kind="failures", stage=stage, key=key, rules=[rule]
        )

    def reporting(self) -> list[iam.PolicyStatement]:
        """Return the permissions of a function whose failures Lambda writes to the bucket.

        Lambda writes under the function's role.
        """
        return [
            grants.on_objects(self.bucket, PREFIX, "PutObject"),
            grants.on_bucket(self.bucket, "ListBucket"),
        ]

    def destination(self) -> lambda_.CfnEventSourceMapping.DestinationConfigProperty:
        """Return the failure destination of an event source mapping."""
        mapping = lambda_.CfnEventSourceMapping
        return mapping.DestinationConfigProperty(
            on_failure=mapping.OnFailureProperty(destination=self.bucket.bucket_arn)
        )
