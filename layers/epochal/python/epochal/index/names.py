"""Names of the index's own streams, and which partition a stream belongs to. This outlives the code: FORMATS §4."""

from __future__ import annotations

import hashlib
from typing import Final

from epochal.model.names import StreamName

SERIES: Final = StreamName("$AppendsIndex-0")
"""The one stream that says which epoch each partition has reached, and how many partitions a source has."""

BASE_DISTANCE: Final = 10_000

BASES: Final = {"tips": 0, "journal": BASE_DISTANCE, "dcb": 2 * BASE_DISTANCE}
"""First partition of each source. Partitions of one source are `base` to `base + P - 1`."""

MAX_KEY_BYTES: Final = 2048
"""DynamoDB's limit on partition keys, hence on the name of a mark."""


def epoch_stream(partition: int, epoch: int) -> StreamName:
    """The stream of one epoch."""
    return StreamName(f"$AppendsEpoch-{partition}_{epoch}")


def mark_name(partition: int, stream: str) -> str:
    """Partition key of a stream's mark: the next index of it to be indexed."""
    return f"$Indexed-{partition}_{stream}"


def poison_stream(partition: int) -> StreamName:
    """Where records that cannot be indexed are set aside."""
    return StreamName(f"$Poison-{partition}")


def source_of(partition: int) -> str:
    """Which source a partition is of."""
    return next(name for name, base in reversed(BASES.items()) if partition >= base)


def partition_of(stream: str, partitions: int, source: str = "tips") -> int:
    """Base of the source, and the first four bytes of the name's SHA-256, big-endian, modulo `partitions`."""
    digest = hashlib.sha256(stream.encode()).digest()
    return BASES[source] + int.from_bytes(digest[:4], "big") % partitions
