"""Creates tables from their specifications, for the command line, tests and local work; deployments use the stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epochal.lazy_dataclasses import dataclass
from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """Read and write units a second of a table and of each of its indexes.

    Attributes:
        read: read units a second; None for no limit on demand.
        write: write units a second; None for no limit on demand.
        fixed: True for provisioned capacity; False for on-demand capacity with these limits.
    """

    read: int | None = None
    write: int | None = None
    fixed: bool = False


def create_table(
    client: DynamoDBClient,
    name: str,
    spec: TableSpec,
    *,
    units: Provisioned | None = None,
    regions: bool = False,
    protect: bool = False,
    recover: bool = False,
) -> None:
    """Create a table from its specification, and wait until it is usable; raise boto's error if it exists.

    Args:
        units: provisioned capacity, or a limit of on-demand capacity; no limit where None.
        regions: whether the table can get a replica later, for which it needs a stream, as the stacks' tables do.
        protect: whether its deletion is refused.
        recover: whether it can be restored to any second of the last 35 days.
    """
    bound = _bound(units or Provisioned())
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": _schema(spec.partition, spec.sort),
        "AttributeDefinitions": _definitions(spec),
        "BillingMode": "PROVISIONED" if units is not None and units.fixed else "PAY_PER_REQUEST",
        **bound,
    }
    if protect:
        request["DeletionProtectionEnabled"] = True
    if spec.indexes:
        request["GlobalSecondaryIndexes"] = [{**_index(index), **bound} for index in spec.indexes]
    if spec.stream or regions:
        view = "NEW_IMAGE" if spec.stream else "KEYS_ONLY"
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    complete(client, name, client.create_table(**request)["TableDescription"], spec, recover=recover)


def complete(
    client: DynamoDBClient, name: str, described: Any, spec: TableSpec, *, recover: bool = False
) -> None:
    """Wait until a table can be used; turn on its TTL, if specified, and its recovery, with `recover`.

    Neither is part of its creation.
    """
    if described["TableStatus"] != "ACTIVE":  # a stand-in's is at once
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    if spec.ttl is not None:
        expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if expiry.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            client.update_time_to_live(
                TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": spec.ttl}
            )
    if recover:
        client.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )


def differs(described: Any, spec: TableSpec) -> str | None:
    """Return what a described table differs in from its specification, such as its keys; None if nothing."""
    types = {
        description["AttributeName"]: description["AttributeType"]
        for description in described["AttributeDefinitions"]
    }
    if described["KeySchema"] != _schema(spec.partition, spec.sort):
        return "keys"
    if any(
        types.get(definition["AttributeName"]) != definition["AttributeType"]
        for definition in _definitions(spec)
    ):
        return "types of keys"
    indexes = {
        description["IndexName"]: description["KeySchema"]
        for description in described.get("GlobalSecondaryIndexes", ())
    }
    if any(indexes.get(index.name) != _schema(index.partition, index.sort) for index in spec.indexes):
        return "indexes"
    view = described.get("StreamSpecification", {}).get("StreamViewType")
    return "streams" if spec.stream and view not in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES") else None


def _bound(units: Provisioned) -> dict[str, Any]:
    """The request's fields for provisioned capacity, or for limits of on-demand capacity."""
    if units.fixed:
        return {"ProvisionedThroughput": {"ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write}}
    ceiling = {"MaxReadRequestUnits": units.read, "MaxWriteRequestUnits": units.write}
    limits = {name: most for name, most in ceiling.items() if most is not None}
    return {"OnDemandThroughput": limits} if limits else {}


def _schema(partition: KeyAttribute, sort: KeyAttribute | None) -> list[dict[str, str]]:
    keys = [{"AttributeName": partition.name, "KeyType": "HASH"}]
    return keys if sort is None else [*keys, {"AttributeName": sort.name, "KeyType": "RANGE"}]


def _definitions(spec: TableSpec) -> list[dict[str, str]]:
    keys = [spec.partition, spec.sort]
    for index in spec.indexes:
        keys += [index.partition, index.sort]
    types = {key.name: key.type for key in keys if key is not None}
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _index(index: IndexSpec) -> dict[str, Any]:
    return {
        "IndexName": index.name,
        "KeySchema": _schema(index.partition, index.sort),
        "Projection": {"ProjectionType": "KEYS_ONLY" if index.keys_only else "ALL"},
    }
