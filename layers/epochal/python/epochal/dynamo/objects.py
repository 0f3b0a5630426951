"""Projection states in S3, streamed both ways."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from epochal.codec.states import CHUNK
from epochal.errors import MissingBody

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

UNDER_WAY: Final = timedelta(days=1)
"""An object younger than this may belong to a write that has not named it yet."""


class S3Objects:
    """A bucket of states. Implements `store.projections.Objects`; encryption is the bucket's default."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key`, in parts where it is large."""
        self._client.upload_fileobj(content, self._bucket, key)

    def get(self, key: str) -> Iterator[bytes]:
        """An object's content in chunks; raises `MissingBody`."""
        try:
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                raise MissingBody(key) from error
            raise
        return body.iter_chunks(CHUNK)

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        self._client.delete_object(Bucket=self._bucket, Key=key)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Keys below a prefix that were written more than a day ago."""
        before = datetime.now(UTC) - UNDER_WAY
        for page in self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=prefix
        ):
            yield from (found["Key"] for found in page.get("Contents", ()) if found["LastModified"] < before)
