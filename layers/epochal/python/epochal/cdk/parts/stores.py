"""What a deployment keeps, as functions are told and allowed it: made by `StoreStack`, or found by name.

Names are the same in every deployment of a stage, so a stack needs no export of another to use what is there. That is
how all stacks of Epochal's know each other: CloudFormation refuses to take away or change an export as long as it is
imported, and every table may be left out or taken over one day.

What a stream is called, its table's name does not tell: the stack that makes the table puts the ARN where the one that
follows it looks, into a parameter of Parameter Store. CloudFormation reads it while it plans an update, so it sees that
nothing has changed where nothing has; `Fn::GetStackOutput` is read too late for that, and a mapping would be replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws, CfnOutput, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from epochal.cdk.stages import Stage
from epochal.layout.registry import READ_MODELS, archives, store_tables
from epochal.plan.ops import TableSpec

BODIES: Final = "bodies/"
"""Where the library keeps bodies too large for an item."""

UPLOADS: Final = "uploads/"
"""Where callers upload to, and what nobody claims expires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Tables by their kind, the bucket, and the key that they are encrypted with, if it is one's own."""

    tables: Mapping[str, dynamodb.ITableV2]
    bucket: s3.IBucket
    key: kms.IKey | None

    @classmethod
    def named(cls, scope: Construct, stage: Stage) -> Stores:
        """The stores of a stage that is deployed in the same account and region."""
        tables = {spec.kind: _table(scope, spec.kind, stage) for spec in specs_of(stage)}
        bucket = stage.existing_bucket or f"{stage.named('bodies')}-{Aws.ACCOUNT_ID}-{Aws.REGION}"
        return cls(
            tables=tables,
            bucket=s3.Bucket.from_bucket_name(scope, "Bodies", bucket),
            key=kms.Key.from_key_arn(scope, "Key", stage.kms_key) if stage.kms_key else None,
        )


def streams_named(scope: Construct, stage: Stage) -> dict[str, str]:
    """ARNs of the streams that somebody follows, of a stage whose tables another stack makes, by the kinds of these."""
    sending = stage.sending()
    return {
        spec.kind: stage.existing(spec.kind)
        or ssm.StringParameter.value_for_string_parameter(scope, stream_of(stage, spec.kind))
        for spec in specs_of(stage)
        if spec.stream and spec.kind not in sending
    }


def specs_of(stage: Stage) -> tuple[TableSpec, ...]:
    """The tables that a stage has."""
    layouts = stage.deployed_layouts()
    kept = archives(layouts) if stage.archive else ()
    return (*store_tables(layouts), *kept, *((READ_MODELS,) if stage.read_models else ()))


def _table(scope: Construct, kind: str, stage: Stage) -> dynamodb.ITableV2:
    """The table, without its stream, which only the stack that made it follows."""
    id_, existing = f"Table-{kind}", stage.existing(kind)
    if existing:
        return dynamodb.TableV2.from_table_arn(scope, id_, existing.partition("/stream/")[0])
    return dynamodb.TableV2.from_table_name(scope, id_, stage.named(kind))


# Names by which parts of a deployment find each other without exports.


def topic_of(stage: Stage) -> str:
    """The topic of notices."""
    return f"{stage.named('notices')}.fifo"


def stream_of(stage: Stage, kind: str) -> str:
    """The parameter, in Parameter Store, that holds the ARN of a table's stream, which nobody can tell by its name."""
    return f"/epochal/{stage.named('')}/streams/{kind}"


def changes_of(stage: Stage) -> str:
    """The Kinesis stream that tables of heads send their changes to."""
    return stage.named("changes")


def function_of(reaction: str) -> str:
    """The kind of a reaction's function, which `stage.named` makes a name of."""
    return f"reaction-{reaction}"


def queue_of(stage: Stage, reaction: str, *, failed: bool = False) -> str:
    """The queue of a reaction's wake-ups, or of those that failed too often."""
    return f"{stage.named(function_of(reaction))}{'-failed' if failed else ''}.fifo"


# Outputs, by which those who know a stack's name alone find what it holds: commands, clients, the local deployment.


def output(scope: Construct, name: str, value: str, description: str, *, of: str = "") -> CfnOutput:
    """An output of the stack around `scope` that is called `name`, however deep `scope` is; `of` comes before it."""
    made = CfnOutput(scope, name, value=value, description=description)
    made.override_logical_id(of + name)
    return made


def whose(scope: Construct, name: str) -> str:
    """What comes before the outputs of a store called `name`: nothing for the first one of a stack."""
    stack = Stack.of(scope)
    if stack.node.try_find_child(_FIRST) is None:
        Construct(stack, _FIRST)
        return ""
    return "".join(each for each in name if each.isalnum())


_FIRST = "EpochalOutputs"
"""Marks a stack whose outputs without a name before them are taken."""
