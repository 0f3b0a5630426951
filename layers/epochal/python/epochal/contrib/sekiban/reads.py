"""What the store asks of the layout about one query (see `layout.reads`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from epochal.contrib.sekiban.backward import read_back
from epochal.contrib.sekiban.items import TagSite
from epochal.contrib.sekiban.paging import read_part
from epochal.contrib.sekiban.reading import read, stand
from epochal.layout.fences import Fence
from epochal.layout.reads import Part, PartBack, Wanted
from epochal.model.tagged_results import Down, Reach, Seen, Takes
from epochal.model.versions import Position
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class DcbReads:
    """See `layout.reads`."""

    site: TagSite
    fenced: Fence

    def everything(self, after: Position | None) -> Steps[Seen]:
        """See `reading.read`."""
        return read(self.site, self.fenced, after)

    def part_back(
        self, after: Position | None, rest: Down | None, takes: Takes, most: int
    ) -> Steps[PartBack]:
        """See `backward.read_back`."""
        return read_back(self.site, self.fenced, after, rest, takes, most=most)

    def begin(
        self,
        before: Reach,  # noqa: ARG002  heads alone are read
        limit: int,  # noqa: ARG002  likewise
    ) -> Steps[tuple[Position, Self]]:
        """See `reading.stand`."""
        return (yield from stand(self.site, self.fenced)), self

    def part(self, wanted: Wanted) -> Steps[Part]:
        """See `paging.read_part`. Entries are small: as many are read, whatever is wanted."""
        return read_part(self.site, self.fenced, wanted)
