"""Tagged events as pages: a tag is a stream, an append to several tags one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochal.errors import InvalidInput
from epochal.layout.fences import Condition, Fence
from epochal.layout.pages.tags.append import append
from epochal.layout.pages.tags.batch import TaggedBatch
from epochal.layout.pages.tags.identities import events_by_id
from epochal.layout.pages.tags.paging import first_events, last_events, read_back, read_page
from epochal.layout.pages.tags.reading import read
from epochal.layout.pages.tags.site import TagStreams
from epochal.model.dcb import Position, RecordedTaggedEvent, TaggedEvent
from epochal.model.kinds import must_be_list, must_be_text
from epochal.model.tagged_results import (
    BackwardPage,
    Down,
    Rest,
    Seen,
    TaggedAppended,
    TaggedConflict,
    TaggedPage,
    Takes,
)
from epochal.model.times import from_unix_nanoseconds
from epochal.plan.ops import Steps
from epochal.store.tagged_store import MAX_FIELD_BYTES, TaggedStore


@dataclass(frozen=True, slots=True, kw_only=True)
class TagStreamEvents(TaggedStore):
    """Tagged events in a table of pages.

    Attributes, besides those of any store of them:
        site: the table, and of which types there are streams.
    """

    site: TagStreams

    def checked(self, event: TaggedEvent, field: str) -> TaggedEvent:
        """As of any store."""
        if event.expires is not None:
            raise InvalidInput(
                f"{field}.expires", "must not be given: events share pages, which do not expire"
            )
        return super(TagStreamEvents, self).checked(event, field)

    def events(self, ids: Sequence[str]) -> dict[str, RecordedTaggedEvent]:
        """Events by ids that their callers chose, at most 100; those that never were are missing.

        An id that the store chose is in its event, and nowhere else.
        """
        must_be_list(str, ids, "ids")
        for each in ids:
            must_be_text(each, MAX_FIELD_BYTES, "ids")
        return self.driver.run(events_by_id(self.site, ids))

    @property
    def _type_heads(self) -> frozenset[str]:
        return self.site.type_heads

    def _append(
        self, events: Sequence[TaggedEvent], condition: Condition | None
    ) -> Steps[TaggedAppended | TaggedConflict]:
        batch = TaggedBatch(
            events=tuple(events),
            now=from_unix_nanoseconds(self.now()),
            append_id=self.fresh(16),
            etag=self.fresh(16).hex(),
        )
        return append(self.site, batch, condition)

    def _read(
        self, fenced: Fence, after: Position | None, limit: int | None, *, forward: bool
    ) -> Steps[Seen]:
        if not forward:
            return last_events(self.site, fenced, after, limit)
        if limit is not None:
            return first_events(self.site, fenced, after, limit)
        return read(self.site, fenced, after)

    def _page(
        self, fenced: Fence, after: Position | None, rest: Rest | None, takes: Takes
    ) -> Steps[TaggedPage]:
        return read_page(self.site, fenced, after, rest, takes)

    def _page_back(
        self, fenced: Fence, after: Position | None, rest: Down | None, takes: Takes
    ) -> Steps[BackwardPage]:
        return read_back(self.site, fenced, after, rest, takes)
