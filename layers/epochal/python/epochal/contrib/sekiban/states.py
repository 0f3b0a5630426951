"""Projection states as items: one for each version of each projector. FORMATS §3.

A state with fewer processed events than the stored one is refused: it comes from a projector that has
fallen behind, or started anew beside a newer one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Final

from epochal.codec.bodies import CHUNK
from epochal.contrib.sekiban.items import Keys
from epochal.errors import CorruptData
from epochal.lazy_dataclasses import dataclass
from epochal.plan.conditions import Absent, AnyOf, Compare
from epochal.plan.ops import Delete, Done, Get, Put, Query, Scan, Steps
from epochal.plan.values import AttributeValue, Item, Key, number, read_number, read_text, text


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """A stored projection state: its content, or the key of the object that has it, and which events it includes.

    Its content is `inline`, compressed and in base64, or in the bucket under the key `offload_key`.

    Attributes:
        projector: name of the projector.
        version: version of the projector.
        last_sortable_id: sortable id of the last event that the state includes; empty for a state without events.
        events_processed: number of events that the state includes.
        original_bytes: number of bytes of the content before compression.
        compressed_bytes: number of bytes of the content after compression.
        inline: compressed content in base64; None where it is in the bucket.
        offload_key: key of the object in the bucket; None where the content is `inline`.
        safe_window: text that the projector keeps about its safe window (the time in which late events may change the
            order); not interpreted here; None for none.
    """

    projector: str
    version: str
    last_sortable_id: str
    events_processed: int
    original_bytes: int
    compressed_bytes: int
    inline: str | None = None
    offload_key: str | None = None
    safe_window: str | None = None


_TEXTS: Final = {
    "projectorName": "projector",
    "projectorVersion": "version",
    "lastSortableUniqueId": "last_sortable_id",
    "stateData": "inline",
    "offloadKey": "offload_key",
    "safeWindowThreshold": "safe_window",
}
_NUMBERS: Final = {
    "eventsProcessed": "events_processed",
    "originalSizeBytes": "original_bytes",
    "compressedSizeBytes": "compressed_bytes",
}


def key_of(keys: Keys, projector: str, version: str) -> Key:
    """Return the primary key of a state."""
    return {"pk": text(keys.projector(projector)), "sk": text(f"VERSION#{version}")}


def upsert(table: str, keys: Keys, state: StoredState) -> Steps[StoredState | None]:
    """Store a state; return None, or the stored state if that has processed more events."""
    processed = number(state.events_processed)
    reply = yield Put(
        table=table,
        item=_write(keys, state),
        condition=AnyOf((Absent("pk"), Compare("eventsProcessed", "<=", processed))),
    )
    if isinstance(reply, Done) or reply.item is None:
        return None
    return _read(reply.item)


def latest(table: str, keys: Keys, projector: str, version: str) -> Steps[StoredState | None]:
    """Read the state of one version, strongly consistent, or None if there is none."""
    reply = yield Get(table=table, key=key_of(keys, projector, version))
    return None if reply.item is None else _read(reply.item)


def versions(table: str, keys: Keys, projector: str) -> Steps[list[StoredState]]:
    """Read the states of every version of a projector."""
    states: list[StoredState] = []
    last: Key | None = None
    while True:
        reply = yield Query(table=table, partition=("pk", text(keys.projector(projector))), after=last)
        states += map(_read, reply.items)
        if reply.last is None:
            return states
        last = reply.last


def versions_page(
    table: str, keys: Keys, projector: str, beyond: str | None, limit: int
) -> Steps[tuple[tuple[StoredState, ...], str | None]]:
    """Read up to `limit` states of versions after `beyond`; return them and the next `beyond`, or None.

    The latter is None on the last page.

    The lower bound is exact: no version has a character as low as NUL, which follows `beyond` in it.
    """
    lowest = "VERSION#" if beyond is None else f"VERSION#{beyond}\0"
    reply = yield Query(
        table=table,
        partition=("pk", text(keys.projector(projector))),
        sort=("sk", text(lowest), text("VERSION$")),
        limit=limit,
    )
    states = tuple(map(_read, reply.items))
    return states, None if reply.last is None else states[-1].version


def everything(table: str) -> Scan:
    """Make the scan of the states of all projectors of all tenants.

    Nothing lists projectors, so the scan reads the states themselves.
    """
    return Scan(table=table, consistent=False)


def own(keys: Keys, items: Iterable[Item]) -> list[StoredState]:
    """Decode those items of the table that are the tenant's states."""
    prefix = keys.projector("")
    return [_read(item) for item in items if item["pk"]["S"].startswith(prefix)]


def delete(table: str, keys: Keys, projector: str, version: str) -> Steps[None]:
    """Delete the state of one version; its object in the bucket, if any, becomes an orphan."""
    yield Delete(table=table, key=key_of(keys, projector, version))


def _write(keys: Keys, state: StoredState) -> Item:
    """Encode a state as an item."""
    item: dict[str, AttributeValue] = dict(key_of(keys, state.projector, state.version))
    item["isOffloaded"] = {"BOOL": state.offload_key is not None}
    for name, attribute in _TEXTS.items():
        value = getattr(state, attribute)
        if value is not None:
            item[name] = text(value)
    for name, attribute in _NUMBERS.items():
        item[name] = number(getattr(state, attribute))
    if keys.service:
        item["serviceId"] = text(keys.service)
    return item


def _read(item: Item) -> StoredState:
    """Decode a state from its item."""
    texts = {attribute: read_text(item, name) for name, attribute in _TEXTS.items()}
    numbers = {attribute: read_number(item, name) or 0 for name, attribute in _NUMBERS.items()}
    return StoredState(
        projector=texts["projector"] or "",
        version=texts["version"] or "",
        last_sortable_id=texts["last_sortable_id"] or "",
        inline=texts["inline"],
        offload_key=texts["offload_key"],
        safe_window=texts["safe_window"],
        **numbers,
    )


_GZIP: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedState:
    """Size of a state before and after compression, and the SHA-256 of the compressed bytes, in hex."""

    original: int
    compressed: int
    sha256: str


def pack(chunks: Iterable[bytes], into: IO[bytes]) -> PackedState:
    """Compress a state's chunks with gzip into a file, and return its sizes and hash."""
    packer = zlib.compressobj(level=6, wbits=_GZIP)
    digest, original, compressed = hashlib.sha256(), 0, 0
    for chunk in _with_end(chunks):
        packed = packer.flush() if chunk is None else packer.compress(chunk)
        original += 0 if chunk is None else len(chunk)
        compressed += into.write(packed)
        digest.update(packed)
    return PackedState(original=original, compressed=compressed, sha256=digest.hexdigest())


def unpack(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a state in gzip, and yield its content in chunks; raise `CorruptData` if it is broken.

    Raises:
        CorruptData: the state is not gzip, or is truncated.
    """
    opener = zlib.decompressobj(wbits=_GZIP)
    try:
        for chunk in chunks:
            remaining = chunk
            while remaining:
                yield opener.decompress(remaining, CHUNK)
                remaining = opener.unconsumed_tail
    except zlib.error as error:
        raise CorruptData("a projection's state is not gzip") from error
    if not opener.eof:
        raise CorruptData("a projection's state is truncated")


def to_text(packed: bytes) -> str:
    """Encode a compressed state as base64 for its item."""
    return base64.b64encode(packed).decode()


def from_text(text: str) -> bytes:
    """Decode a compressed state from the base64 of its item; raise `CorruptData` if it is not base64.

    Raises:
        CorruptData: the text is not base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptData("a projection's state is not base64") from error


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield the chunks, then None to mark the end."""
    yield from chunks
    yield None
