"""Events and unfolds of streams as a layout stores them: bodies encoded, everything else as it was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from epochal.codec.bodies import EMPTY, Encoded


class EncodedEvent(NamedTuple):
    """An event with its bodies encoded. The first of an append carries its id. One with tags says so in its `label`; as
    it is read, it has the append's `stamp` beside that.

    A tuple, because a long read makes one of each event, and a frozen dataclass takes three times as long to make.
    """

    type: str
    data: Encoded
    timestamp: str
    meta: Encoded = EMPTY
    correlation_id: str | None = None
    causation_id: str | None = None
    append_id: bytes | None = None
    label: bytes = b""
    stamp: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedUnfold:
    """An unfold with its bodies encoded; `version` is the stream's that it was made from."""

    version: int
    type: str
    data: Encoded
    meta: Encoded = EMPTY
    timestamp: str
