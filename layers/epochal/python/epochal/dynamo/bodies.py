"""Bodies in S3, under their content's hash: written before the append that claims them, never overwritten.

A body written for an append that then failed does no harm: nothing claims it. An upload is copied to where bodies are
before the append is sent, so no event ever lacks its body, whenever uploads expire or processes die. A copy
takes only the content of an upload: no header that its author chose reaches its readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from epochal.codec.claims import PREFIX, upload_of
from epochal.dynamo.aws_errors import check_stored, translated
from epochal.errors import DeniedBody, MissingBody, Refused
from epochal.model.events import Claim
from epochal.store.bodies import verified

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

CONTENT_TYPE: Final = "application/octet-stream"
"""Of every body: its readers know what it is, and no browser should guess."""


class S3Bodies:
    """The bucket of bodies too large for an item. Implements `store.bodies.Bodies`."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key; doing so again changes nothing."""
        with translated("PutObject", claim.key):
            answer = self._client.put_object(
                Bucket=self._bucket, Key=claim.key, Body=content, ContentType=CONTENT_TYPE
            )
        check_stored(answer)

    def get(self, claim: Claim) -> bytes:
        """The content a claim names.

        Raises:
            MissingBody: there is no such object.
            CorruptData: the object is not what was claimed.
            DeniedBody: it is not where bodies are, and may not be read. A denial there concerns all bodies: `Refused`.
        """
        with translated("GetObject", claim.key):
            try:
                content = self._client.get_object(Bucket=self._bucket, Key=claim.key)["Body"].read()
            except ClientError as error:
                denied = error.response["Error"]["Code"] == "AccessDenied"
                if denied and not claim.key.startswith(PREFIX):
                    raise DeniedBody(claim.key, str(error)) from error
                raise
        return verified(claim, content)

    def keep(self, claim: Claim) -> bool:
        """Whether an object of the claimed size is there to stay; an upload of it is made to stay.

        Claims of one upload may meet: each copies the same content to the same key.
        """
        if self._holds(claim.key, claim.size):
            return True
        upload = upload_of(claim)
        return upload is not None and self._holds(upload, claim.size) and self._copied(upload, claim.key)

    def _holds(self, key: str, size: int) -> bool:
        try:
            with translated("HeadObject", key):
                head = self._client.head_object(Bucket=self._bucket, Key=key)
        except (MissingBody, Refused):
            # Without permission to list the bucket, S3 denies an object that is not there.
            return False
        return head["ContentLength"] == size

    def _copied(self, upload: str, key: str) -> bool:
        try:
            with translated("CopyObject", upload):
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
