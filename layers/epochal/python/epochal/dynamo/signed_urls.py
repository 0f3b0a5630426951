"""Signed URLs: bodies that no request of ours can carry go between a caller and the bucket directly.

An upload is signed for one object, one length, one SHA-256 and one type, so that S3 itself refuses any other content:
what is under a hash is what was hashed. It is written once, to where uploads expire; a claim copies it from there
(`bodies`). A download comes as plain bytes to be saved, whatever headers the object may have. A URL works for as long
as it says, and never longer than the credentials that signed it.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

from epochal.codec.claims import UPLOADS
from epochal.dynamo.aws_errors import translated
from epochal.dynamo.bodies import CONTENT_TYPE
from epochal.model.events import Claim

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_AS_BYTES: Final = {
    "ResponseContentType": CONTENT_TYPE,
    "ResponseContentDisposition": "attachment",
    "ResponseContentEncoding": "identity",
}
"""What S3 is to say of an object instead of what is stored with it."""


class S3Links:
    """Signs URLs of objects in one bucket. Signing sends nothing; `object` looks first."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def download(self, claim: Claim, seconds: int) -> str:
        """Where the content that `claim` names can be got from for so many seconds."""
        return self._get(claim.key, seconds)

    def object(self, key: str, seconds: int) -> str:
        """Where an object can be got from for so many seconds; raises `MissingBody` where there is none."""
        with translated("HeadObject", key):
            self._client.head_object(Bucket=self._bucket, Key=key)
        return self._get(key, seconds)

    def upload(self, claim: Claim, seconds: int) -> tuple[str, dict[str, str]]:
        """Where `claim`'s content can be put for so many seconds, and the headers that must be sent with it.

        S3 answers 412 where it has been put already.
        """
        checksum = b64encode(bytes.fromhex(claim.sha256)).decode()
        url = self._client.generate_presigned_url(
            "put_object",
            Params={
                "Bucket": self._bucket,
                "Key": f"{UPLOADS}{claim.sha256}",
                "ContentLength": claim.size,
                "ContentType": CONTENT_TYPE,
                "ChecksumSHA256": checksum,
                "IfNoneMatch": "*",
            },
            ExpiresIn=seconds,
        )
        return url, {
            "content-length": str(claim.size),
            "content-type": CONTENT_TYPE,
            "if-none-match": "*",
            "x-amz-checksum-sha256": checksum,
        }

    def _get(self, key: str, seconds: int) -> str:
        return self._client.generate_presigned_url(
            "get_object", Params={"Bucket": self._bucket, "Key": key, **_AS_BYTES}, ExpiresIn=seconds
        )
