"""What an append is, in wire form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from epochal.layout import streams
from epochal.layout.stored import EncodedEvent, EncodedUnfold
from epochal.layout.tips.items import StoredSpan, Tip, span_size, write_event


@dataclass(frozen=True, slots=True, kw_only=True)
class WireBatch:
    """A batch (`layout.streams.Batch`) in wire form.

    Attributes:
        span: the events, as if they began the stream; may be empty where unfolds are given.
        size: bytes that the span takes in an item, its lists included.
        unfolds: replace those stored; None keeps them. Their versions are set once the index is known.
        etag: 32 hex digits, fresh; the same over all retries of this append. See `etag_at`.
        append_id: 16 bytes; the first 8 tell appends apart, the rest their contents.
        keyed: `append_id` stems from a caller's idempotency key, so another process may have written it.
    """

    stream: str
    span: StoredSpan
    size: int
    unfolds: tuple[EncodedUnfold, ...] | None
    etag: str
    append_id: bytes
    keyed: bool = False

    @property
    def count(self) -> int:
        """How many events."""
        return len(self.span.events)

    def etag_at(self, first: int) -> str:
        """The etag that the append leaves where its events begin at index `first`.

        Under a key it is derived, because no other write has that append id at that index: so whoever repeats the call
        knows the etag that an earlier one left, and tells that state from what others have made of it since.
        """
        if not self.keyed or not self.count:
            return self.etag
        return keyed_etag(self.append_id, first)


def keyed_etag(append_id: bytes, first: int) -> str:
    """The etag that an append under a key leaves, its events beginning at index `first`."""
    return hashlib.sha256(append_id + first.to_bytes(8, "big", signed=True)).hexdigest()[:32]


def batch_of(
    stream: str,
    events: Iterable[EncodedEvent],
    unfolds: tuple[EncodedUnfold, ...] | None = None,
    *,
    etag: str,
    append_id: bytes,
    keyed: bool = False,
) -> WireBatch:
    """Put events into wire form, the append id on the first of them."""
    marked = [event._replace(append_id=append_id if k == 0 else None) for k, event in enumerate(events)]
    span = StoredSpan(
        base=0, events=tuple(map(write_event, marked)), types=tuple(event.type for event in marked)
    )
    return WireBatch(
        stream=stream,
        span=span,
        size=span_size(span),
        unfolds=unfolds,
        etag=etag,
        append_id=append_id,
        keyed=keyed,
    )


def in_wire_form(batch: streams.Batch) -> WireBatch:
    """A store's batch as it is written."""
    return batch_of(
        batch.stream,
        batch.events,
        batch.unfolds,
        etag=batch.etag,
        append_id=batch.append_id,
        keyed=batch.keyed,
    )


Result: TypeAlias = streams.Result[Tip]

Known: TypeAlias = streams.Known[Tip]
