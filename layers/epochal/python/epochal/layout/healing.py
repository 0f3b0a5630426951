"""Healing: reading from the store the events that no image of a head reported to the index.

Healing finds every event of a gap that was not pruned, in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import CorruptData
from epochal.layout.changes import Span
from epochal.lazy_dataclasses import dataclass, field
from epochal.plan.ops import Steps

if TYPE_CHECKING:
    from epochal.layout.streams import ReadCursor, ReadPart
    from epochal.model.moments import Ticks


PIECE: Final = 1024 * 1024
"""Bytes of types after which a piece ends; a piece may be larger by the result of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Events `index` to `end - 1` of a stream that the index lacks; all from `index` on without an `end`."""

    stream: str
    index: int
    end: int | None


@dataclass(slots=True, kw_only=True)
class Healed:
    """A piece of a gap, from its beginning, as it was read from the store.

    Attributes:
        spans: spans of events that the store has; events missing in between were pruned.
        times: time at which each span was written; None if the layout does not record it.
        whole: whether the piece is all of the gap.
        size: estimated bytes of the types.
    """

    spans: list[Span] = field(default_factory=list)
    times: list[Ticks | None] = field(default_factory=list)
    whole: bool = True
    size: int = 0

    @property
    def events(self) -> int:
        """Number of events that were found."""
        return sum(len(span.types) for span in self.spans)

    @property
    def full(self) -> bool:
        """Whether the piece is as large as a piece may be."""
        return self.size >= PIECE

    def add(self, span: Span, time: Ticks | None = None) -> None:
        """Add the next span and the time at which it was written; an empty span is ignored."""
        if span.types:
            self.spans.append(span)
            self.times.append(time)
            self.size += sum(len(kind) + 8 for kind in span.types)


Heal = Callable[[Gap], Steps[Healed]]
"""Reads from the source the events of a gap, or as many from its beginning as make a piece; those pruned meanwhile
are missing from the answer. Raises `CorruptData` where events are missing that were not pruned, or cannot be read."""


def soundly(heal: Heal, layout: str) -> Heal:
    """Wrap a layout's `heal` function so that an item that it cannot read raises `CorruptData`."""

    def healed(gap: Gap) -> Steps[Healed]:
        """Read the events of a gap; raise `CorruptData` for an item of another layout."""
        try:
            return (yield from heal(gap))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptData(f"{gap.stream}: an item does not have the layout {layout}") from error

    return healed


def _one_write(span: Any) -> Iterable[tuple[int, int, Ticks | None]]:
    return ((span.base, span.base + len(span.types), None),)


def heal_streams(
    layout: str,
    begin: Callable[[str, int], Steps[ReadCursor | None]],
    advance: Callable[[Any], Steps[ReadPart[Any, Any]]],
    writes: Callable[[Any], Iterable[tuple[int, int, Ticks | None]]] = _one_write,
) -> Heal:
    """Make the `heal` function of a layout of named streams: it reads a gap's events from the stream.

    Pruned events are passed over.

    Args:
        layout: name of the layout.
        begin: steps that return a cursor before an event of a stream.
        advance: steps that read the next part, whose spans have `types`.
        writes: function that returns the writes of a span: index of the first event, index after the last, and time.
    """

    def healed(gap: Gap) -> Steps[Healed]:
        """Read the events of a gap, or as many from its beginning as make a piece."""
        cursor = yield from begin(gap.stream, gap.index)
        piece = Healed()
        while cursor is not None and not cursor.at_end and (gap.end is None or cursor.at < gap.end):
            if piece.full:
                piece.whole = False
                return piece
            part = yield from advance(cursor)
            for span in part.spans:
                types = tuple(span.types)
                for first, end, time in writes(span):
                    last = end if gap.end is None else max(first, min(end, gap.end))
                    piece.add(Span(gap.stream, first, types[first - span.base : last - span.base]), time)
            cursor = part.cursor
        return piece

    return soundly(healed, layout)


def end_since(heal: Heal, stream: str, index: int) -> Steps[tuple[int, CorruptData | None]]:
    """Read a stream from `index` on; return its end, or the index and the error at which reading stopped.

    Returns:
        The next index of the stream, and None; or the index that the read has reached, and the error at an item that
        cannot be read.
    """
    try:
        while True:
            piece = yield from heal(Gap(stream=stream, index=index, end=None))
            index += piece.events
            if piece.whole:
                return index, None
    except CorruptData as error:
        return index, error
