"""States of projections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """A state as its item holds it: `inline` in base64, or in the bucket under `offload_key`."""

    projector: str
    version: str
    last_sortable_id: str
    events_processed: int
    original_bytes: int
    compressed_bytes: int
    inline: str | None = None
    offload_key: str | None = None
    safe_window: str | None = None
