"""Objects in S3: bodies of events, states of projections, and signed URLs for either."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BufferedReader, RawIOBase
from typing import IO, TYPE_CHECKING, Final, cast

from botocore.exceptions import ClientError

from epochal.codec.bodies import CHUNK, PREFIX, UPLOADS, upload_of
from epochal.dynamo.aws_errors import check_stored, translate_errors
from epochal.errors import DeniedBody, MissingBody, Refused
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Claim
from epochal.store.encoding import verified

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3.client import S3Client


# Bodies in S3, under their content's hash: written before the append that claims them, never overwritten.
#
# A body written for an append that then failed does no harm: nothing claims it. An upload is copied to where bodies
# are before the append is sent, so no event ever lacks its body, whenever uploads expire or processes die. A copy
# takes only the content of an upload: no header that its author chose reaches its readers.

CONTENT_TYPE: Final = "application/octet-stream"
"""Of every body: its readers know what it is, and no browser should guess."""


@dataclass(frozen=True, slots=True)
class _Bucket:
    """A bucket's name, and a client that reaches it."""

    _client: S3Client
    _bucket: str


class S3Bodies(_Bucket):
    """Stores bodies that are too large for an item in S3. Implements `store.encoding.Bodies`."""

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key; repeating it changes nothing."""
        with translate_errors("PutObject", claim.key):
            answer = self._client.put_object(
                Bucket=self._bucket, Key=claim.key, Body=content, ContentType=CONTENT_TYPE
            )
        check_stored(answer)

    def get(self, claim: Claim) -> bytes:
        """Download the body that a claim names, and verify its size and hash.

        Raises:
            MissingBody: there is no such object.
            CorruptData: the object is not what was claimed.
            DeniedBody: it is not where bodies are, and may not be read. A denial there concerns all bodies: `Refused`.
        """
        with translate_errors("GetObject", claim.key):
            try:
                content = self._client.get_object(Bucket=self._bucket, Key=claim.key)["Body"].read()
            except ClientError as error:
                denied = error.response["Error"]["Code"] == "AccessDenied"
                if denied and not claim.key.startswith(PREFIX):
                    raise DeniedBody(claim.key, str(error)) from error
                raise
        return verified(claim, content)

    def keep(self, claim: Claim) -> bool:
        """Return whether the claimed object is stored permanently; copy it there if it is only uploaded.

        Several claims of one upload may run at a time: each copies the same content to the same key.
        """
        if self._holds(claim.key, claim.size):
            return True
        upload = upload_of(claim)
        return upload is not None and self._holds(upload, claim.size) and self._copy_upload(upload, claim.key)

    def _holds(self, key: str, size: int) -> bool:
        """Return whether the bucket has an object of this key and size."""
        try:
            with translate_errors("HeadObject", key):
                head = self._client.head_object(Bucket=self._bucket, Key=key)
        except (MissingBody, Refused):
            # Without permission to list the bucket, S3 denies an object that is not there.
            return False
        return head["ContentLength"] == size

    def _copy_upload(self, upload: str, key: str) -> bool:
        """Copy an upload to its permanent key; return False if it has expired meanwhile."""
        try:
            with translate_errors("CopyObject", upload):
                answer = self._client.copy_object(
                    Bucket=self._bucket,
                    Key=key,
                    CopySource={"Bucket": self._bucket, "Key": upload},
                    MetadataDirective="REPLACE",
                    ContentType=CONTENT_TYPE,
                )
        except MissingBody:
            return False  # It has expired since.
        check_stored(answer.get("CopyObjectResult", {}))
        return True


# Objects in S3, streamed both ways.

UNDER_WAY: Final = timedelta(days=1)
"""An object younger than this may belong to a write that has not named it yet."""


class S3Objects(_Bucket):
    """Streams objects to and from a bucket. Implements `store.encoding.Objects`.

    Encryption is the bucket's default.
    """

    def put(self, key: str, content: IO[bytes]) -> None:
        """Upload a file's content under `key`, read as it is sent; at most 5 GB."""
        with translate_errors("PutObject", key):
            check_stored(self._client.put_object(Bucket=self._bucket, Key=key, Body=content))

    def get(self, key: str) -> Iterator[bytes]:
        """Download an object in chunks; raise `MissingBody` if it does not exist."""
        return _chunks(key, self._body(key))

    def open(self, key: str) -> IO[bytes]:
        """Open an object for reading as a file; raise `MissingBody` if it does not exist."""
        return BufferedReader(cast("RawIOBase", self._body(key)))  # of its own, it reads a line byte by byte

    def _body(self, key: str) -> StreamingBody:
        """Request an object and return its streaming body."""
        with translate_errors("GetObject", key):
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"]

    def delete(self, key: str) -> None:
        """Delete an object if it exists."""
        with translate_errors("DeleteObject", key):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Iterate over the keys with a prefix that were written more than a day ago."""
        before = datetime.now(UTC) - UNDER_WAY
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        with translate_errors("ListObjects", prefix):
            for page in pages:
                yield from (
                    entry["Key"] for entry in page.get("Contents", ()) if entry["LastModified"] < before
                )


def _chunks(key: str, body: StreamingBody) -> Iterator[bytes]:
    """Iterate over the chunks of a body, translating errors: the connection may break at any of them."""
    with translate_errors("GetObject", key):
        yield from body.iter_chunks(CHUNK)


# Signed URLs: bodies that no request of ours can carry go between a caller and the bucket directly.
#
# An upload is signed for one object, one length, one SHA-256 and one type, so that S3 itself refuses any other
# content: what is under a hash is what was hashed. It is written once, to where uploads expire; a claim copies it
# from there (`bodies`). A download comes as plain bytes to be saved, whatever headers the object may have. A URL
# works for as long as it says, and never longer than the credentials that signed it.

_AS_BYTES: Final = {
    "ResponseContentType": CONTENT_TYPE,
    "ResponseContentDisposition": "attachment",
    "ResponseContentEncoding": "identity",
}
"""What S3 is to say of an object instead of what is stored with it."""


class S3Links(_Bucket):
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
        """Return a URL to upload a claim's content to for so many seconds, and the headers to send with it.

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
