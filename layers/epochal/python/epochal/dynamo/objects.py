"""Projection states in S3, streamed both ways."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Final

from epochal.codec.states import CHUNK
from epochal.dynamo.aws_errors import check_stored, translated

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3.client import S3Client

UNDER_WAY: Final = timedelta(days=1)
"""An object younger than this may belong to a write that has not named it yet."""


class S3Objects:
    """A bucket of states. Implements `store.projections.Objects`; encryption is the bucket's default."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a file's content under `key`, sent as it is read; at most 5 GB."""
        with translated("PutObject", key):
            check_stored(self._client.put_object(Bucket=self._bucket, Key=key, Body=content))

    def get(self, key: str) -> Iterator[bytes]:
        """An object's content in chunks; raises `MissingBody`."""
        with translated("GetObject", key):
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        return _chunks(key, body)

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        with translated("DeleteObject", key):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Keys below a prefix that were written more than a day ago."""
        before = datetime.now(UTC) - UNDER_WAY
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        with translated("ListObjects", prefix):
            for page in pages:
                yield from (
                    found["Key"] for found in page.get("Contents", ()) if found["LastModified"] < before
                )


def _chunks(key: str, body: StreamingBody) -> Iterator[bytes]:
    """A connection may break at any of them."""
    with translated("GetObject", key):
        yield from body.iter_chunks(CHUNK)
