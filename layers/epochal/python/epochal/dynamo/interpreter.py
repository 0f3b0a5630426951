"""Opens deployments on AWS, and performs plans through a carrier. Nothing is retried here.

The carrier of a deployment is a setting:

    light     requests signed and sent by `wire`, with the configuration of the environment, or else of botocore; where
              it does not cover the configuration, as with a proxy, it falls back to boto3, and the logger
              `epochal.dynamo` says why, once a process
    boto3     a client of boto3's, whatever the configuration
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

from epochal.deployment import Deployment
from epochal.dynamo.carriers import Carrier, LightCarrier
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.protocol.conversations import conversation
from epochal.dynamo.protocol.faults import DynamoFault, reply_to
from epochal.dynamo.wire.environment import Service, find_client_patch, service_from_environment
from epochal.dynamo.wire.http import NoAnswer, Unsent
from epochal.errors import MissingTable
from epochal.lazy_dataclasses import dataclass
from epochal.named_objects import load_object
from epochal.plan import limits
from epochal.plan.failures import Lost, RequestNotApplied, Unreached
from epochal.plan.ops import Execute, Op, Reply
from epochal.settings import LIGHT, Settings
from epochal.store.driver import Driver, Meter, Patience

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from epochal.deployment import Links
    from epochal.store.encoding import Bodies, Objects


def interpreter(client: DynamoDBClient) -> Execute:
    """Build an interpreter that performs plans through a boto3 client.

    It is safe to share between threads, as clients are.
    """
    from epochal.dynamo.boto3_carrier import boto3_carrier  # noqa: PLC0415  functions do without

    return carrier_interpreter(
        boto3_carrier(client), partial(database_name, client.meta.region_name, client.meta.endpoint_url)
    )


def database_name(region: str, address: str) -> str:
    """Name a database by its region and address, for error messages."""
    return f"{region} ({address.rstrip('/')})"


def _nowhere() -> str:
    """Return empty text: the carrier's address is not known."""
    return ""


def carrier_interpreter(carry: Carrier, where: Callable[[], str] = _nowhere) -> Execute:
    """Build an interpreter that performs plans by sending their requests through a carrier.

    Args:
        where: names the region and address that the carrier sends to, for error messages.
    """
    answered = False

    def execute(op: Op) -> Reply:
        """Check an operation's limits, perform it and return its reply; translate failures of the carrier."""
        nonlocal answered
        limits.check(op)
        try:
            reply = _run_conversation(carry, op)
        except DynamoFault as fault:
            answered = True
            try:
                return reply_to(fault, op)
            except MissingTable as error:
                raise MissingTable(error.table, where()) from fault
        except Unsent as error:
            if answered or not error.nowhere:  # what has answered before has the right address
                raise RequestNotApplied(str(error)) from error
            raise Unreached(
                f"nothing has ever answered at {error.address}: check the address and its region"
            ) from error
        except NoAnswer as error:
            raise Lost(str(error)) from error
        answered = True
        return reply

    return execute


def _run_conversation(carry: Carrier, op: Op) -> Reply:
    """Send the requests of an operation one by one, and return its reply."""
    exchange = conversation(op)
    request = next(exchange)
    while True:
        try:
            request = exchange.send(carry(request))
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply


_LOGGER: Final = logging.getLogger("epochal.dynamo")


def execute_through(carrier: str, *, endpoint: str | None = None, region: str | None = None) -> Execute:
    """Build an interpreter for `carrier`: `light` if that covers the configuration, otherwise `boto3`.

    Credentials, address and region come from the usual AWS chain unless they are given. `light` falls back to boto3 if
    it does not cover the configuration.
    """
    if carrier == LIGHT:
        service = _find_service(endpoint, region)
        if isinstance(service, Service):
            return carrier_interpreter(
                LightCarrier(service), partial(database_name, service.region, service.url)
            )
        _warn_once(service)
    from epochal.dynamo.clients import dynamodb_client  # noqa: PLC0415  functions do without

    return interpreter(dynamodb_client(endpoint=endpoint, region=region))


def _find_service(endpoint: str | None, region: str | None) -> Service | str:
    """Find DynamoDB's address and credentials for the light carrier, or return why it cannot be used."""
    if reason := find_client_patch():
        return reason
    if service := service_from_environment(os.environ, endpoint=endpoint, region=region):
        return service
    from epochal.dynamo.clients import service_from_botocore  # noqa: PLC0415  functions do without

    return service_from_botocore(endpoint=endpoint, region=region)


@cache
def _warn_once(why: str) -> None:
    """Log once per process why requests go through boto3 instead of the light carrier.

    It is not a Python warning: a program that turns these into errors would not start, although nothing is wrong, only
    slower.
    """
    _LOGGER.warning(
        "requests to DynamoDB go through boto3, which uses three times the CPU of the light carrier: %s", why
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Bucket:
    """A bucket by name, with the services that use it.

    Without a name there are none, and bodies that are too large for an item are refused.
    """

    s3: S3Client
    name: str

    @property
    def bodies(self) -> Bodies | None:
        """Storage of events' bodies; None without a bucket."""
        if not self.name:
            return None
        return cast("Bodies", _LazyBucket("epochal.dynamo.s3_bodies:S3Bodies", self.s3, self.name))

    @property
    def objects(self) -> Objects | None:
        """Storage of objects of optional packages; None without a bucket."""
        if not self.name:
            return None
        return cast("Objects", _LazyBucket("epochal.dynamo.s3_objects:S3Objects", self.s3, self.name))

    @property
    def links(self) -> Links:
        """Service that signs URLs."""
        return cast("Links", _LazyBucket("epochal.dynamo.s3_links:S3Links", self.s3, self.name))


class _LazyBucket:
    """Forwards method calls to a class, `module:name`, that is imported at the first call.

    Such a module imports errors of botocore, and few bodies are too large for an item.
    """

    def __init__(self, place: str, s3: S3Client, name: str) -> None:
        self._made = (place, s3, name)

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    def _call(self, method: str, *args: Any) -> Any:
        """Import the class, and call one of its methods."""
        place, s3, name = self._made
        return getattr(load_object(place)(s3, name), method)(*args)


def open_deployment(
    settings: Settings,
    *,
    execute: Execute | None = None,
    s3: S3Client | None = None,
    at_once: int = 1,
    patience: Patience | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Deployment:
    """Build the deployment that settings describe: driver, tables and bucket.

    Args:
        execute: performs plans. By default, the carrier of the settings does.
        s3: client for the bucket. By default, one with the usual chain of credentials and region.
        patience: how long to retry. By default, that of functions, with the retries of the settings.
        at_once: number of requests that may be under way at the same time.
        kinds: kinds of the tables that a caller named, by table. These tables are checked before they are used.
    """
    execute = execute or execute_through(settings.carrier)
    if kinds:
        from epochal.dynamo.table_kinds import with_table_checks  # noqa: PLC0415  most callers name no table

        execute = with_table_checks(execute, kinds)
    return Deployment(
        settings=settings,
        driver=Driver(
            execute=execute,
            meter=Meter(),
            patience=patience or Patience(retries=settings.retries),
            at_once=at_once,
        ),
        bucket=S3Bucket(s3=s3 or lazily(_s3_client), name=settings.bucket),
    )


def _s3_client() -> S3Client:
    """Create an S3 client, importing botocore only now."""
    from epochal.dynamo.clients import s3_client  # noqa: PLC0415  functions do without

    return s3_client()
