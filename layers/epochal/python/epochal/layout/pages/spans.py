"""A page's events as a span: a frame is opened when the first of its events is wanted, and once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from epochal.errors import CorruptData
from epochal.layout.stored import EncodedEvent

if TYPE_CHECKING:
    from epochal.layout.pages.items import Page


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Events `base` to `next - 1` of a page that holds them."""

    page: Page
    base: int
    next: int
    _opened: dict[int, EncodedEvent] = field(default_factory=dict, compare=False, repr=False)
    """What all spans of a page have opened of it, by index."""

    @property
    def types(self) -> Sequence[str]:
        """Of each, its type. Raises `CorruptData`."""
        return tuple(self.read(offset).type for offset in range(self.next - self.base))

    def since(self, index: int) -> PageSpan:
        """Without the events below `index`."""
        if index <= self.base:
            return self
        return PageSpan(self.page, min(max(self.base, index), self.next), self.next, self._opened)

    def before(self, index: int) -> PageSpan:
        """Without the events at or above `index`."""
        if index >= self.next:
            return self
        return PageSpan(self.page, self.base, max(min(self.next, index), self.base), self._opened)

    def read(self, offset: int) -> EncodedEvent:
        """The event at `base + offset`. Raises `CorruptData`."""
        index = self.base + offset
        event = self._opened.get(index)
        return self._open(index) if event is None else event

    def type(self, offset: int) -> str:
        """Its type; empty where the frame that holds it is broken."""
        event = self._found(offset)
        return "" if event is None else event.type

    def timestamp(self, offset: int) -> str:
        """When it happened, likewise."""
        event = self._found(offset)
        return "" if event is None else event.timestamp

    def _found(self, offset: int) -> EncodedEvent | None:
        try:
            return self.read(offset)
        except CorruptData:
            return None

    def _open(self, index: int) -> EncodedEvent:
        """Open the frame that holds event `index`; the event. Raises `IndexError`."""
        end = self.page.base
        for number, frame in enumerate(self.page.frames):
            first, end = end, end + frame.count
            if first <= index < end:
                self._opened.update(enumerate(self.page.read_frame(number), first))
                return self._opened[index]
        raise IndexError(index)
