"""Records that can never be indexed: they are stored once, with the cause, so that the records beside them are indexed.

They are events of a stream of the index, one stream for each source. A record that is delivered again has the same
append id, by which it is found. These items outlive the code: FORMATS §4.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from epochal.codec.bodies import Encoded, encode
from epochal.index.checkpoints import poison_stream
from epochal.index.entries import MAX_ENTRY_BYTES
from epochal.index.tip import load_tip
from epochal.index.tip_append import append_once
from epochal.index.wire_batch import Ids, batch_of
from epochal.layout.key_records import KeyRecord, lower_bound, put_record
from epochal.layout.registry import base_of, head_key
from epochal.layout.streams import EncodedEvent
from epochal.lazy_dataclasses import dataclass
from epochal.model.moments import parse_time, unix_seconds
from epochal.model.tokens import version_of
from epochal.plan.ops import Steps
from epochal.plan.values import Item, item_size

SET_ASIDE: Final = "SetAside"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRecord:
    """A record of a source that cannot be indexed, and why."""

    source: str
    sequence_number: str
    image: Item
    cause: Exception


def set_aside(table: str, poison: UnreadableRecord, ids: Ids) -> Steps[bool]:
    """Store a record that cannot be indexed, once; return False if it had been stored before."""
    stream = poison_stream(base_of(poison.source))
    batch = batch_of(
        stream,
        [EncodedEvent(type=SET_ASIDE, data=_body(poison), timestamp=ids.timestamp)],
        etag=ids.etag,
        append_id=hashlib.sha256(poison.sequence_number.encode()).digest()[:16],
        keyed=True,
    )
    key = KeyRecord.of(stream, poison.sequence_number, unix_seconds(parse_time(ids.timestamp)))
    tip = yield from load_tip(table, stream)
    # After the Tip, so that what it says covers every try that the Tip may have in it.
    seen = yield from put_record(table, key, version_of(tip))
    if seen is None:
        return (yield from append_once(table, batch, tip, version_of(tip)))
    seen = yield from lower_bound(table, key, version_of(tip), seen)
    return (yield from append_once(table, batch, tip, seen.first))


def _body(poison: UnreadableRecord) -> Encoded:
    """Encode a record and its cause; only the image's keys if the image is too large for an entry."""
    cause, image = poison.cause, poison.image
    fields: dict[str, Any] = {"cause": f"{type(cause).__name__}: {cause}", "image": image}
    body = _encoded(fields)
    if len(body.data) <= MAX_ENTRY_BYTES:
        return body
    return _encoded({**fields, "image": head_key(poison.source, image), "omitted": item_size(image)})


def _encoded(fields: dict[str, Any]) -> Encoded:
    """Encode fields as a JSON body."""
    return encode(json.dumps(fields, default=_readable, separators=(",", ":")).encode())


def _readable(value: Any) -> str:
    """Write a binary value as hexadecimal text, since JSON has no form for it."""
    return value.hex() if isinstance(value, bytes) else repr(value)
