"""A reaction that keeps, for each stream, how far it has come, and how often anything was skipped.

Events may come again, which is no harm; they may never begin beyond what was handled.
"""

from __future__ import annotations

import os
from itertools import pairwise

import boto3

from epochal import Delivery, lambda_handler, reaction

dynamodb = boto3.client("dynamodb")
TABLE = os.environ["REACHED_TABLE"]


@reaction(name="load", categories=["Load"])
def reached(delivery: Delivery) -> None:
    """Store the number of events of the stream that were handled."""
    indices = [event.index for event in delivery.events]
    whole = all(after == before + 1 for before, after in pairwise(indices))
    key = {"stream": {"S": delivery.stream}}
    item = dynamodb.get_item(TableName=TABLE, Key=key, ConsistentRead=True).get("Item", {})
    before = int(item.get("reached", {"N": "0"})["N"])
    skipped = not whole or indices[0] > before
    dynamodb.update_item(
        TableName=TABLE,
        Key=key,
        UpdateExpression="SET reached = :reached ADD skipped :skipped",
        ExpressionAttributeValues={
            ":reached": {"N": str(max(before, indices[-1] + 1))},
            ":skipped": {"N": str(int(skipped))},
        },
    )


handler = lambda_handler(reached)
