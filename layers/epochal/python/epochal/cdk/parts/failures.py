"""The bucket to which mappings of streams write records that their function gave up on, and which keeps them for a
while (decision 24).

The records are evidence, not data: events are in the store, gaps heal from there, and later notices replace lost
ones.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.cdk.parts import iam_statements
from epochal.cdk.parts.buckets import private_bucket
from epochal.cdk.stages import Stage

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
        """Return the permissions that let Lambda write a function's failures to the bucket under its role.

        Lambda writes under the function's role.
        """
        return [
            iam_statements.on_objects(self.bucket, PREFIX, "PutObject"),
            iam_statements.on_bucket(self.bucket, "ListBucket"),
        ]

    def destination(self) -> lambda_.CfnEventSourceMapping.DestinationConfigProperty:
        """Return the failure destination of an event source mapping."""
        mapping = lambda_.CfnEventSourceMapping
        return mapping.DestinationConfigProperty(
            on_failure=mapping.OnFailureProperty(destination=self.bucket.bucket_arn)
        )
