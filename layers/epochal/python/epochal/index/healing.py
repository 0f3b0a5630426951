"""Healing from the source: the types of events that a batch of stream records lacked."""

from __future__ import annotations

from epochal.errors import CorruptData
from epochal.index.epochs import Gap
from epochal.index.ingesting import Heal
from epochal.layout.tips.reading import advance, begin
from epochal.model.spans import Span
from epochal.plan.ops import Steps


def heal_tips(table: str) -> Heal:
    """Heals gaps of streams in a table of the `tips` layout."""

    def heal(gap: Gap) -> Steps[list[Span]]:
        try:
            return (yield from _read(table, gap))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptData(f"{gap.stream}: an item of it is not of the tips layout") from error

    return heal


def _read(table: str, gap: Gap) -> Steps[list[Span]]:
    cursor = yield from begin(table, gap.stream, gap.index)
    found: list[Span] = []
    while cursor is not None and not cursor.at_end and cursor.at < gap.end:
        pages = yield from advance(table, cursor)
        for span in pages.spans:
            kept = span.before(gap.end)
            if kept.types:
                found.append(Span(gap.stream, kept.base, kept.types))
        cursor = pages.cursor
    return found
