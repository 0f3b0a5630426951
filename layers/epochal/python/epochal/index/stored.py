"""The index is an ordinary store of tips (DESIGN §5.7): all that it, and its care, take from there.

A name is resolved when it is first asked for, so a function that only looks at an item loads nothing that writes one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from epochal.model.names import StreamName

if TYPE_CHECKING:
    from epochal.layout.key_records import PREFIX as PREFIX
    from epochal.layout.key_records import KeyRecord as KeyRecord
    from epochal.layout.stored import EncodedEvent as EncodedEvent
    from epochal.layout.stored import EncodedUnfold as EncodedUnfold
    from epochal.layout.streams import Rejected as Rejected
    from epochal.layout.streams import Written as Written
    from epochal.layout.tips.append import append as append
    from epochal.layout.tips.append import append_on as append_on
    from epochal.layout.tips.batch import Known as Known
    from epochal.layout.tips.batch import batch_of as batch_of
    from epochal.layout.tips.calving import ByCost as ByCost
    from epochal.layout.tips.heads import WHERE as WHERE
    from epochal.layout.tips.items import TIP as TIP
    from epochal.layout.tips.items import StoredSpan as StoredSpan
    from epochal.layout.tips.items import Tip as Tip
    from epochal.layout.tips.items import calf_key as calf_key
    from epochal.layout.tips.items import event_bytes as event_bytes
    from epochal.layout.tips.items import is_tip as is_tip
    from epochal.layout.tips.items import read_data as read_data
    from epochal.layout.tips.items import read_event as read_event
    from epochal.layout.tips.items import read_timestamp as read_timestamp
    from epochal.layout.tips.items import read_unfold as read_unfold
    from epochal.layout.tips.items import tip_key as tip_key
    from epochal.layout.tips.keyed import append_once as append_once
    from epochal.layout.tips.reading import Cursor as Cursor
    from epochal.layout.tips.reading import advance as advance
    from epochal.layout.tips.reading import load_tip as load_tip
    from epochal.layout.tips.reading import stand as stand
    from epochal.layout.tips.streams import Tips as Tips


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


# ruff: noqa: PLC0414  mypy reads "as" as the giving on of a name


_NAMES: Final = {
    "key_records": ("KeyRecord", "PREFIX"),
    "stored": ("EncodedEvent", "EncodedUnfold"),
    "streams": ("Rejected", "Written"),
    "tips.append": ("append", "append_on"),
    "tips.batch": ("Known", "batch_of"),
    "tips.calving": ("ByCost",),
    "tips.heads": ("WHERE",),
    "tips.items": (
        "StoredSpan",
        "TIP",
        "Tip",
        "calf_key",
        "event_bytes",
        "is_tip",
        "read_data",
        "read_event",
        "read_timestamp",
        "read_unfold",
        "tip_key",
    ),
    "tips.keyed": ("append_once",),
    "tips.reading": ("Cursor", "advance", "load_tip", "stand"),
    "tips.streams": ("Tips",),
}

_FROM: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"epochal.layout.{_FROM[name]}"), name)
