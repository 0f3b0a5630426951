"""What a feed is made of: spans of events, by stream, index and type, without their bodies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive events of one stream: the first has index `index`, their types are `types`."""

    stream: str
    index: int
    types: tuple[str, ...]

    @property
    def next(self) -> int:
        """Index after the last."""
        return self.index + len(self.types)

    def since(self, index: int) -> Span:
        """Without the events below `index`."""
        cut = max(0, index - self.index)
        return Span(self.stream, self.index + cut, self.types[cut:])
