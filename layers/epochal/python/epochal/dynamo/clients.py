"""Creates clients of botocore once and keeps them: a client costs more than the requests it serves.

botocore is boto3's lower half. Importing boto3 itself, with transfers and resources that nothing here uses, would
lengthen every cold start by a tenth.

boto's own retries are off. It would retry a write whose response was lost without reporting it, and a refusal in answer
to such a retry looks like another writer's conflict (GUARANTEES G2). `store.driver` retries instead and keeps track. A
client with retries on is safe too: its refusals then count as ambiguous.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    NoCredentialsError,
)
from botocore.session import Session
from botocore.utils import get_environ_proxies

from epochal.dynamo.aws_configuration import translate_boto_error
from epochal.dynamo.boto3_carrier import connection_failure
from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.http import CONNECT_SECONDS, KEPT, READ_SECONDS, host_of
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client


def dynamodb_client(*, endpoint: str | None = None, region: str | None = None) -> DynamoDBClient:
    """Create a DynamoDB client without retries; credentials and defaults come from the usual AWS chain."""
    config = _config(retries=1, read=READ_SECONDS)
    return cast("DynamoDBClient", _client("dynamodb", endpoint, region, config))


def s3_client(*, endpoint: str | None = None, region: str | None = None) -> S3Client:
    """Create an S3 client with retries, which are harmless because objects are named by their content."""
    # Version 4 signatures everywhere: the older ones, still the default for some URLs, sign no headers.
    config = _config(retries=4, read=20).merge(Config(signature_version="s3v4"))
    return cast("S3Client", _client("s3", endpoint, region, config))


def service_client(
    service: str, *, endpoint: str | None = None, region: str | None = None, retried: bool = False
) -> Any:
    """Create a botocore client for the AWS service of this name; boto retries only with `retried`.

    Args:
        retried: boto may retry, since repeating the request changes nothing more: a FIFO queue or topic drops
            duplicates. Otherwise a request is sent once, and may take the minute that an invoked function takes.
    """
    config = _config(retries=4, read=READ_SECONDS) if retried else _config(retries=1, read=70)
    return _client(service, endpoint, region, config)


def credentials() -> Credentials:
    """Return the credentials of the usual AWS chain; raise `Misconfigured` if it has none."""
    keys = _session().get_credentials()
    if keys is None:
        raise translate_boto_error(NoCredentialsError())
    return keys


def service_from_botocore(*, endpoint: str | None, region: str | None) -> Service | str:
    """Return DynamoDB's address and credentials as botocore finds them, or why a boto3 client is needed.

    This covers profiles and roles, FIPS, dual stack and other partitions. A text says why plain signed requests are not
    enough, as with a proxy.
    """
    client: Any = dynamodb_client(endpoint=endpoint, region=region)
    url, config = client.meta.endpoint_url, client.meta.config
    keys = _session().get_credentials()
    if keys is None:
        return "there are no credentials"
    try:
        host_of(url)
    except ValueError:
        return "the endpoint is more than a scheme, a host and a port"
    if get_environ_proxies(url):
        return "there is a proxy"
    mode = getattr(config, "account_id_endpoint_mode", "")  # that of an older botocore has none
    if config.signature_version != "v4" or mode == "required":
        return "requests are signed or addressed in a way of their own"
    bundle = _session().get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE", "")
    renewed = Renewed(keys)
    return Service(url=url, region=client.meta.region_name, credentials=renewed, bundle=bundle)


@dataclass(frozen=True, slots=True)
class Renewed:
    """Credentials of botocore that renew themselves and raise the library's errors."""

    credentials: Credentials

    def get_frozen_credentials(self) -> Any:
        """Return the keys that are valid now, renewed if they would expire."""
        try:
            return self.credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise connection_failure(error, retries=False) from error

    def refresh_needed(self) -> bool:
        """Return whether renewing the keys takes a request."""
        credentials = self.credentials
        return isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed()


def _client(service: str, endpoint: str | None, region: str | None, config: Config) -> object:
    """Create a client; raise `Misconfigured` or `InvalidInput` if that is impossible."""
    try:
        return _session().create_client(service, region, endpoint_url=endpoint, config=config)
    except BotoCoreError as error:
        raise translate_boto_error(error) from error
    except ValueError as error:
        raise InvalidInput("endpoint", "must be a URL, such as http://127.0.0.1:8000") from error


@cache
def _session() -> Session:
    """Return the one session of all clients, which reads the configuration and keeps the credentials."""
    return Session()


def _config(*, retries: int, read: int) -> Config:
    """Build the configuration of a client: timeouts, number of connections and retries."""
    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read,
        max_pool_connections=KEPT,
        retries={"total_max_attempts": retries, "mode": "standard"},
    )
