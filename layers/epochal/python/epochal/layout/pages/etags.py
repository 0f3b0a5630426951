"""The etag of a page: what a writer that holds nothing else must know to append (FORMATS §8).

index (4 bytes)   full (1 bit) and revision (31 bits)   time of the latest stamp (8 bytes)      as 32 hex digits
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.model.times import END, Ticks
from epochal.model.versions import MAX_VERSION

_FULL: Final = 1 << 31
_MAX_REVISION: Final = _FULL - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """Which page was written last, and what its latest write left.

    Attributes:
        index: of the page's first event.
        time: of the stream's latest stamp; the next one is above it.
    """

    index: int
    revision: int
    full: bool
    time: Ticks

    def etag(self) -> str:
        """32 hex digits."""
        second = self.revision | (_FULL if self.full else 0)
        return f"{self.index:08x}{second:08x}{self.time:016x}"


def state_of(etag: str) -> PageState | None:
    """The inverse; None for what is no page's etag. An etag comes from outside, and what it says may be false."""
    index, second, time = int(etag[:8], 16), int(etag[8:16], 16), int(etag[16:], 16)
    if index > MAX_VERSION or not second & _MAX_REVISION or time >= END:
        return None
    return PageState(
        index=index, revision=second & _MAX_REVISION, full=bool(second & _FULL), time=Ticks(time)
    )
