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
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from botocore import xform_name
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  botocore's own name
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ProxyConnectionError,
)
from botocore.session import Session
from botocore.utils import get_environ_proxies

from epochal.dynamo.aws_errors import address_of, describe_failure, translate_boto_error
from epochal.dynamo.protocol.faults import DynamoFault
from epochal.dynamo.protocol.messages import READS, WRITES, check_answer, parse_object
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.http import CONNECT_SECONDS, KEPT, READ_SECONDS, NoAnswer, Unsent, host_of
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from epochal.dynamo.interpreter import Carrier


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
    """Create a botocore client for any other AWS service.

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
    """Let botocore find DynamoDB's address and credentials, or return why a boto3 client is needed.

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


# A client of boto3's as a carrier.
#
# Its answers to reads and writes are taken whole at botocore's event `before-parse`, which leaves botocore nothing to
# parse. It still parses errors.


def boto3_carrier(client: DynamoDBClient) -> Carrier:
    """Build a carrier that sends requests through a boto3 client; it is safe to share between threads."""
    parse_answers(client)
    retries = may_retry(client)

    def carry(request: DynamoRequest) -> dict[str, Any]:
        """Send a request through the client and return its answer; translate boto's errors."""
        try:
            answer: dict[str, Any] = getattr(client, xform_name(request.operation))(**request.parameters)
        except ClientError as error:
            raise _fault_from(error) from error
        except BotoCoreError as error:
            raise connection_failure(error, retries=retries) from error
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        return check_answer(request.operation, answer, headers)

    return carry


def connection_failure(error: BotoCoreError, *, retries: bool) -> Unsent | NoAnswer:
    """Return the failure that a broken connection means; raise the library's error for any other.

    Args:
        retries: whether the client retries by itself, so that an earlier attempt may have gone further than the last.
    """
    unconnected = isinstance(error, EndpointConnectionError | ConnectTimeoutError | ProxyConnectionError)
    if unconnected and not retries:
        nowhere = not isinstance(error, ConnectTimeoutError)
        return Unsent(describe_failure(error), address=address_of(error), nowhere=nowhere)
    if isinstance(error, ConnectionError | HTTPClientError):
        return NoAnswer(describe_failure(error))
    raise translate_boto_error(error) from error


def may_retry(client: Any) -> bool:
    """Return whether a client may have tried more than once before it raises."""
    return bool((client.meta.config.retries or {}).get("total_max_attempts", 2) > 1)


def parse_answers(client: Any) -> None:
    """Make a client parse answers to reads and writes with this library's parser; repeated calls change nothing."""
    client.meta.events.register("before-parse.dynamodb", _parse_answer, unique_id="epochal")


def _parse_answer(
    operation_model: Any,
    response_dict: dict[str, Any],
    customized_response_dict: dict[str, Any],
    **_: object,
) -> None:
    """Parse an answer to a read or write in place of botocore, which calls this before it parses.

    The second dictionary overrides what botocore parses out of the first. JSON that is not an object makes botocore
    fail, so it is replaced by an empty object.
    """
    if operation_model.name in (*READS, *WRITES) and response_dict["status_code"] == HTTPStatus.OK:
        customized_response_dict.update(parse_object(response_dict["body"]))
    elif response_dict["body"].lstrip().startswith(b"{"):
        return
    response_dict["body"] = b"{}"


def _fault_from(error: ClientError) -> DynamoFault:
    """Convert an error answer of botocore into a `DynamoFault`."""
    metadata: Any = error.response.get("ResponseMetadata", {})
    return DynamoFault(
        error.operation_name,
        error.response["Error"]["Code"],
        error.response["Error"].get("Message", ""),
        status=int(metadata.get("HTTPStatusCode", 0)),
        members=error.response,
        retried=int(metadata.get("RetryAttempts", 0)) > 0,
    )
