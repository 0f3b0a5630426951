"""Tables of a test's own, on whichever stand-in."""

from __future__ import annotations

import uuid
from functools import cache, cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from botocore.config import Config
from botocore.credentials import Credentials

from epochal.care.table_creation import Provisioned, create_table
from epochal.contrib.local.endpoint import KEY, SECRET, Endpoint
from epochal.dynamo.carriers import LightCarrier
from epochal.dynamo.clients import credentials, dynamodb_client
from epochal.dynamo.wire.environment import Service
from epochal.plan.tables import TableSpec
from tests.support.contract_run import MOST_UNITS, PREFIX, Account

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


def light(endpoint: Endpoint) -> LightCarrier:
    """The light carrier to a stand-in, or to an account."""
    known = credentials() if isinstance(endpoint, Account) else Credentials(KEY, SECRET)
    return LightCarrier(Service(url=endpoint.url, region=endpoint.region, credentials=known))


def make(client: DynamoDBClient, spec: TableSpec, name: str = "") -> str:
    """The name of a new, empty table; in a run of `make contract` it is that run's, and bounded."""
    name = name or f"{PREFIX}{spec.kind}-{uuid.uuid4().hex[:12]}"
    create_table(client, name, spec, units=Provisioned(read=MOST_UNITS, write=MOST_UNITS) if PREFIX else None)
    return name


class Tables:
    """Makes uniquely named tables from specifications, and drops them when the block ends."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._patient = _patient_client(endpoint)
        self._names: list[str] = []

    @cached_property
    def client(self) -> DynamoDBClient:
        """The library's own, for those tests that ask for one."""
        return dynamodb_client(endpoint=self.endpoint.url, region=self.endpoint.region)

    def create(self, spec: TableSpec) -> str:
        """The name of a new, empty table."""
        self._names.append(make(self._patient, spec))
        return self._names[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._names:
            self._patient.delete_table(TableName=name)
        if "client" in vars(self):
            self.client.close()


@cache
def _patient_client(endpoint: Endpoint) -> DynamoDBClient:
    """A client that waits a minute: a stand-in whose machine is busy makes a table in that time, and not twice.

    One for each stand-in: making a client takes as long as making a table.
    """
    client: DynamoDBClient = endpoint.client(
        "dynamodb", config=Config(read_timeout=60, retries={"total_max_attempts": 10 if PREFIX else 1})
    )
    return client
