"""What came of copying."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Ending = Literal["copied", "unchanged", "tombstone", "refused", "differs"]
"""`unchanged`: the copy had everything already. `tombstone`: the stream was deleted, and so is its copy. `refused`:
nothing more was copied, and `why` says what kept it. `differs`: the copy is not what the original is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCopy:
    """A stream, and its copy.

    Attributes:
        version: of the original, when it was read.
        first: the first event that the original still has; those below are pruned.
        copied: events that were appended to the copy now.
        events: events that were compared.
        digest: of their contents, the same in both; empty where nothing was compared.
    """

    stream: str
    ending: Ending
    version: int = 0
    first: int = 0
    copied: int = 0
    events: int = 0
    digest: str = ""
    why: str = ""

    @property
    def sound(self) -> bool:
        """Whether the copy has what the original has."""
        return self.ending not in ("refused", "differs")


@dataclass(slots=True)
class Tally:
    """Sums over streams; those that are not sound are kept."""

    streams: int = 0
    copied: int = 0
    tombstones: int = 0
    pruned: int = 0
    unsound: list[StreamCopy] = field(default_factory=list)

    def add(self, each: StreamCopy) -> None:
        """Count one more."""
        self.streams += 1
        self.copied += each.copied
        self.tombstones += each.ending == "tombstone"
        self.pruned += each.first > 0 and each.ending != "tombstone"
        if not each.sound:
            self.unsound.append(each)
