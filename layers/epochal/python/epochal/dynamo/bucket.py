"""A bucket's name and client, which the adapters of bodies, objects and signed URLs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


@dataclass(frozen=True, slots=True)
class BucketClient:
    """A bucket's name, and a client that reaches it."""

    _client: S3Client
    _bucket: str
