"""A page's events as a span: a frame is opened when the first of its events is wanted, and once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from epochal.errors import CorruptData
from epochal.layout.stored import StoredEvent

if TYPE_CHECKING:
    from epochal.layout.pages.items import Page

_Opened = dict[int, tuple[StoredEvent, ...]]


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Events `base` to `next - 1` of a page that holds them."""

    page: Page
    base: int
    next: int
    _opened: _Opened = field(default_factory=dict, compare=False, repr=False)

    @property
    def types(self) -> Sequence[str]:
        """Of each, its type. Raises `CorruptData`."""
        return tuple(self.read(offset).type for offset in range(self.next - self.base))

    def since(self, index: int) -> PageSpan:
        """Without the events below `index`."""
        return PageSpan(self.page, min(max(self.base, index), self.next), self.next, self._opened)

    def before(self, index: int) -> PageSpan:
        """Without the events at or above `index`."""
        return PageSpan(self.page, self.base, max(min(self.next, index), self.base), self._opened)

    def read(self, offset: int) -> StoredEvent:
        """The event at `base + offset`. Raises `CorruptData`."""
        wanted = self.base + offset - self.page.base
        for position, frame in enumerate(self.page.frames):
            if wanted < frame.count:
                if position not in self._opened:
                    self._opened[position] = self.page.read_frame(position)
                return self._opened[position][wanted]
            wanted -= frame.count
        raise IndexError(offset)

    def type(self, offset: int) -> str:
        """Its type; empty where the frame that holds it is broken."""
        event = self._found(offset)
        return "" if event is None else event.type

    def timestamp(self, offset: int) -> str:
        """When it happened, likewise."""
        event = self._found(offset)
        return "" if event is None else event.timestamp

    def _found(self, offset: int) -> StoredEvent | None:
        try:
            return self.read(offset)
        except CorruptData:
            return None
