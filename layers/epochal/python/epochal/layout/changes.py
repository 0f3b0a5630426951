"""Changes of streams as the feed gets them: events that were appended, events that were removed, or only that something
changed.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

from epochal.lazy_dataclasses import dataclass

RemovalKind = Literal["pruned", "emptied", "deleted"]
"""What was removed of a stream. `pruned`: events, and nothing else. `emptied`: all events and unfolds, while the stream
continues at its next index. `deleted`: all events and unfolds, and the stream takes no more events.
"""

_KINDS: Final[tuple[RemovalKind, ...]] = get_args(RemovalKind)


class Removal(NamedTuple):
    """A notice that events of a stream were removed: pruned, or all of them by emptying or deleting the stream.

    Attributes:
        stream: name of the stream.
        end: index below which all events of the stream are gone.
        kind: what removed the events: `pruned`, `emptied` or `deleted` (see `RemovalKind`).
        next: the stream's next index when the removal was noticed. In the feed all events below it come before the
            removal, all others after.
        first: index below which events were already gone before this removal.
    """

    stream: str
    end: int
    kind: RemovalKind
    next: int
    first: int = 0

    @property
    def types(self) -> tuple[str, ...]:
        """Always empty: a removal has no events, so none of the event types that a `Span` lists."""
        return ()

    @property
    def mark(self) -> int:
        """A number that grows with each removal of a stream; equal removals have the same number."""
        return 4 * self.end + _KINDS.index(self.kind) + 1

    @property
    def late(self) -> bool:
        """Whether the feed has an emptying or deletion only after later events of the stream, which still exist."""
        return self.kind != "pruned" and self.next > self.end


def end_of_mark(mark: int) -> int:
    """Return the `end` of the removal with a mark; 0 for mark 0, which stands for no removal."""
    return mark // 4


# A named tuple, because catching up makes one for nearly every event: a frozen dataclass takes twice as long.
class Span(NamedTuple):
    """Consecutive events of one stream: the index of the first, and the types of all.

    Attributes:
        stream: name of the stream.
        index: index of the span's first event in its stream.
        types: types of all events of the span, in order.
    """

    stream: str
    index: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    types: tuple[str, ...]

    @property
    def next(self) -> int:
        """Index after the span's last event."""
        return self.index + len(self.types)

    def since(self, index: int) -> Span:
        """Return the span without the events below `index`.

        Args:
            index: index of the first event that stays.
        """
        cut = max(0, index - self.index)
        return Span(self.stream, self.index + cut, self.types[cut:])

    def until(self, index: int) -> Span:
        """Return the span without the events from `index` on.

        Args:
            index: index after the last event that stays.
        """
        return Span(self.stream, self.index, self.types[: max(0, index - self.index)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A change of a stream whose head does not show the events, so that they must be read from the store."""

    stream: str


Change = Span | Touched | Removal
"""A change that a stream record reports. The `next` of a removal is that of the head."""
