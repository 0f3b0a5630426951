"""How the streams of the index are called, and the keys of their items (FORMATS §4). This outlives the code.

A function that only looks whether an item is the index's loads this alone.
"""

from __future__ import annotations

from typing import Final

from epochal.model.events import StreamName
from epochal.plan.ops import Condition, equals
from epochal.plan.values import Item, Key, number, text

TIP: Final = 2_147_483_647
"""Sort key of the Tip (Int32.MaxValue, as Equinox has it)."""

WHERE: Condition = equals("i", number(TIP))
"""What only Tips meet."""

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


def tip_key(stream: str) -> Key:
    """Primary key of a stream's Tip."""
    return calf_key(stream, TIP)


def calf_key(stream: str, base: int) -> Key:
    """Primary key of the calf whose first event has index `base`."""
    return {"p": text(stream), "i": number(base)}


def is_tip(item: Item) -> bool:
    """Whether an item of the table is a Tip."""
    return bool(item["i"]["N"] == str(TIP))
