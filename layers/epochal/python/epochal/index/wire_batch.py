"""One append in its stored form, and the ids by which it is recognized."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from epochal.index.tip import StoredSpan, span_size, write_event
from epochal.layout.streams import EncodedEvent, EncodedUnfold
from epochal.lazy_dataclasses import dataclass
from epochal.model.moments import format_ticks, from_unix_nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """The identity of one write: a fresh etag, a fresh append id, and its time."""

    etag: str
    append_id: bytes
    timestamp: str

    @classmethod
    def drawn(cls, nanoseconds: int, fresh: Callable[[int], bytes]) -> Ids:
        """Draw new ids from the time in nanoseconds since 1970, and random bytes."""
        timestamp = format_ticks(from_unix_nanoseconds(nanoseconds))
        return cls(etag=fresh(16).hex(), append_id=fresh(16), timestamp=timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireBatch:
    """One append, all or nothing, in its stored form.

    Attributes:
        stream: name of the stream.
        span: the events, as if they began the stream; may be empty if there are unfolds.
        size: bytes that the span takes in an item, its lists included.
        unfolds: unfolds that replace those stored; None keeps them. Their versions are set once the index is known.
        etag: 32 hex digits, fresh; the same over all retries of this append. See `etag_at`.
        append_id: 16 bytes. The first 8 distinguish appends, the rest their contents.
        keyed: whether `append_id` stems from a caller's idempotency key, so that another process may have written it.
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
        """Number of events."""
        return len(self.span.events)

    def etag_at(self, first: int) -> str:
        """Return the etag that the append leaves if its events begin at index `first`.

        Under a key it is derived, because no other write has that append id at that index: whoever repeats the call
        knows the etag that an earlier call left, and can tell that state from what others have made of it since.
        """
        if not self.keyed or not self.count:
            return self.etag
        return keyed_etag(self.append_id, first)


def keyed_etag(append_id: bytes, first: int) -> str:
    """Derive the etag that an append under a key leaves if its events begin at index `first`."""
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
    """Encode events as one append, with the append id on the first of them."""
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
