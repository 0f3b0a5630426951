"""A stand-in for AWS at an address of this machine, and how clients and tools are pointed at it.

The credentials are made up: the stand-ins look at the key's name at most. They are always given explicitly, so that
no real profile of the user's is picked up, let alone sent anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config

from epochal.lazy_dataclasses import dataclass

REGION = "us-east-1"
KEY = "test"
SECRET = "test"  # noqa: S105  a made-up one, for servers that accept it from anyone on this machine
ACCOUNT = "000000000000"

_MAKING = Lock()
"""Lock of the sessions, each of which makes clients for one thread at a time."""


@cache
def _session(key: str, region: str) -> Any:
    """Return the cached session of boto3 for a key and a region.

    Sessions are cached since one takes ten times as long to make as a client. The type is Any because the stubs know
    clients by literal names.
    """
    return boto3.Session(aws_access_key_id=key, aws_secret_access_key=SECRET, region_name=region)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address of a stand-in for AWS, with one account and one region."""

    url: str
    account: str = ACCOUNT
    region: str = REGION

    @property
    def key(self) -> str:
        """Made-up access key: the account's twelve digits, or `test` for the account of zeros.

        The embedded AWS takes twelve digits for the account of the caller.
        """
        return KEY if self.account == ACCOUNT else self.account

    def client(self, service: str, *, config: Config | None = None) -> Any:
        """Make a boto3 client of `service`, without retries unless `config` has them.

        Stand-ins do not throttle.
        """
        (client,) = self.clients(service, config=config)
        return client

    def clients(self, *services: str, config: Config | None = None) -> list[Any]:
        """Make boto3 clients of several services, without retries unless `config` has them."""
        once = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
        merged = once.merge(config) if config else once
        with _MAKING:
            session = _session(self.key, self.region)
            return [session.client(service, endpoint_url=self.url, config=merged) for service in services]

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` without AWS variables, and with those that point AWS tools at this stand-in."""
        others = {name: value for name, value in base.items() if not name.startswith("AWS_")}
        return others | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ENDPOINT_URL_S3": self.url,  # the CDK command line reads S3's on its own
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
