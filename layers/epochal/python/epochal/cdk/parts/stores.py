"""The stores of a stage: the tables and the bucket that other parts of a deployment use.

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

from collections.abc import Mapping

from aws_cdk import Aws
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from epochal.cdk.parts.resource_names import stream_of
from epochal.cdk.stages import Stage
from epochal.layout.tables import INDEX
from epochal.lazy_dataclasses import dataclass


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
        """Return references, by name, to the tables, bucket and key of a stage in the same account and region."""
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
