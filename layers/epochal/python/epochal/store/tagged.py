"""The store of the `dcb` layout: events with tags, queries, and appends that the store itself makes conditional.

Every method answers from base tables, strongly consistent, except those that list everything, which have only indexes
to go by.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.layout.dcb.append import Condition, Rejected, Written, append
from epochal.layout.dcb.conditions import fence
from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.reading import Seen, Site, read, read_events
from epochal.layout.dcb.writes import Batch
from epochal.model.dcb import (
    Position,
    Query,
    RecordedTaggedEvent,
    TaggedEvent,
    check_tag,
    check_type,
    parse_event_id,
)
from epochal.model.times import from_unix_nanoseconds
from epochal.settings import Settings
from epochal.store.driver import Driver


def tag_site_of(settings: Settings) -> Site:
    """The tables of a deployment."""
    keys = Keys(service=settings.service, shards=settings.write_shards)
    return Site(
        events=settings.events_table, tags=settings.tags_table, keys=keys, type_heads=settings.type_heads
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEvents:
    """Tagged events in their tables.

    Attributes:
        site: the tables, how keys are made, and whether type heads are on.
        now: nanoseconds since 1970.
        fresh: random bytes.
    """

    driver: Driver
    site: Site
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def append(
        self,
        events: Sequence[TaggedEvent],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
    ) -> Written | Rejected:
        """Append events, unless an event that matches `fail_if` lies beyond `after`.

        Args:
            events: with their entries and heads at most 100 items and 4 MB.
            fail_if: None appends in any case.
            after: the position that a read of the same query returned; None means from the beginning.

        Raises:
            InvalidInput: no events, a malformed field, an id twice or with other contents, a condition by type
                alone while type heads are off, a position of another query.
            TooLarge: an event, or the transaction.
        """
        if fail_if is None and after is not None:
            raise InvalidInput("after", "needs a query to go with")
        condition = None
        if fail_if is not None:
            fenced = fence(fail_if, type_heads=self.site.type_heads)
            condition = Condition(fence=fenced, after=after)
        return self.driver.run(append(self.site, self._batch(events), condition))

    def read(self, query: Query, *, after: Position | None = None) -> Seen:
        """The events that match, in order, with the position to append after; or those new since `after`."""
        fenced = fence(query, type_heads=self.site.type_heads)
        return self.driver.run(read(self.site, fenced, after))

    def event(self, event_id: str) -> RecordedTaggedEvent | None:
        """One event; None where there is none, or it has expired."""
        wanted = parse_event_id(event_id)
        return self.driver.run(read_events(self.site, [wanted])).get(wanted)

    def _batch(self, events: Sequence[TaggedEvent]) -> Batch:
        if not events:
            raise InvalidInput("events", "must not be empty")
        checked = tuple(self._checked(event, f"events[{at}]") for at, event in enumerate(events))
        if len({event.id for event in checked}) < len(checked):
            raise InvalidInput("events", "an id stands twice")
        return Batch(
            events=checked,
            now=from_unix_nanoseconds(self.now()),
            randoms=tuple(int.from_bytes(self.fresh(5), "big") for _ in checked),
        )

    def _checked(self, event: TaggedEvent, field: str) -> TaggedEvent:
        check_type(event.type, f"{field}.type")
        for tag in event.tags:
            check_tag(tag, f"{field}.tags")
        try:
            json.loads(event.data)
        except ValueError as error:
            raise InvalidInput(f"{field}.data", "must be JSON") from error
        if event.id is None:
            return replace(event, id=str(uuid.UUID(bytes=self.fresh(16), version=4)))
        return replace(event, id=parse_event_id(event.id, f"{field}.id"))
