"""A reaction that writes down, in a table of its own, what it is given and when; and fails at streams that are told to
break, until they are told not to.
"""

from __future__ import annotations

import os
import time

import boto3

from epochal import Delivery, lambda_handler, reaction

dynamodb = boto3.client("dynamodb")
TABLE = os.environ["BOARD_TABLE"]


@reaction(name="board", categories=["Board"], attempts=2)
def board(delivery: Delivery) -> None:
    """One line for each event, in the order in which they came."""
    _break_if_told(delivery.stream)
    at = f"{time.time():.6f}"
    lines = [{"S": f"{event.index} {event.type} {at}"} for event in delivery.events]
    dynamodb.update_item(
        TableName=TABLE,
        Key={"stream": {"S": delivery.stream}},
        UpdateExpression="SET seen = list_append(if_not_exists(seen, :none), :lines)",
        ExpressionAttributeValues={":none": {"L": []}, ":lines": {"L": lines}},
    )


def _break_if_told(stream: str) -> None:
    told = dynamodb.get_item(TableName=TABLE, Key={"stream": {"S": f"break {stream}"}}, ConsistentRead=True)
    if "Item" in told:
        raise RuntimeError("told to break")


handler = lambda_handler(board)
