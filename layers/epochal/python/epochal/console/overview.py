"""What there is: partitions with their tails, and the latest events of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochal.care.status import standings
from epochal.deployment import Deployment
from epochal.feed.latest import latest
from epochal.feed.results import PartitionTail

LATEST = 10


def show(deployment: Deployment, _: Mapping[str, str]) -> dict[str, Any]:
    """The partitions; of each its epochs, entries and bytes, and its last items."""
    feed = deployment.feed
    found = list(standings(deployment.driver, deployment.settings.index_table))
    recent = {
        each.partition: latest(feed, PartitionTail(partition=each.partition, tail=each.tail), LATEST)
        for each in found
    }
    return {"partitions": found, "recent": recent, "names": {each.partition: each.source for each in found}}
