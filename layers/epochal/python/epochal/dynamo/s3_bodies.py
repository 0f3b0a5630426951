"""Bodies of events in S3, under their content's hash: written before the append that claims them, never overwritten.

A body written for an append that then failed does no harm: nothing claims it. An upload is copied to where bodies are
before the append is sent, so no event ever lacks its body, whenever uploads expire or processes die. A copy takes only
the content of an upload: no header that its author chose reaches its readers.
"""

from __future__ import annotations

from typing import Final

from botocore.exceptions import ClientError

from epochal.codec.bucket_bodies import PREFIX, upload_of
from epochal.dynamo.aws_errors import check_stored, translate_errors
from epochal.dynamo.bucket import BucketClient
from epochal.errors import DeniedBody, MissingBody, Refused
from epochal.model.bodies import Claim
from epochal.store.encoding import verified

CONTENT_TYPE: Final = "application/octet-stream"
"""Of every body: its readers know what it is, and no browser should guess."""


class S3Bodies(BucketClient):
    """Stores bodies that are too large for an item in S3. Implements `store.encoding.Bodies`."""

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key; repeating it changes nothing."""
        with translate_errors("PutObject", claim.key):
            answer = self._client.put_object(
                Bucket=self._bucket, Key=claim.key, Body=content, ContentType=CONTENT_TYPE
            )
        check_stored(answer)

    def get(self, claim: Claim) -> bytes:
        """Return the body that a claim names; raise `MissingBody`, or `CorruptData` for another SHA-256.

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
