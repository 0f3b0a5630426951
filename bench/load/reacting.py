"""The reaction that is deployed beside the load, its table, and whether it has handled every event."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.programs import Places

TABLE: Final = "load-reaction"
PATIENCE: Final = 60.0
"""Seconds without progress after which the reaction is taken for stuck."""


def stages(places: Places) -> str:
    """Return the checkout's stages, with the reaction in `dev`, which may only use its own table."""
    context: dict[str, Any] = json.loads((places.root / "cdk.json").read_text())["context"]["stages"]
    own = f"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/{TABLE}"
    reaction = {
        "entry": "bench/load/reaction",
        "environment": {"REACHED_TABLE": TABLE},
        "allow": [{"actions": ["dynamodb:GetItem", "dynamodb:UpdateItem"], "resources": [own]}],
    }
    return json.dumps({**context, "dev": {**context["dev"], "reactions": {"load": reaction}}})


def make_table(endpoint: Endpoint) -> None:
    """Create the reaction's table before anything is deployed."""
    endpoint.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "stream", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "stream", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def reaction_differs(endpoint: Endpoint, expected: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with the reaction, after waiting until it should have handled these numbers of events."""
    counts, since = _reached(endpoint), time.monotonic()
    while any(counts.get(stream, (0, 0))[0] < events for stream, events in expected.items()):
        if time.monotonic() - since > PATIENCE:
            break
        time.sleep(0.5)
        before, counts = counts, _reached(endpoint)
        since = since if counts == before else time.monotonic()
    for stream, events in expected.items():
        reached, skipped = counts.get(stream, (0, 0))
        if reached != events:
            yield f"{stream}: the reaction has come to #{reached} of {events}"
        if skipped:
            yield f"{stream}: the reaction was handed events beyond those it had handled, {skipped} times"


def _reached(endpoint: Endpoint) -> dict[str, tuple[int, int]]:
    pages = endpoint.client("dynamodb").get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
    return {
        item["stream"]["S"]: (int(item["reached"]["N"]), int(item["skipped"]["N"]))
        for page in pages
        for item in page["Items"]
    }
