"""Results of copying streams."""

from __future__ import annotations

from typing import Literal

from epochal.lazy_dataclasses import dataclass, field

Ending = Literal["copied", "unchanged", "tombstone", "refused", "differs"]
"""Kind of result. `copied`: events were appended. `unchanged`: the copy had everything already. `tombstone`: the
stream was deleted, and so is its copy. `refused`: nothing more was copied, and `why` is the reason. `differs`: the copy
differs from the original, and `why` says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCopy:
    """Result of copying one stream.

    Attributes:
        stream: name of the stream
        ending: kind of result
        version: version of the original when it was read
        first: index of the first event that the original still has; those below are pruned
        copied: number of events that were appended to the copy now
        events: number of events that were compared
        digest: SHA-256 of the events' contents, the same in both streams; empty where nothing was compared
        why: reason why the stream was refused or differs; empty otherwise
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
        """Whether the copy has everything that the original has."""
        return self.ending not in ("refused", "differs")


@dataclass(slots=True)
class Tally:
    """Sums over the results of copied streams.

    Attributes:
        streams: number of streams visited
        copied: number of events appended
        tombstones: number of streams that were deleted
        pruned: number of streams whose first events are pruned
        unsound: results of streams that were refused or differ
    """

    streams: int = 0
    copied: int = 0
    tombstones: int = 0
    pruned: int = 0
    unsound: list[StreamCopy] = field(default_factory=list)

    def add(self, stream_copy: StreamCopy) -> None:
        """Add the result of a stream to the sums, and keep it in `unsound` if it was refused or differs."""
        self.streams += 1
        self.copied += stream_copy.copied
        self.tombstones += stream_copy.ending == "tombstone"
        self.pruned += stream_copy.first > 0 and stream_copy.ending != "tombstone"
        if not stream_copy.sound:
            self.unsound.append(stream_copy)
