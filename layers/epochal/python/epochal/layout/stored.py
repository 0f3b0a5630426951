"""Events and unfolds of streams as a layout stores them: bodies encoded, everything else as it was given."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.codec.bodies import EMPTY, Encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event with its bodies encoded. The first of an append carries its id."""

    type: str
    data: Encoded
    meta: Encoded = EMPTY
    timestamp: str
    correlation_id: str | None = None
    causation_id: str | None = None
    append_id: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUnfold:
    """An unfold with its bodies encoded; `version` is the stream's that it was made from."""

    version: int
    type: str
    data: Encoded
    meta: Encoded = EMPTY
    timestamp: str
