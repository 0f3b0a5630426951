"""Private buckets: encrypted, closed to the public, reached by TLS only."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.cdk.stages import Stage


def private_bucket(
    scope: Construct,
    id_: str,
    *,
    kind: str,
    stage: Stage,
    key: kms.IKey | None,
    rules: Sequence[s3.LifecycleRule],
) -> s3.Bucket:
    """Make a private, versioned bucket that keeps replaced and deleted objects for a month.

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
