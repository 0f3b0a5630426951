"""Where streams end, as their heads tell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class End:
    """How far a stream has got.

    Attributes:
        next: the index after its last event; None where the head does not tell, and the store must be asked.
        pruned: every event below this index is gone.
        since: events below this index are told by other heads of the stream.
    """

    stream: str
    next: int | None
    pruned: int = 0
    since: int = 0
