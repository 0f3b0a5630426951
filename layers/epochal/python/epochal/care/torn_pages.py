"""Finds what is wrong with the pages of one stream that were replicated in part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from epochal.care.torn import Torn
from epochal.lazy_dataclasses import dataclass
from epochal.pages.items import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """What a page says about its stream, without its events.

    Attributes:
        index: index of the page's first event.
        version: index after its last event.
        base: index of the first event that it still holds.
        held: index of the first event that readers get.
        low_water: index below which the stream is pruned, as this page says.
        full: whether the page is closed.
        state: whether the page holds unfolds itself.
        unfolds_at: index of the page that holds them, where that is another; else None.
    """

    index: int
    version: int
    base: int
    held: int
    low_water: int
    full: bool
    state: bool
    unfolds_at: int | None

    @classmethod
    def of(cls, page: Page) -> PageFacts:
        """Take the facts from a page, so that its events need not be kept."""
        return cls(
            index=page.index,
            version=page.version,
            base=page.base,
            held=page.span.base,
            low_water=page.low_water,
            full=page.full,
            state=bool(page.unfolds) and page.unfolds_at is None,
            unfolds_at=page.unfolds_at,
        )


def pruned_below(pages: Sequence[PageFacts]) -> int:
    """Return the index below which the stream is pruned, as far as its pages have come without a hole."""
    end = pages[-1].version
    low_waters = (candidate.low_water for candidate in pages if candidate.low_water <= end)
    mark = max(0, *low_waters, *(candidate.base for candidate in pages if candidate.base > candidate.index))
    next_index = 0
    for page in pages:
        if page.index > max(next_index, mark):
            return min(mark, next_index)
        next_index = page.version
    return mark


def torn_pages(stream: str, pages: Sequence[PageFacts]) -> Iterator[Torn]:
    """Yield what is wrong with the pages of one stream, given all of them in order."""
    mark, head, next_index = pruned_below(pages), pages[-1], 0
    lacking = head.low_water < mark and any(page.held < min(page.version, mark) for page in pages)
    if lacking or pages[0].low_water > head.version or any(_filled(pages, mark)):
        yield Torn(kind="pruned", stream=stream, end=mark)
    for page in pages:
        if page.index > max(next_index, mark) or page.index < next_index:
            yield Torn(
                kind="hole", stream=stream, index=min(next_index, page.index), end=max(next_index, page.index)
            )
        next_index = page.version
    for page, following in pairwise(pages):
        if not page.full and page.version == following.index:
            yield Torn(kind="open", stream=stream, index=page.index, end=page.version)
    if lacks_state(pages):
        yield Torn(kind="state", stream=stream, index=head.unfolds_at or 0, end=head.version)


def lacks_state(pages: Sequence[PageFacts]) -> bool:
    """Whether the page that should hold the stream's unfolds is missing, or not as it was left."""
    written_at = pages[-1].unfolds_at
    return written_at is not None and not any(
        page.index == written_at and page.state and page.full for page in pages
    )


def _filled(pages: Sequence[PageFacts], mark: int) -> Iterator[int]:
    """Yield the indexes of pages before which pages of pruned events are missing."""
    ends = (0, *(page.version for page in pages))
    return (page.index for page, end in zip(pages, ends, strict=False) if end < page.index <= mark)
