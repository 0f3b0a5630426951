"""Bodies in S3, under their content's hash: written before the append that claims them, never overwritten.

A body written for an append that then failed does no harm: nothing claims it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.dynamo.aws_errors import translated
from epochal.errors import MissingBody, Refused
from epochal.model.events import Claim
from epochal.store.bodies import verified

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


class S3Bodies:
    """The bucket of bodies too large for an item. Implements `store.bodies.Bodies`."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key; doing so again changes nothing."""
        with translated("PutObject", claim.key):
            self._client.put_object(Bucket=self._bucket, Key=claim.key, Body=content)

    def get(self, claim: Claim) -> bytes:
        """The content a claim names.

        Raises:
            MissingBody: there is no such object.
            CorruptData: the object is not what was claimed.
        """
        with translated("GetObject", claim.key):
            content = self._client.get_object(Bucket=self._bucket, Key=claim.key)["Body"].read()
        return verified(claim, content)

    def has(self, claim: Claim) -> bool:
        """Whether an object of the claimed size is there."""
        try:
            with translated("HeadObject", claim.key):
                head = self._client.head_object(Bucket=self._bucket, Key=claim.key)
        except (MissingBody, Refused):
            # Without permission to list the bucket, S3 denies an object that is not there.
            return False
        return head["ContentLength"] == claim.size
