"""Signed URLs: bodies that are too large for a request of ours go between a caller and the bucket directly.

An upload is signed for one object, one length, one SHA-256 and one type, so that S3 itself refuses any other content:
what is under a hash is what was hashed. It is written once, to where uploads expire; a claim copies it from there
(`s3_bodies`). A download comes as plain bytes to be saved, whatever headers the object may have. A URL works for as
long as it says, and never longer than the credentials that signed it.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from epochal.codec.bucket_bodies import UPLOADS
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.bucket import BucketClient
from epochal.dynamo.s3_bodies import CONTENT_TYPE
from epochal.model.bodies import Claim

_AS_BYTES: Final = {
    "ResponseContentType": CONTENT_TYPE,
    "ResponseContentDisposition": "attachment",
    "ResponseContentEncoding": "identity",
}
"""Response headers of a download, in place of those that are stored with the object."""


class S3Links(BucketClient):
    """Signs URLs for objects in one bucket.

    Signing sends no request; only `object` sends one, to check that the object exists.
    """

    def download(self, claim: Claim, seconds: int) -> str:
        """Return a URL from which the content of `claim` can be downloaded for so many seconds."""
        return self._get(claim.key, seconds)

    def object(self, key: str, seconds: int) -> str:
        """Return a download URL for an object, valid so many seconds; raise `MissingBody` if there is none."""
        with translate_errors("HeadObject", key):
            self._client.head_object(Bucket=self._bucket, Key=key)
        return self._get(key, seconds)

    def upload(self, claim: Claim, seconds: int) -> tuple[str, dict[str, str]]:
        """Presign an upload of a body to the bucket; return the URL, and the headers to send with it.

        S3 answers 412 if it has been uploaded already.
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
        """Sign a download URL for a key."""
        return self._client.generate_presigned_url(
            "get_object", Params={"Bucket": self._bucket, "Key": key, **_AS_BYTES}, ExpiresIn=seconds
        )
