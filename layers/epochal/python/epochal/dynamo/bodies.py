"""Bodies in S3, under their content's hash: written before the append that claims them, never overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from epochal.errors import MissingBody
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
        self._client.put_object(Bucket=self._bucket, Key=claim.key, Body=content)

    def get(self, claim: Claim) -> bytes:
        """The content a claim names.

        Raises:
            MissingBody: there is no such object.
            CorruptData: the object is not what was claimed.
        """
        try:
            content = self._client.get_object(Bucket=self._bucket, Key=claim.key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                raise MissingBody(claim.key) from error
            raise
        return verified(claim, content)

    def has(self, claim: Claim) -> bool:
        """Whether an object of the claimed size is there."""
        try:
            head = self._client.head_object(Bucket=self._bucket, Key=claim.key)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "NotFound", "404"):
                return False
            raise
        return head["ContentLength"] == claim.size
