"""The store of the `dcb` layout: events with tags, queries, and appends that the store itself makes conditional.

Every method answers from base tables, strongly consistent, except those that list everything, which have only indexes
to go by.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from epochal.contrib.sekiban import SekibanOptions
from epochal.contrib.sekiban.append import append
from epochal.contrib.sekiban.entries import events_by_id
from epochal.contrib.sekiban.items import RecordedTaggedEvent, TaggedEvent, TagSite, read_event, tag_site_of
from epochal.contrib.sekiban.reading import DcbReads, read_heads, settled_events
from epochal.contrib.sekiban.transaction import Stamp, TaggedBatch, tags_of
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.layout.queries import AppendCondition, Fence, fence
from epochal.layout.streams import Also
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.model.kinds import MAX_WHOLE, must_be_text, must_be_texts, must_be_whole
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tags import Query, make_place
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.queueing import Key, QueuePlace
from epochal.store.tag_turns import ends_left, keys_of, leave_ends
from epochal.store.tagged import MAX_FIELD_BYTES, TaggedStore

if TYPE_CHECKING:
    from epochal.contrib.sekiban.listings import TagListings

READS_AT_ONCE: Final = 4
"""Concurrent requests of a listing: some 400 events by tag, each of which may have 400 KB."""

MAX_READS_AT_ONCE: Final = 32
"""Number of connections that a client keeps, which limits concurrent requests."""


def opened(deployment: Deployment) -> DcbEvents:
    """Open the store of a deployment's tagged events."""
    return dcb_of(deployment.settings, deployment.driver)


def dcb_of(settings: Settings, driver: Driver) -> DcbEvents:
    """Open the store of tagged events for settings and a driver.

    If the index of all events has several partitions, listings read them concurrently.
    """
    chosen = settings.of_plugin(SekibanOptions)
    return DcbEvents(
        driver=driver,
        site=tag_site_of(settings),
        consistent=chosen.consistent_reads,
        reads_at_once=READS_AT_ONCE if chosen.write_shards > 1 else 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DcbEvents(TaggedStore):
    """A store of tagged events in Sekiban's tables.

    Attributes:
        site: names of the tables, the builder of their keys, and whether each event type has a head: an item that every
            append of the type updates.
        consistent: whether single events and listings by tag are read strongly consistent. Otherwise they cost half,
            and may miss the latest events. Queries and positions are always strongly consistent: entries that lag
            behind fresh heads look like corruption.
        reads_at_once: number of concurrent requests of a listing by tag, or of all events over several partitions.
    """

    site: TagSite
    consistent: bool = True
    reads_at_once: int = 1
    # Each event has at least one entry, and at best all share one head. More tags leave room for fewer events.
    most_events: ClassVar[int] = (TRANSACTION_ITEMS - 1) // 2
    # An item holds 400 KB, including the event's tags and other fields.
    most_bytes: ClassVar[int] = 390_000

    def __post_init__(self) -> None:
        must_be_whole(self.reads_at_once, "reads_at_once", -MAX_WHOLE)
        if not 1 <= self.reads_at_once <= MAX_READS_AT_ONCE:
            raise InvalidInput("reads_at_once", f"must be 1 to {MAX_READS_AT_ONCE}")

    def events(self, ids: Sequence[str]) -> dict[str, RecordedTaggedEvent]:
        """Read at most 100 events by id; unknown and expired ids are missing in the result.

        An event that an eventually consistent read does not find may just have been written, so it is read again,
        strongly consistent.
        """
        must_be_texts(ids, MAX_FIELD_BYTES, "ids")
        events = self._read_by_id(ids, consistent=self.consistent)
        missing = [event_id for event_id in ids if event_id not in events]
        return (
            events if self.consistent or not missing else events | self._read_by_id(missing, consistent=True)
        )

    def normalize_event(self, event: Event, field: str) -> Event:
        """Check an event's fields, and return it, with a new id if it has none; raise if a field is invalid.

        Raises:
            InvalidInput: a field breaks a rule; names it, below `field`.
        """
        tagged = TaggedEvent.of(super(DcbEvents, self).normalize_event(event, field))  # noqa: UP008  slots
        if tagged.executed_user is not None:
            must_be_text(tagged.executed_user, MAX_FIELD_BYTES, f"{field}.executed_user")
        for name, body in (("data", tagged.data), ("meta", tagged.meta)):
            if isinstance(body, Claim):
                raise InvalidInput(
                    f"{field}.{name}", "must be given inline: these tables do not use a bucket"
                )
        if tagged.id is None:
            return replace(tagged, id=str(uuid.UUID(bytes=self.fresh(16), version=4)))
        return tagged

    def _settled(self, ids: Sequence[str]) -> dict[str, RecordedTaggedEvent]:
        """Read events by id in transactions, which wait for appends that are being applied."""
        return self.driver.run(settled_events(self.site, list(ids)))

    def counts(self, tags: Sequence[str]) -> dict[str, int]:
        """Return the number of events of each tag."""
        heads = self.driver.run(read_heads(self.site, tags))
        return {tag: heads[tag].count for tag in tags}

    @property
    def type_heads(self) -> bool:
        """Whether queries may name event types without a tag; every append then updates an item (head) per type."""
        return self.site.type_heads

    @property
    def listings(self) -> TagListings:
        """Access to listings of events by tag or in order of time, and of tags with their counts."""
        from epochal.contrib.sekiban.listings import TagListings  # noqa: PLC0415  appends do without

        return TagListings(store=self)

    def queues_of(self, query: Query) -> Sequence[Key]:
        """Return keys of this process's queues, one for each tag whose head an append on the query checks.

        Args:
            query: query of the decisions.
        """
        return keys_of(self.site.tags, fence(query, type_heads=self.type_heads).all_tags)

    def _turn(self, events: Sequence[Event], condition: AppendCondition | None) -> QueuePlace:
        """Return the place of an append in the queues of the tags whose heads it moves or checks."""
        tags = {tag for event in events for tag in tags_of(event, type_heads=self.type_heads)}
        checked = () if condition is None else condition.fence.all_tags
        return QueuePlace(self.driver, *keys_of(self.site.tags, tags.union(checked)), inner=True)

    def _append(
        self, events: Sequence[Event], condition: AppendCondition | None, also: Also, place: QueuePlace
    ) -> Appended | Conflict:
        """Append events with new sortable ids, or return a `Conflict`; raise if `also` has other writes.

        An event without a time gets the current one. Heads that earlier callers in the queue left need not be read.

        Raises:
            InvalidInput: `also` has writes to other tables, which cannot go with an append to Sekiban's tables.
        """
        if also:
            raise InvalidInput(
                "also", "cannot be appended in one transaction with events in Sekiban's tables"
            )
        now = from_unix_nanoseconds(self.now())
        stamps = (
            Stamp(make_place(now, int.from_bytes(self.fresh(5), "big")), event.timestamp or format_ticks(now))
            for event in events
        )
        batch = TaggedBatch(events=tuple(map(TaggedEvent.of, events)), stamps=tuple(stamps))
        heads = ends_left(self.site.tags, place)
        place.write()
        outcome = self.driver.run(append(self.site, batch, condition, heads))
        leave_ends(self.site.tags, place, outcome)
        return outcome

    def _reads(self, fenced: Fence) -> DcbReads:
        """Make the reader of a fenced query."""
        return DcbReads(site=self.site, fenced=fenced)

    def _read_by_id(self, ids: Sequence[str], *, consistent: bool) -> dict[str, RecordedTaggedEvent]:
        """Read events by id with one request, and return those that exist, by id."""
        op = events_by_id(self.site, ids, consistent=consistent)
        return {event.id: event for event in map(read_event, self.driver.ask(op).items)}
