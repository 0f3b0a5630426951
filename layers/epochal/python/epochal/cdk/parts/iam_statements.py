"""Statements of policies: exact actions on exact resources.

CDK's own `grant_*` methods are not used, since they allow groups of actions with wildcards.

Transactions need no action of their own: AWS checks the actions of their single writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from epochal.cdk.stages import Stage
from epochal.layout.port import Permission

BODIES: Final = "bodies/"
"""Prefix of objects in which the library keeps bodies that are too large for an item."""

UPLOADS: Final = "uploads/"
"""Prefix of objects that callers upload; unclaimed uploads expire."""

_KEY_READS: Final = ("Decrypt", "DescribeKey")
_KEY_WRITES: Final = (
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
)


def on_table(table: dynamodb.ITableV2, *actions: str) -> iam.PolicyStatement:
    """Return a statement that allows actions on the items of a table."""
    return _allow("dynamodb", actions, [table.table_arn])


def on_keys(table: dynamodb.ITableV2, keys: Sequence[str], *actions: str) -> iam.PolicyStatement:
    """Return a statement that allows actions on items whose partition key matches one of `keys`.

    `keys` are patterns with `*`. Do not pass `Scan`, which has no key to compare and would be allowed everywhere.
    """
    statement = on_table(table, *actions)
    _only_keys(statement, keys)
    return statement


def on_items(table: dynamodb.ITableV2, access: Permission) -> iam.PolicyStatement:
    """Return a statement that allows the access to a table or index that its layout declares."""
    arn = f"{table.table_arn}/index/{access.index}" if access.index else table.table_arn
    statement = _allow("dynamodb", access.actions, [arn])
    if access.keys:
        _only_keys(statement, access.keys)
    return statement


def _only_keys(statement: iam.PolicyStatement, keys: Sequence[str]) -> None:
    """Narrow a statement to items whose partition key, of a table or an index, matches one of `keys`."""
    statement.add_condition("ForAllValues:StringLike", {"dynamodb:LeadingKeys": [*keys]})


def on_streams(arns: Sequence[str]) -> tuple[iam.PolicyStatement, ...]:
    """Return statements that allow reading tables' streams."""
    return (
        _allow("dynamodb", ("DescribeStream", "GetRecords", "GetShardIterator"), [*arns]),
        # AWS has no resource for this action, and refuses a mapping whose role lacks the action.
        _allow("dynamodb", ("ListStreams",), ["*"]),
    )


def on_kinesis(arn: str) -> tuple[iam.PolicyStatement, ...]:
    """Return statements that allow reading a Kinesis stream."""
    actions = ("DescribeStream", "DescribeStreamSummary", "GetRecords", "GetShardIterator", "ListShards")
    return (
        _allow("kinesis", actions, [arn]),
        # As with tables' streams, AWS refuses a mapping whose role lacks this action.
        _allow("kinesis", ("ListStreams",), ["*"]),
    )


def on_objects(bucket: s3.IBucket, prefix: str, *actions: str) -> iam.PolicyStatement:
    """Return a statement that allows actions on objects of a bucket below a prefix."""
    return _allow("s3", actions, [bucket.arn_for_objects(f"{prefix}*")])


def on_bucket(bucket: s3.IBucket, *actions: str) -> iam.PolicyStatement:
    """Return a statement that allows actions on a bucket itself."""
    return _allow("s3", actions, [bucket.bucket_arn])


def on_listing(bucket: s3.IBucket, *prefixes: str) -> iam.PolicyStatement:
    """Return a statement to list a bucket below these prefixes, so that S3 reports missing objects.

    Without this permission S3 answers `access denied` for a missing object. S3 checks the permission to list with the
    object's key as the prefix. Nothing else of the bucket can be listed.
    """
    statement = on_bucket(bucket, "ListBucket")
    statement.add_condition("StringLike", {"s3:prefix": [f"{prefix}*" for prefix in prefixes]})
    return statement


def on_topic(topic: sns.ITopic, *actions: str) -> iam.PolicyStatement:
    """Return a statement that allows actions on a topic."""
    return _allow("sns", actions, [topic.topic_arn])


def on_mappings(mappings: Sequence[lambda_.CfnEventSourceMapping], *, named: bool) -> iam.PolicyStatement:
    """Return a statement that allows reading the given event source mappings of this account and region.

    Args:
        named: whether to add the embedded AWS's name of the action.
    """
    actions = ("GetEventSourceMapping", "ListEventSourceMappings") if named else ("GetEventSourceMapping",)
    begin = f"arn:{Aws.PARTITION}:lambda:{Aws.REGION}:{Aws.ACCOUNT_ID}:event-source-mapping"
    return _allow("lambda", actions, [f"{begin}:{mapping.attr_id}" for mapping in mappings])


def on_queues(arns: list[str], *actions: str) -> iam.PolicyStatement:
    """Return a statement that allows actions on the messages of several queues."""
    return _allow("sqs", actions, arns)


def on_queue(queue: sqs.IQueue, *actions: str) -> iam.PolicyStatement:
    """Return a statement that allows actions on a queue."""
    return _allow("sqs", actions, [queue.queue_arn])


def on_queue_key(stage: Stage) -> tuple[iam.PolicyStatement, ...]:
    """Return statements that allow wake-ups to be sent and received under the stage's key; empty without one."""
    if not stage.queue_kms_key:
        return ()
    return (_allow("kms", ("Decrypt", "GenerateDataKey"), [stage.queue_kms_key]),)


def batched(action: str, *, named: bool) -> tuple[str, ...]:
    """Return the given action and, with `named`, the embedded AWS's name of it for batches.

    AWS has one name for both; the embedded AWS has a name of its own for batches.

    Args:
        named: whether to add the embedded AWS's name.
    """
    return (action, f"{action}Batch") if named else (action,)


def consuming(*, named: bool) -> tuple[str, ...]:
    """Return the actions on a queue that Lambda needs under a function's role to invoke it with messages.

    The last one is the function's own: it keeps the lease on its messages, for all of them in one request.

    Args:
        named: whether to add the embedded AWS's name for the batch.
    """
    lease = batched("ChangeMessageVisibility", named=named)
    return ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", *lease)


def on_secret(secret: secretsmanager.ISecret) -> tuple[iam.PolicyStatement, ...]:
    """Return statements that allow reading a secret, decryption included.

    A secret's full ARN ends with six characters that its name does not contain.
    """
    arn = secret.secret_full_arn or f"{secret.secret_arn}-??????"
    read = _allow("secretsmanager", ("GetSecretValue",), [arn])
    return (read, *on_key(secret.encryption_key, write=False))


def on_log_group(group: logs.ILogGroup) -> iam.PolicyStatement:
    """Return a statement that allows writing to a log group."""
    return _allow("logs", ("CreateLogStream", "PutLogEvents"), [group.log_group_arn])


def on_key(key: kms.IKey | None, *, write: bool) -> tuple[iam.PolicyStatement, ...]:
    """Return statements that allow using data encrypted with a customer managed key; empty without one.

    Args:
        write: whether to allow encryption besides decryption.
    """
    if key is None:
        return ()
    return (_allow("kms", _KEY_READS + _KEY_WRITES if write else _KEY_READS, [key.key_arn]),)


def in_network() -> iam.PolicyStatement:
    """Return the statement that Lambda needs under the role of a function in a VPC.

    The statement covers network interfaces, for which EC2 knows no resource names.
    """
    interfaces = ("CreateNetworkInterface", "DeleteNetworkInterface", "DescribeNetworkInterfaces")
    addresses = ("AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "DescribeSubnets")
    return _allow("ec2", (*interfaces, *addresses), ["*"])


def _allow(service: str, actions: Sequence[str], resources: list[str]) -> iam.PolicyStatement:
    """Return a statement that allows actions of a service on resources."""
    return iam.PolicyStatement(actions=[f"{service}:{action}" for action in actions], resources=resources)
