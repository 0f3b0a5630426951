"""Names of the index's own streams. This outlives the code: FORMATS §4."""

from __future__ import annotations

from typing import Final

from epochal.model.names import StreamName

SERIES: Final = StreamName("$AppendsIndex-0")
"""The one stream that says which epoch each partition has reached, and how many partitions a source has."""

EPOCHS: Final = "$AppendsEpoch-"
"""How the names of epochs' streams begin."""

MAX_KEY_BYTES: Final = 2048
"""DynamoDB's limit on partition keys, and so on the name of a mark."""


def epoch_stream(partition: int, epoch: int) -> StreamName:
    """The stream of one epoch."""
    return StreamName(f"{EPOCHS}{partition}_{epoch}")


def mark_name(partition: int, stream: str) -> str:
    """Partition key of a stream's mark where that is an item of its own, as they were before leaves."""
    return f"$Indexed-{partition}_{stream}"


def marks_name(partition: int) -> str:
    """Partition key of the leaves that have a partition's marks."""
    return f"$Marks-{partition}"


def poison_stream(partition: int) -> StreamName:
    """Where records that cannot be indexed are set aside."""
    return StreamName(f"$Poison-{partition}")
