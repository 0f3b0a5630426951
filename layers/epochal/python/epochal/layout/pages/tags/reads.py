"""What the store asks of the layout about one query (see `layout.reads`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from epochal.layout.fences import Fence
from epochal.layout.pages.tags.paging import read_back, read_part
from epochal.layout.pages.tags.reading import Cursors, begin, read
from epochal.layout.pages.tags.site import TagStreams
from epochal.layout.reads import Part, PartBack, Wanted
from epochal.model.dcb import Position
from epochal.model.tagged_results import Down, Reach, Seen, Takes
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReads:
    """See `layout.reads`.

    Attributes:
        cursors: of the tags that a read begins with, whose pages came with its position.
    """

    site: TagStreams
    fenced: Fence
    cursors: Cursors = field(default_factory=dict)

    def everything(self, after: Position | None) -> Steps[Seen]:
        """See `reading.read`."""
        return read(self.site, self.fenced, after)

    def part_back(
        self, after: Position | None, rest: Down | None, takes: Takes, most: int
    ) -> Steps[PartBack]:
        """See `paging.read_back`."""
        return read_back(self.site, self.fenced, after, rest, takes, most=most)

    def begin(self, before: Reach, limit: int) -> Steps[tuple[Position, Self]]:
        """See `reading.begin`."""
        position, cursors = yield from begin(self.site, self.fenced, before, limit)
        return position, replace(self, cursors=cursors)

    def part(self, wanted: Wanted) -> Steps[Part]:
        """See `paging.read_part`."""
        return read_part(self.site, self.fenced, wanted, self.cursors)
