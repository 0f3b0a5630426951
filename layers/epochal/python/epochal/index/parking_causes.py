"""Why streams were parked: an item for each, beside the group's state and never part of it.

Only the group's state says that a stream is parked, and from which index on. A cause is written for people: it is
stored before the stream is parked, and may be missing, or remain after the stream is replayed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from epochal.index.checkpoints import MAX_KEY_BYTES
from epochal.lazy_dataclasses import dataclass
from epochal.plan.batches import get_all
from epochal.plan.ops import Delete, Put, Steps
from epochal.plan.values import Key, number, read_number, read_text, text

MAX_CAUSE: Final = 800
"""Characters of a cause that are kept. The trace is limited where it is taken, so an item costs three or four write
units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a stream was parked: its text, at which index, after how many attempts, when, and the trace."""

    stream: str
    index: int
    text: str
    attempts: int
    timestamp: str
    trace: str = ""


def keep_cause(table: str, partition: int, group: str, cause: Cause) -> Steps[None]:
    """Store why a stream was parked, replacing an earlier cause; nothing if its key would be too long."""
    key = _cause_key(partition, group, cause.stream)
    if len(key["p"]["S"].encode()) > MAX_KEY_BYTES:
        return
    item = {
        **key,
        "n": number(cause.index),
        "a": number(cause.attempts),
        "t": text(cause.timestamp),
        "x": text(cause.text[:MAX_CAUSE] or "-"),
        **({"w": text(cause.trace)} if cause.trace else {}),
    }
    yield Put(table=table, item=item)


def forget_cause(table: str, partition: int, group: str, stream: str) -> Steps[None]:
    """Delete the stored cause of a parked stream."""
    yield Delete(table=table, key=_cause_key(partition, group, stream))


def read_causes(table: str, partition: int, group: str, streams: Iterable[str]) -> Steps[dict[str, Cause]]:
    """Read the stored causes of parked streams, by stream."""
    keys = {stream: _cause_key(partition, group, stream) for stream in streams}
    names = {key["p"]["S"]: stream for stream, key in keys.items()}
    causes: dict[str, Cause] = {}
    for item in (yield from get_all(table, keys.values())):
        stream = names[item["p"]["S"]]
        causes[stream] = Cause(
            stream=stream,
            index=read_number(item, "n") or 0,
            text=item["x"]["S"],
            attempts=read_number(item, "a") or 0,
            timestamp=item["t"]["S"],
            trace=read_text(item, "w") or "",
        )
    return causes


def _cause_key(partition: int, group: str, stream: str) -> Key:
    """Return the key of a parked stream's cause."""
    return {"p": text(f"$Parked-{partition}_{group}_{stream}"), "i": number(0)}
