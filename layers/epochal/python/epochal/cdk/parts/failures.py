"""Where mappings of streams put what their function gave up on: a bucket, which keeps the records themselves for a
while (decision 24).

The records are evidence, not data: events are in the store, gaps heal from there, and notices are made up for.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.buckets import private_bucket
from epochal.cdk.stages import Stage

RETRIES: Final = 20
"""Functions wait out throttling by themselves, and the indexer sets poison aside. What still raises is a crash, which
fails within seconds and stands alone after ten halvings that do not count, or an outage, through which twenty attempts
last for the better part of an hour. More would let one record hold up its shard; fewer would empty a shard into the
bucket."""

MAX_AGE_SECONDS: Final = 22 * 60 * 60
"""Two hours before the stream forgets a record: so it reaches the bucket, whatever kept it waiting. Not less, even
where old ones matter little: a new mapping begins with all that the stream has, which would be given up unseen."""

DAYS: Final = 90

PREFIX: Final = "aws/lambda/"
"""Lambda chooses the keys of what it puts there; all begin with this."""


class Failures:
    """The bucket of failures of a stack."""

    def __init__(self, scope: Construct, *, stage: Stage, key: kms.IKey | None) -> None:
        rule = s3.LifecycleRule(id="evidence", expiration=Duration.days(DAYS))
        # Straight in the stack: its logical id is from when nothing else had failures.
        self.bucket: Final = private_bucket(
            scope, "Failures", kind="failures", stage=stage, key=key, rules=[rule]
        )

    def reporting(self) -> list[iam.PolicyStatement]:
        """What a function needs to have its failures put here: Lambda delivers them under the function's role."""
        return [
            grants.on_objects(self.bucket, PREFIX, "PutObject"),
            grants.on_bucket(self.bucket, "ListBucket"),
        ]

    def destination(self) -> lambda_.CfnEventSourceMapping.DestinationConfigProperty:
        """The destination of a mapping."""
        mapping = lambda_.CfnEventSourceMapping
        return mapping.DestinationConfigProperty(
            on_failure=mapping.OnFailureProperty(destination=self.bucket.bucket_arn)
        )
