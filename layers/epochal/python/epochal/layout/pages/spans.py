"""A page's events as a span: a frame is opened when the first of its events is wanted, and once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from epochal.errors import CorruptData
from epochal.layout.stored import StoredEvent

if TYPE_CHECKING:
    from epochal.layout.pages.items import Page


class _Opened:
    """What all spans of a page have opened of it.

    Attributes:
        places: of each event that the page holds, its frame and its position in that.
        frames: those that are open.
    """

    __slots__ = ("base", "frames", "places")

    def __init__(self) -> None:
        self.base = 0
        self.places: list[tuple[int, int]] | None = None
        self.frames: dict[int, tuple[StoredEvent, ...]] = {}

    def place(self, page: Page, index: int) -> tuple[int, int]:
        """Where event `index` is. Raises `IndexError`."""
        if self.places is None:
            self.base = page.base
            self.places = [
                (number, position)
                for number, frame in enumerate(page.frames)
                for position in range(frame.count)
            ]
        if index < self.base:
            raise IndexError(index)
        return self.places[index - self.base]


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Events `base` to `next - 1` of a page that holds them."""

    page: Page
    base: int
    next: int
    _opened: _Opened = field(default_factory=_Opened, compare=False, repr=False)

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
        opened = self._opened
        number, position = opened.place(self.page, self.base + offset)
        events = opened.frames.get(number)
        if events is None:
            events = opened.frames[number] = self.page.read_frame(number)
        return events[position]

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
