"""What a deployment keeps, as functions are told and allowed it: made by `StoreStack`, or found by name.

Names are the same in every deployment of a stage, so a stack of one's own needs no export of Epochal's to use what is
there: neither stack then holds up a change of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.cdk.stages import Stage
from epochal.layout.tables import ARCHIVES, READ_MODELS, store_tables
from epochal.plan.tables import TableSpec
from epochal.settings import PROJECTIONS

BODIES: Final = "bodies/"
"""Where the library keeps bodies too large for an item."""

UPLOADS: Final = "uploads/"
"""Where callers upload to, and what nobody claims expires."""

STATES: Final = f"{PROJECTIONS}/"
"""Where the library keeps projection states too large for an item; a tenant's in a folder of its own."""


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


def specs_of(stage: Stage) -> tuple[TableSpec, ...]:
    """The tables that a stage has."""
    layouts = stage.deployed_layouts()
    archives = [ARCHIVES[each.name] for each in layouts if stage.archive and each.name in ARCHIVES]
    return (*store_tables(layouts), *archives, *((READ_MODELS,) if stage.read_models else ()))


def _table(scope: Construct, kind: str, stage: Stage) -> dynamodb.ITableV2:
    """The table, without its stream, which only the stack that made it follows."""
    id_, existing = f"Table-{kind}", stage.existing(kind)
    if existing:
        return dynamodb.TableV2.from_table_arn(scope, id_, existing.partition("/stream/")[0])
    return dynamodb.TableV2.from_table_name(scope, id_, stage.named(kind))
