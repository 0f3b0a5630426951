"""The store of the `dcb` layout: events with tags, queries, and appends that the store itself makes conditional.

Every method answers from base tables, strongly consistent, except those that list everything, which have only indexes
to go by.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from epochal.contrib.sekiban import SekibanOptions
from epochal.contrib.sekiban.append import Stamp, TaggedBatch, append
from epochal.contrib.sekiban.entries import events_by_id
from epochal.contrib.sekiban.items import RecordedTaggedEvent, TaggedEvent, TagSite, read_event, tag_site_of
from epochal.contrib.sekiban.reading import DcbReads, read_heads, settled_events
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.layout.queries import Condition, Fence
from epochal.layout.streams import Also
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Claim, Event, format_ticks, from_unix_nanoseconds
from epochal.model.kinds import MAX_WHOLE, must_be_text, must_be_texts, must_be_whole
from epochal.model.tags import place_of
from epochal.model.versions import Appended, Conflict
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.ops import Steps
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.tagged import MAX_FIELD_BYTES, TaggedStore

if TYPE_CHECKING:
    from epochal.contrib.sekiban.listings import TagListings

READS_AT_ONCE: Final = 4
"""Requests that a listing has under way: some 400 events by tag, of which each may have 400 KB."""

MAX_READS_AT_ONCE: Final = 32
"""A client keeps so many connections."""


def opened(deployment: Deployment) -> DcbEvents:
    """The tagged events of a deployment."""
    return dcb_of(deployment.settings, deployment.driver)


def dcb_of(settings: Settings, driver: Driver) -> DcbEvents:
    """The tagged events of a deployment; partitions of the index of all events, if several, are read side by side."""
    chosen = settings.of_plugin(SekibanOptions)
    return DcbEvents(
        driver=driver,
        site=tag_site_of(settings),
        consistent=chosen.consistent_reads,
        reads_at_once=READS_AT_ONCE if chosen.write_shards > 1 else 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DcbEvents(TaggedStore):
    """Tagged events in their tables.

    Attributes, besides those of any store of them:
        site: the tables, how keys are made, and whether type heads are on.
        consistent: whether single events, and listings by tag, are read strongly consistent; else they cost half, and
            may miss what was written a moment ago. Queries, and positions, always are: entries that
            lag behind fresh heads look like corruption.
        reads_at_once: requests that a listing by tag, or one of all events over several partitions, has under way.
    """

    site: TagSite
    consistent: bool = True
    reads_at_once: int = 1
    # Each has an entry at least, and they share a head at best. More tags leave room for fewer.
    most_events: ClassVar[int] = (TRANSACTION_ITEMS - 1) // 2
    # An item has room for 400 KB, its tags and the rest of its fields included.
    most_bytes: ClassVar[int] = 390_000

    def __post_init__(self) -> None:
        must_be_whole(self.reads_at_once, "reads_at_once", -MAX_WHOLE)
        if not 1 <= self.reads_at_once <= MAX_READS_AT_ONCE:
            raise InvalidInput("reads_at_once", f"must be 1 to {MAX_READS_AT_ONCE}")

    def events(self, ids: Sequence[str]) -> dict[str, RecordedTaggedEvent]:
        """Events by id, at most 100; those that have expired, or never were, are missing.

        What a cheaper read does not find may have been written just now: it is asked for again.
        """
        must_be_texts(ids, MAX_FIELD_BYTES, "ids")
        found = self._found(ids, consistent=self.consistent)
        missing = [event_id for event_id in ids if event_id not in found]
        return found if self.consistent or not missing else found | self._found(missing, consistent=True)

    def checked(self, event: Event, field: str) -> Event:
        """An event whose fields keep the rules, with a new id where its caller chose none."""
        found = TaggedEvent.of(super(DcbEvents, self).checked(event, field))  # noqa: UP008  slots
        if found.executed_user is not None:
            must_be_text(found.executed_user, MAX_FIELD_BYTES, f"{field}.executed_user")
        for name, body in (("data", found.data), ("meta", found.meta)):
            if isinstance(body, Claim):
                raise InvalidInput(f"{field}.{name}", "must be here: these tables refer to no bucket")
        if found.id is None:
            return replace(found, id=str(uuid.UUID(bytes=self.fresh(16), version=4)))
        return found

    def _settled(self, ids: Sequence[str]) -> dict[str, RecordedTaggedEvent]:
        return self.driver.run(settled_events(self.site, list(ids)))

    def counts(self, tags: Sequence[str]) -> dict[str, int]:
        """How many events each tag has."""
        heads = self.driver.run(read_heads(self.site, tags))
        return {tag: heads[tag].count for tag in tags}

    @property
    def type_heads(self) -> bool:
        """Whether a query may name types without a tag: every event then moves a head of its type."""
        return self.site.type_heads

    @property
    def listings(self) -> TagListings:
        """Lists events by tag or in order of time, tags and their counts."""
        from epochal.contrib.sekiban.listings import TagListings  # noqa: PLC0415  appends do without

        return TagListings(store=self)

    def _append(
        self, events: Sequence[Event], condition: Condition | None, also: Also
    ) -> Steps[Appended | Conflict]:
        if also:
            raise InvalidInput("also", "cannot be one append where events are in Sekiban's tables")
        now = from_unix_nanoseconds(self.now())
        stamps = (
            Stamp(place_of(now, int.from_bytes(self.fresh(5), "big")), event.timestamp or format_ticks(now))
            for event in events
        )
        batch = TaggedBatch(events=tuple(map(TaggedEvent.of, events)), stamps=tuple(stamps))
        return append(self.site, batch, condition)

    def _reads(self, fenced: Fence) -> DcbReads:
        return DcbReads(site=self.site, fenced=fenced)

    def _found(self, ids: Sequence[str], *, consistent: bool) -> dict[str, RecordedTaggedEvent]:
        op = events_by_id(self.site, ids, consistent=consistent)
        return {event.id: event for event in map(read_event, self.driver.ask(op).items)}
