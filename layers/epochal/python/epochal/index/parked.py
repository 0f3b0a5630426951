"""Why streams were parked: an item for each, beside the group's state and never part of it.

Only the state says that a stream is parked, and from which index on. This is for people: it is written before
the stream is parked, and may be missing or left over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from epochal.index.names import MAX_KEY_BYTES
from epochal.plan.batches import get_all
from epochal.plan.ops import Delete, Put, Steps
from epochal.plan.values import Key, number, read_number, read_text, text

MAX_CAUSE: Final = 800
"""Characters of a cause that are kept. Whoever takes the trace bounds it: an item costs three write units, or four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a stream was parked at an index, after how many attempts, when, and where that was raised."""

    stream: str
    index: int
    text: str
    attempts: int
    timestamp: str
    trace: str = ""


def keep_cause(table: str, partition: int, group: str, cause: Cause) -> Steps[None]:
    """Keep a cause, in place of an earlier one."""
    key = _key(partition, group, cause.stream)
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
    """Forget why a stream was parked."""
    yield Delete(table=table, key=_key(partition, group, stream))


def read_causes(table: str, partition: int, group: str, streams: Iterable[str]) -> Steps[dict[str, Cause]]:
    """The causes on record of streams that are parked."""
    keys = {stream: _key(partition, group, stream) for stream in streams}
    names = {key["p"]["S"]: stream for stream, key in keys.items()}
    found: dict[str, Cause] = {}
    for item in (yield from get_all(table, keys.values())):
        stream = names[item["p"]["S"]]
        found[stream] = Cause(
            stream=stream,
            index=read_number(item, "n") or 0,
            text=item["x"]["S"],
            attempts=read_number(item, "a") or 0,
            timestamp=item["t"]["S"],
            trace=read_text(item, "w") or "",
        )
    return found


def _key(partition: int, group: str, stream: str) -> Key:
    return {"p": text(f"$Parked-{partition}_{group}_{stream}"), "i": number(0)}
