"""Removals: events of a stream that are gone, as its heads tell it and as the feed has it, where they went."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

RemovalKind = Literal["pruned", "emptied", "deleted"]
"""`pruned`: events, and nothing else. `emptied`: all events and unfolds, while the stream goes on at its next index.
`deleted`: the same, and it takes no more events."""

_KINDS: Final[tuple[RemovalKind, ...]] = get_args(RemovalKind)


class Removal(NamedTuple):
    """Events of a stream that are gone: a prune, or a deletion.

    Attributes:
        end: all events below this index are gone.
        kind: what went.
        next: the stream's next index when they went. In the feed all events below it come before, all others after.
        first: events below this index were gone by the removal before.
    """

    stream: str
    end: int
    kind: RemovalKind
    next: int
    first: int = 0

    @property
    def types(self) -> tuple[str, ...]:
        """It has no events."""
        return ()

    @property
    def mark(self) -> int:
        """It increases along a stream, and two that say the same have the same."""
        return 4 * self.end + _KINDS.index(self.kind) + 1

    @property
    def late(self) -> bool:
        """Whether events have come before it that are not gone, although all were that there were when they went."""
        return self.kind != "pruned" and self.next > self.end


def end_of_mark(mark: int) -> int:
    """The `end` of the removal that has this mark; 0 of none."""
    return mark // 4
