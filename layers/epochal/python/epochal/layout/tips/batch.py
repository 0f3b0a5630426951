"""What an append is, and how it can end inside the layout."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from epochal.layout.stored import StoredEvent, StoredUnfold
from epochal.layout.tips.items import StoredSpan, Tip, span_size, write_event
from epochal.model.versions import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One append: all or nothing.

    Attributes:
        span: the events, in wire form, as if they began the stream; may be empty where unfolds are given.
        size: bytes that the span takes in an item, its lists included.
        unfolds: replace those stored; None keeps them. Their versions are set once the index is known.
        etag: 32 hex digits, fresh; the same over all retries of this append. See `etag_at`.
        append_id: 16 bytes; the first 8 tell appends apart, the rest their contents.
        keyed: `append_id` stems from a caller's idempotency key, so another process may have written it.
    """

    stream: str
    span: StoredSpan
    size: int
    unfolds: tuple[StoredUnfold, ...] | None
    etag: str
    append_id: bytes
    keyed: bool = False

    @property
    def count(self) -> int:
        """How many events."""
        return len(self.span.events)

    def etag_at(self, first: int) -> str:
        """The etag that the append leaves where its events begin at index `first`.

        Under a key it is derived, for no other write has that append id at that index: so whoever repeats the call
        knows the etag that an earlier one left, and tells that state from what others have made of it since.
        """
        if not self.keyed or not self.count:
            return self.etag
        return hashlib.sha256(self.append_id + first.to_bytes(8, "big", signed=True)).hexdigest()[:32]


def batch_of(
    stream: str,
    events: Iterable[StoredEvent],
    unfolds: tuple[StoredUnfold, ...] | None = None,
    *,
    etag: str,
    append_id: bytes,
    keyed: bool = False,
) -> Batch:
    """Put events into wire form, the append id on the first of them."""
    marked = [replace(event, append_id=append_id if k == 0 else None) for k, event in enumerate(events)]
    span = StoredSpan(
        base=0, events=tuple(map(write_event, marked)), types=tuple(event.type for event in marked)
    )
    return Batch(
        stream=stream,
        span=span,
        size=span_size(span),
        unfolds=unfolds,
        etag=etag,
        append_id=append_id,
        keyed=keyed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Committed, leaving the Tip at `token`; `replayed` where an earlier request with the key did it."""

    first: int
    version: int
    token: Token
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Not committed: this is the Tip that stood in the way; None where there is no such stream."""

    tip: Tip | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Whether it was committed at index `first` can no longer be told."""

    first: int


Settled = Written | Unknown

Result = Settled | Rejected

Known = Tip | Token | None
"""What a writer knows of the Tip: all of it, its token, or that there is none."""
