"""Plans to requests that a carrier sends. Nothing is retried here.

What a carrier raises, as botocore's HTTP session does, which all of them send by:

    no connection was made          NotApplied; Lost where the carrier may have tried before
    time-out, cut off               Lost: it may have been applied
    no region, no credentials       Misconfigured
"""

from __future__ import annotations

import logging
import os.path
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ConnectionError,  # noqa: A004  botocore's own name
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
)

from epochal.dynamo.protocol.answers import DynamoFault, reply_to
from epochal.dynamo.protocol.requests import DynamoRequest, conversation
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
        from epochal.dynamo import light  # noqa: PLC0415  who asks for boto3 does without

        home = Path(os.path.expanduser("~"))  # noqa: PTH111  where there is none pathlib raises
        found = light.carrier(os.environ, home, endpoint=endpoint, region=region)
        if not isinstance(found, str):
            return performed(found)
        _say(found)
    from epochal.dynamo.clients import dynamodb_client  # noqa: PLC0415  likewise

    return interpreter(dynamodb_client(endpoint=endpoint, region=region))


@cache
def _say(why: str) -> None:
    """No warning of Python's: a program that makes errors of these would not start for what is slower, not wrong."""
    _LOGGER.warning("the carrier `light` gives way to a boto3 client, at twice the CPU: %s", why)
