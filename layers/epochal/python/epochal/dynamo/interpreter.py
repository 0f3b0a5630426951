"""Plans to requests that a carrier sends. Nothing is retried here.

What a carrier raises, as botocore's HTTP session does, which all of them send by:

    no connection was made          NotApplied; Lost where the carrier may have tried before
    time-out, cut off               Lost: it may have been applied
    no region, no credentials       Misconfigured
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ContainerProvider, Credentials, EnvProvider
from botocore.exceptions import (
    BotoCoreError,
    ConnectionError,  # noqa: A004  botocore's own name
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
)
from botocore.httpsession import URLLib3Session

from epochal.dynamo.protocol import (
    DynamoFault,
    DynamoRequest,
    answer_of,
    body_of,
    conversation,
    headers_of,
    reply_to,
)
from epochal.plan import ops
from epochal.plan.ops import Execute, Lost, NotApplied, Op, Reply, RequestFailure, Unreached
from epochal.settings import LIGHT

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


Carrier = Callable[[DynamoRequest], dict[str, Any]]
"""Sends a request and returns its answer; raises `DynamoFault`, or what botocore raises of a connection."""


def interpreter(client: DynamoDBClient) -> Execute:
    """An interpreter that performs plans through a client of boto3's. Safe to share between threads, as clients are."""
    from epochal.dynamo.clients import boto3_carrier, may_retry  # noqa: PLC0415  functions do without

    return performed(boto3_carrier(client), retries=may_retry(client))


def performed(carry: Carrier, *, retries: bool = False) -> Execute:
    """An interpreter that performs plans through a carrier.

    Args:
        retries: the carrier may try more than once before it raises.
    """
    answered = False

    def execute(op: Op) -> Reply:
        nonlocal answered
        ops.check(op)
        try:
            reply = _talk(carry, op)
        except DynamoFault as fault:
            answered = True
            return reply_to(fault, op)
        except BotoCoreError as error:
            raise failure_of(error, retries=retries, answered=answered) from error
        answered = True
        return reply

    return execute


def _talk(carry: Carrier, op: Op) -> Reply:
    talk = conversation(op)
    request = next(talk)
    while True:
        try:
            request = talk.send(carry(request))
        except StopIteration as ended:
            reply: Reply = ended.value
            return reply


def failure_of(error: BotoCoreError, *, retries: bool, answered: bool = True) -> RequestFailure:
    """The failure that a broken connection means; for any other error of boto ours is raised.

    Args:
        retries: the client retries by itself, so an earlier try may have gone further than the last.
        answered: the address has answered this process before, so it is the right one.
    """
    from epochal.dynamo.aws_errors import address_of, cause_of, meaning_of  # noqa: PLC0415  rarely needed

    unmade = isinstance(error, EndpointConnectionError | ConnectTimeoutError | ProxyConnectionError)
    if unmade and not retries:
        if answered or isinstance(error, ConnectTimeoutError):
            return NotApplied(cause_of(error))
        return Unreached(
            f"nothing has ever answered at {address_of(error)}: is the address right, with its region?"
        )
    if isinstance(error, ConnectionError | HTTPClientError):
        return Lost(cause_of(error))
    raise meaning_of(error) from error


# What performs plans: through which carrier, and where.
#
# light     botocore's signer and HTTP session, where the environment says all that there is to know; else as boto3, and
#           the logger `epochal.dynamo` says why, once a process
# boto3     a client of boto3's, whatever the configuration

_LOGGER: Final = logging.getLogger("epochal.dynamo")


def execute_through(carrier: str, *, endpoint: str | None = None, region: str | None = None) -> Execute:
    """An interpreter. Credentials, address and region come from the usual AWS chain where they are not given."""
    if carrier == LIGHT:
        home = Path(os.path.expanduser("~"))  # noqa: PTH111  where there is none pathlib raises
        found = light_carrier(os.environ, home, endpoint=endpoint, region=region)
        if not isinstance(found, str):
            return performed(found)
        _say(found)
    from epochal.dynamo.clients import dynamodb_client  # noqa: PLC0415  likewise

    return interpreter(dynamodb_client(endpoint=endpoint, region=region))


@cache
def _say(why: str) -> None:
    """No warning of Python's: a program that makes errors of these would not start for what is slower, not wrong."""
    _LOGGER.warning("the carrier `light` gives way to a boto3 client, at twice the CPU: %s", why)


# botocore's signer and HTTP session as a carrier, without the machinery of its clients.
#
# Beside boto3 and its client it is imported in half the time, and a request takes half of the CPU.

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 6
"""DynamoDB answers in milliseconds; a request that takes seconds is better tried again elsewhere."""

CONNECTIONS: Final = 32

_AT_ONCE: Final[Any] = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
"""Headers and body are sent one after the other: the body would wait for 40 ms until the headers are acknowledged."""


def _session() -> URLLib3Session:
    seconds: Any = (CONNECT_SECONDS, READ_SECONDS)
    return URLLib3Session(timeout=seconds, max_pool_connections=CONNECTIONS, socket_options=_AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCarrier:
    """Sends requests to one address. Safe to share between threads.

    Attributes:
        url: of the service.
        region: that requests are signed for.
        credentials: that each request asks for anew, so that those that expire are renewed.
    """

    url: str
    region: str
    credentials: Credentials
    session: URLLib3Session = field(default_factory=_session)

    def __call__(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request and return its answer."""
        headers = headers_of(request) | {"User-Agent": "epochal"}
        unsigned = AWSRequest("POST", self.url, headers=headers, data=body_of(request))
        signer = SigV4Auth(self.credentials.get_frozen_credentials(), "dynamodb", self.region)
        signer.add_auth(unsigned)
        answer = self.session.send(unsigned.prepare())
        return answer_of(request, answer.status_code, answer.headers, answer.content)

    def close(self) -> None:
        """Close the connections."""
        self.session.close()


# Where DynamoDB is, and with whose credentials, where the variables of the environment say all of it.
#
# They do in functions and containers. Whatever else there may be, as a profile, a proxy, FIPS or another partition,
# is for boto3's client to read, and so is a variable that is not known here.

_READ: Final = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SECURITY_TOKEN",
        "AWS_CREDENTIAL_EXPIRATION",
        "AWS_ACCOUNT_ID",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_DYNAMODB",
    }
)
_OF_OTHERS: Final = re.compile(
    r"AWS_(REGION|EXECUTION_ENV|ACCESS_KEY|SECRET_KEY|LAMBDA_\w+|XRAY_\w+|CONTAINER_\w+|S3_\w+|ENDPOINT_URL_\w+"
    r"|EC2_METADATA_DISABLED|DISABLE_HOST_PREFIX_INJECTION)"
)
"""What Lambda tells, what botocore's providers of credentials read by themselves, and what other services are told."""

_MORE: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE"})
_BOTO: Final = "BOTO"
"""How names of botocore's own variables begin."""

_FILES: Final = ("config", "credentials")

_REGION: Final = re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-[0-9]+")
"""Regions of the partition whose addresses end with amazonaws.com."""

_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.\-:\[\]]+/?")


def light_carrier(
    environment: Mapping[str, str],
    home: Path,
    *,
    endpoint: str | None = None,
    region: str | None = None,
) -> SessionCarrier | str:
    """The carrier for what the environment says; where that is not all that there is to know, what else there is.

    Args:
        home: where the files of profiles would be.
        endpoint, region: other than those of the environment.
    """
    region = region or environment.get("AWS_DEFAULT_REGION", "")
    named = environment.get("AWS_ENDPOINT_URL_DYNAMODB") or environment.get("AWS_ENDPOINT_URL")
    address = endpoint or named or ""
    if not _REGION.fullmatch(region):
        return "the region is not in AWS_DEFAULT_REGION, or its addresses are of their own kind"
    if address and not _ADDRESS.fullmatch(address):
        return "the endpoint is more than a scheme, a host and a port"
    if (more := _more(environment, home)) is not None:
        return more
    credentials = _credentials(environment)
    if credentials is None:
        return "the environment has no credentials"
    # Credentials that tell their account are answered at an address of the account's own.
    account = getattr(credentials, "account_id", None)  # those of an older botocore do not
    own = f"{account}.ddb" if account else "dynamodb"
    url = address or f"https://{own}.{region}.amazonaws.com"
    return SessionCarrier(url=url, region=region, credentials=credentials)


def _credentials(environment: Mapping[str, str]) -> Credentials | None:
    """Those that there are; what is amiss with them is for boto3's client to say."""
    try:
        return EnvProvider(environment).load() or ContainerProvider(environment).load()
    except BotoCoreError:
        return None


def _more(environment: Mapping[str, str], home: Path) -> str | None:
    """What else there is to read."""
    for name in environment:
        if not _is_known(name):
            return f"{name} is set"
    for each in _FILES:
        # Of a home that cannot be read pathlib raises; what botocore cannot read is not there for it either.
        if os.path.exists(home / ".aws" / each):  # noqa: PTH110
            return f"~/.aws/{each} is there"
    return None


def _is_known(name: str) -> bool:
    if name.startswith("AWS_"):
        return name in _READ or _OF_OTHERS.fullmatch(name) is not None
    return not name.startswith(_BOTO) and name.upper() not in _MORE
