"""The etag of a page: what a writer that holds nothing else must know to append (FORMATS §8).

index (4 bytes)   full (1 bit, then 31 of 0)   time of the latest stamp (8 bytes)      as 32 hex digits
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.model.times import END, Ticks
from epochal.model.versions import MAX_VERSION

_FULL: Final = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """Which page was written last, and what its latest write left.

    Attributes:
        index: of the page's first event.
        time: of its latest stamp. The next one is above it, so page and time name one state.
    """

    index: int
    full: bool
    time: Ticks

    def etag(self) -> str:
        """32 hex digits."""
        return f"{self.index:08x}{_FULL if self.full else 0:08x}{self.time:016x}"


def state_of(etag: str) -> PageState | None:
    """The inverse; None for what is no page's etag. An etag comes from outside, and what it says may be false."""
    try:
        index, second, time = int(etag[:8], 16), int(etag[8:16], 16), int(etag[16:], 16)
    except ValueError:
        return None
    if index > MAX_VERSION or second not in (0, _FULL) or time >= END:
        return None
    return PageState(index=index, full=bool(second), time=Ticks(time))
