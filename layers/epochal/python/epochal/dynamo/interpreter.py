"""Plans to requests that a carrier sends. Nothing is retried here.

What a carrier raises:

    Unsent          NotApplied: no connection was made
    NoAnswer          Lost: it may have been applied
    DynamoFault     what it means (`dynamo.protocol`)
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epochal.dynamo.protocol import (
    MEDIA,
    DynamoFault,
    DynamoRequest,
    answer_of,
    body_of,
    conversation,
    reply_to,
    target_of,
)
from epochal.plan import ops
from epochal.plan.ops import Execute, Lost, NotApplied, Op, Reply, Unreached
from epochal.settings import LIGHT
from epochal.wire.environment import Service, Signer, at_hand, hooked
from epochal.wire.http import Connections, NoAnswer, Unsent, host_of, roots

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


Carrier = Callable[[DynamoRequest], dict[str, Any]]
"""Sends a request and returns its answer."""


def interpreter(client: DynamoDBClient) -> Execute:
    """An interpreter that performs plans through a client of boto3's. Safe to share between threads, as clients are."""
    from epochal.dynamo.clients import boto3_carrier  # noqa: PLC0415  functions do without

    return performed(boto3_carrier(client))


def performed(carry: Carrier) -> Execute:
    """An interpreter that performs plans through a carrier."""
    answered = False

    def execute(op: Op) -> Reply:
        nonlocal answered
        ops.check(op)
        try:
            reply = _talk(carry, op)
        except DynamoFault as fault:
            answered = True
            return reply_to(fault, op)
        except Unsent as error:
            if answered or not error.nowhere:  # what has answered before has the right address
                raise NotApplied(str(error)) from error
            raise Unreached(
                f"nothing has ever answered at {error.address}: is the address right, with its region?"
            ) from error
        except NoAnswer as error:
            raise Lost(str(error)) from error
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


# What performs plans: through which carrier, and where.
#
# light     requests signed and sent by `wire`, with what the environment says, or else what botocore has found; where
#           that is not all, as with a proxy, as boto3, and the logger `epochal.dynamo` says why, once a process
# boto3     a client of boto3's, whatever the configuration

_LOGGER: Final = logging.getLogger("epochal.dynamo")


def execute_through(carrier: str, *, endpoint: str | None = None, region: str | None = None) -> Execute:
    """An interpreter. Credentials, address and region come from the usual AWS chain where they are not given."""
    if carrier == LIGHT:
        found = _found(endpoint, region)
        if isinstance(found, Service):
            return performed(LightCarrier(found))
        _say(found)
    from epochal.dynamo.clients import dynamodb_client  # noqa: PLC0415  likewise

    return interpreter(dynamodb_client(endpoint=endpoint, region=region))


def _found(endpoint: str | None, region: str | None) -> Service | str:
    """DynamoDB as it is reached without a client; or why it is not."""
    if why := hooked():
        return why
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  where there is none pathlib raises
    if found := at_hand(os.environ, home, endpoint=endpoint, region=region):
        return found
    from epochal.dynamo.clients import found_by_boto3  # noqa: PLC0415  likewise

    return found_by_boto3(endpoint=endpoint, region=region)


@cache
def _say(why: str) -> None:
    """No warning of Python's: a program that makes errors of these would not start for what is slower, not wrong."""
    _LOGGER.warning("the carrier `light` gives way to a boto3 client, at thrice the CPU: %s", why)


class LightCarrier:
    """Sends requests to one address. Safe to share between threads; a fork may go on using it."""

    def __init__(self, service: Service) -> None:
        bundle = service.bundle
        self._connections = Connections(
            service.url, tls=partial(ssl.create_default_context, cafile=bundle) if bundle else roots
        )
        self._signer = Signer(host_of(service.url), service.region, "dynamodb")
        self._credentials = service.credentials

    def __call__(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request and return its answer."""
        body = body_of(request)
        keys = self._credentials.get_frozen_credentials()
        headers = self._signer.headers(keys, target_of(request), MEDIA, body)
        return answer_of(request, *self._connections.send(headers, body))

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()
