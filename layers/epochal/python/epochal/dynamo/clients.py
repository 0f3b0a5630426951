"""Clients, made once and kept: a client costs more than the requests it serves.

boto's own retries are off. It would retry a write whose response was lost without telling, and a refusal that
answers such a retry looks like another writer's conflict (GUARANTEES G2); `store.driver` retries instead and
knows. A client with retries on is safe too: its refusals then count as ambiguous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

CONNECT_SECONDS = 2
READ_SECONDS = 6
"""DynamoDB answers in milliseconds; a request that takes seconds is better tried again elsewhere."""

CONNECTIONS = 32


def dynamodb_client(*, endpoint: str | None = None, region: str | None = None) -> DynamoDBClient:
    """A DynamoDB client without retries of its own. Credentials and defaults come from the usual AWS
    chain.
    """
    return boto3.client(
        "dynamodb", endpoint_url=endpoint, region_name=region, config=_config(retries=1, read=READ_SECONDS)
    )


def s3_client(*, endpoint: str | None = None, region: str | None = None) -> S3Client:
    """An S3 client. Objects are named by their content, so its retries are harmless and left on."""
    return boto3.client("s3", endpoint_url=endpoint, region_name=region, config=_config(retries=4, read=20))


def _config(*, retries: int, read: int) -> Config:
    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read,
        max_pool_connections=CONNECTIONS,
        retries={"total_max_attempts": retries, "mode": "standard"},
    )
