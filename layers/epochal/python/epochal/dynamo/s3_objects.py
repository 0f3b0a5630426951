"""Objects in S3, such as states of projections, streamed both ways."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BufferedReader, RawIOBase
from typing import IO, TYPE_CHECKING, Final, cast

from epochal.codec.bodies import CHUNK
from epochal.dynamo.aws_errors import check_stored, translate_errors
from epochal.dynamo.bucket import BucketClient

if TYPE_CHECKING:
    from botocore.response import StreamingBody


UNDER_WAY: Final = timedelta(days=1)
"""An object younger than this may belong to a write that has not named it yet."""


class S3Objects(BucketClient):
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
