"""Creating tables from their specifications: for tests, local work and experiments; deployments use the stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


def create_table(client: DynamoDBClient, name: str, spec: TableSpec, *, most: int | None = None) -> None:
    """Create a table on demand and wait until it can be used. Raises boto's error where it exists.

    `most` is a ceiling of its read and of its write units a second, and of those of each index.
    """
    ceiling = {"MaxReadRequestUnits": most, "MaxWriteRequestUnits": most}
    bound: dict[str, Any] = {} if most is None else {"OnDemandThroughput": ceiling}
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _schema(spec.partition, spec.sort),
        "AttributeDefinitions": _definitions(spec),
        **bound,
    }
    if spec.indexes:
        request["GlobalSecondaryIndexes"] = [{**_index(index), **bound} for index in spec.indexes]
    if spec.stream:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    made = client.create_table(**request)["TableDescription"]
    if made["TableStatus"] != "ACTIVE":  # a stand-in's is at once
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    if spec.ttl is not None:
        client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": spec.ttl}
        )


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
