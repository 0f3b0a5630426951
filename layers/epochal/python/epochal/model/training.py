"""What became of training a dictionary for a category of streams."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A dictionary was trained on events of some streams, and measured on appends of others.

    Attributes:
        streams: that it was trained on, and
        events: of these.
        measured: appends that it was measured on.
        before: bytes that their events take as writers pack them now,
        after: and under this dictionary.
        dictionary: its id; None where there was too little to train on, or nothing that enough streams share.
        in_use: it pays, and writers take it from now on.
    """

    category: str
    streams: int
    events: int
    measured: int
    before: int
    after: int
    dictionary: str | None
    in_use: bool
