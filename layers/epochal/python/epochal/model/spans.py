"""Spans: consecutive events of a stream, by index and type, without their bodies. The feed is made of them."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

ITEM_BYTES: Final = 80
"""Bytes reckoned for an item of the feed besides the names of its stream and type, as JSON inside JSON."""


def name_bytes(name: str) -> int:
    """Bytes of a stream's or a type's name as JSON inside JSON, which are up to seven for each character of it."""
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return len(name)
    return len(json.dumps(json.dumps(name, ensure_ascii=False), ensure_ascii=False).encode()) - 6


# A named tuple, because catching up makes one for nearly every event: a frozen dataclass takes twice as long.
class Span(NamedTuple):
    """Consecutive events of one stream: the first has index `index`, their types are `types`."""

    stream: str
    index: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    types: tuple[str, ...]

    @property
    def next(self) -> int:
        """Index after the last."""
        return self.index + len(self.types)

    def since(self, index: int) -> Span:
        """Without the events below `index`."""
        cut = max(0, index - self.index)
        return Span(self.stream, self.index + cut, self.types[cut:])
