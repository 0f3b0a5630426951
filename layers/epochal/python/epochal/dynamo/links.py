"""Signed URLs: bodies that no request of ours can carry go between a caller and the bucket directly.

An upload is signed for one object, one length and one SHA-256, so that S3 itself refuses any other content: what
lies under a hash is what was hashed. A URL works for as long as it says, and never longer than the credentials that
signed it.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from epochal.dynamo.aws_errors import translated
from epochal.model.events import Claim

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


class S3Links:
    """Signs URLs of objects in one bucket. Signing sends nothing; `object` looks first."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def download(self, claim: Claim, seconds: int) -> str:
        """Where the content that `claim` names can be got from for so many seconds."""
        return self._client.generate_presigned_url(
            "get_object", Params={"Bucket": self._bucket, "Key": claim.key}, ExpiresIn=seconds
        )

    def object(self, key: str, seconds: int) -> str:
        """Where an object can be got from for so many seconds; raises `MissingBody` where there is none."""
        with translated("HeadObject", key):
            self._client.head_object(Bucket=self._bucket, Key=key)
        return self._client.generate_presigned_url(
            "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=seconds
        )

    def upload(self, claim: Claim, seconds: int) -> tuple[str, dict[str, str]]:
        """Where `claim`'s content can be put for so many seconds, and the headers that must be sent with it."""
        checksum = b64encode(bytes.fromhex(claim.sha256)).decode()
        url = self._client.generate_presigned_url(
            "put_object",
            Params={
                "Bucket": self._bucket,
                "Key": claim.key,
                "ContentLength": claim.size,
                "ChecksumSHA256": checksum,
            },
            ExpiresIn=seconds,
        )
        return url, {"content-length": str(claim.size), "x-amz-checksum-sha256": checksum}
