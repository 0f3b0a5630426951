"""Records that can never be indexed: kept once, with what is wrong with them, so that their neighbours go on.

They are events of a stream of the index, one for each source. A record that is delivered again has the same append id
and is found. This outlives the code: FORMATS §4.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from epochal.codec.bodies import Encoded, encode
from epochal.index.entries import MAX_ENTRY_BYTES
from epochal.index.series import Ids
from epochal.index.stored import (
    ByCost,
    EncodedEvent,
    KeyRecord,
    Written,
    append_once,
    batch_of,
    poison_stream,
)
from epochal.layout.registry import base_of, head_key
from epochal.model.times import parse_time, unix_seconds
from epochal.model.versions import ANY
from epochal.plan.ops import Steps
from epochal.plan.sizes import item_size
from epochal.plan.values import Item

SET_ASIDE: Final = "SetAside"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRecord:
    """A record of a source that cannot be indexed, and why."""

    source: str
    sequence_number: str
    image: Item
    cause: Exception


def set_aside(table: str, poison: UnreadableRecord, ids: Ids) -> Steps[bool]:
    """Keep a record. False: it had been set aside before."""
    stream = poison_stream(base_of(poison.source))
    batch = batch_of(
        stream,
        [EncodedEvent(type=SET_ASIDE, data=_body(poison), timestamp=ids.timestamp)],
        etag=ids.etag,
        append_id=hashlib.sha256(poison.sequence_number.encode()).digest()[:16],
        keyed=True,
    )
    key = KeyRecord.of(stream, poison.sequence_number, unix_seconds(parse_time(ids.timestamp)))
    result = yield from append_once(table, batch, ANY, ByCost(), key)
    return isinstance(result, Written) and not result.replayed


def _body(poison: UnreadableRecord) -> Encoded:
    """The image, or its keys alone where an entry has no room for it: evidence must not become poison itself."""
    cause, image = poison.cause, poison.image
    fields: dict[str, Any] = {"cause": f"{type(cause).__name__}: {cause}", "image": image}
    body = _encoded(fields)
    if len(body.data) <= MAX_ENTRY_BYTES:
        return body
    return _encoded({**fields, "image": head_key(poison.source, image), "omitted": item_size(image)})


def _encoded(fields: dict[str, Any]) -> Encoded:
    return encode(json.dumps(fields, default=_readable, separators=(",", ":")).encode())


def _readable(value: Any) -> str:
    """Binaries of an image, which JSON has no form for."""
    return value.hex() if isinstance(value, bytes) else repr(value)
