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
from typing import Final, Literal

from epochal.codec import json
from epochal.errors import ConflictError, InvalidInput
from epochal.layout.dcb.append import append
from epochal.layout.dcb.backward import last_events, read_back
from epochal.layout.dcb.items import read_event
from epochal.layout.dcb.listing import events_by_id
from epochal.layout.dcb.paging import first_events, read_page
from epochal.layout.dcb.reading import read
from epochal.layout.dcb.site import TagSite, tag_site_of
from epochal.layout.dcb.writes import Stamp, TaggedBatch
from epochal.layout.fences import Condition, Fence, fence, fence_after
from epochal.model.dcb import (
    Position,
    Query,
    RecordedTaggedEvent,
    TaggedEvent,
    check_tag,
    check_type,
    parse_event_id,
    sortable_id,
)
from epochal.model.kinds import MAX_WHOLE, must_be, must_be_list, must_be_text, must_be_whole
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
from epochal.model.times import format_ticks, from_unix_nanoseconds
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter

MAX_FIELD_BYTES: Final = 1024
"""Bytes of the ids and the name that say why and by whom an event came about."""

NAMED: Final = 3
"""Events that the error of a refused append names; it carries all."""

READS_AT_ONCE: Final = 4
"""Requests that a listing has under way: some 400 events by tag, of which each may have 400 KB."""

MAX_READS_AT_ONCE: Final = 32
"""A client keeps so many connections."""


def heads_watched(query: Query, *, type_heads: bool) -> int:
    """How many heads an append on the condition of this query looks at; raises `InvalidInput` where it names no tags
    and type heads are off.
    """
    return len(fence(query, type_heads=type_heads).all_tags)


def tagged_of(settings: Settings, driver: Driver) -> TaggedEvents:
    """The tagged events of a deployment; partitions of the index of all events, if several, are read side by side."""
    return TaggedEvents(
        driver=driver,
        site=tag_site_of(settings),
        consistent=settings.consistent_reads,
        reads_at_once=READS_AT_ONCE if settings.write_shards > 1 else 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEvents:
    """Tagged events in their tables.

    Attributes:
        site: the tables, how keys are made, and whether type heads are on.
        consistent: whether single events, and listings by tag, are read strongly consistent; else they cost half, and
            may miss what was written a moment ago. Queries, and positions, always are (decision 72).
        reads_at_once: requests that a listing by tag, or one of all events over several partitions, has under way.
        now: nanoseconds since 1970.
        fresh: random bytes, for ids.

    Besides what a method names, any raises `InvalidInput` for a malformed argument, `Unavailable`, `MissingTable`,
    `Refused` and `CorruptData`.
    """

    driver: Driver
    site: TagSite
    consistent: bool = True
    reads_at_once: int = 1
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def __post_init__(self) -> None:
        must_be_whole(self.reads_at_once, "reads_at_once", -MAX_WHOLE)
        if not 1 <= self.reads_at_once <= MAX_READS_AT_ONCE:
            raise InvalidInput("reads_at_once", f"must be 1 to {MAX_READS_AT_ONCE}")

    def append(
        self, events: Sequence[TaggedEvent], *, fail_if: Query | None = None, after: Position | None = None
    ) -> TaggedAppended:
        """Append events, unless an event that matches `fail_if` is beyond `after`.

        Args:
            events: with their entries and heads at most 100 items and 4 MB.
            fail_if: None appends in any case.
            after: the position of a read, or of an event, of the same query or of a broader one; None means from the
                beginning: no such event at all.

        Raises:
            InvalidInput: no events, a malformed field, an id twice or with other contents, a condition by type
                alone while type heads are off, a position of another query.
            TooLarge: an event, or the transaction.
            ConflictError: such events are there; carries a `TaggedConflict` with them.
        """
        outcome = self.try_append(events, fail_if=fail_if, after=after)
        if isinstance(outcome, TaggedConflict):
            raise ConflictError(_in_the_way(outcome), outcome)
        return outcome

    def try_append(
        self,
        events: Sequence[TaggedEvent],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        takes: Takes | None = None,
    ) -> TaggedAppended | TaggedConflict:
        """`append` for those who go on from a conflict: it is answered, not raised.

        Args:
            takes: how many of the events in the way a conflict brings; None is all.
        """
        must_be_list(TaggedEvent, events, "events")
        if fail_if is None and after is not None:
            raise InvalidInput("after", "needs a query to go with")
        condition = None
        if fail_if is not None:
            fenced = self._fence(fail_if, "fail_if", after)
            condition = Condition(fence=fenced, after=after, takes=takes)
        batch = self._batch(events)
        driver, meter = self.driver.metered()
        with meter:
            outcome = driver.run(append(self.site, batch, condition))
        return replace(outcome, capacity=meter.capacity)

    def read(
        self,
        query: Query,
        *,
        after: Position | None = None,
        limit: int | None = None,
        direction: Literal["forward", "backward"] = "forward",
    ) -> Seen:
        """The events that match, in order, with the position to append after; or those new since `after`.

        Each event has a position too, which has seen the events up to it.

        Args:
            after: the position of a read, or of an event, of this query or of a broader one.
            limit: events at most. Requests are bounded by what it takes to find so many.
            direction: backward is newest first. With a limit these are the last ones; the position has then seen all
                before them, too.
        """
        fenced = self._fence(query, "query", after)
        if limit is not None:
            must_be(int, limit, "limit", "a number")
            if limit < 1:
                raise InvalidInput("limit", "must be at least 1")
        if direction not in ("forward", "backward"):
            raise InvalidInput("direction", "must be forward or backward")
        if direction == "backward":
            steps = last_events(self.site, fenced, after, limit)
        elif limit is not None:
            steps = first_events(self.site, fenced, after, limit)
        else:
            steps = read(self.site, fenced, after)
        driver, meter = self.driver.metered()
        with meter:
            seen = driver.run(steps)
        return replace(seen, capacity=meter.capacity)

    def page(
        self, query: Query, *, after: Position | None = None, rest: Rest | None = None, takes: Takes
    ) -> TaggedPage:
        """A bounded part of what `read` returns; all pages together are one read.

        Args:
            rest: of the page before, which had the same query and `after`.
            takes: whether there is room for one more event; the first must be taken.
        """
        fenced = self._fence(query, "query", after)
        driver, meter = self.driver.metered()
        with meter:
            found = driver.run(read_page(self.site, fenced, after, rest, takes))
        return replace(found, capacity=meter.capacity)

    def page_back(
        self, query: Query, *, after: Position | None = None, rest: Down | None = None, takes: Takes
    ) -> BackwardPage:
        """`page`, newest first. Its position is that of the whole read on each page."""
        fenced = self._fence(query, "query", after)
        driver, meter = self.driver.metered()
        with meter:
            found = driver.run(read_back(self.site, fenced, after, rest, takes))
        return replace(found, capacity=meter.capacity)

    def event(self, event_id: str) -> RecordedTaggedEvent | None:
        """One event; None where there is none, or it has expired."""
        wanted = parse_event_id(event_id)
        return self.events([wanted]).get(wanted)

    def events(self, ids: Sequence[str]) -> dict[str, RecordedTaggedEvent]:
        """Events by id, at most 100; those that have expired, or never were, are missing.

        What a cheaper read does not find may have been written just now: it is asked for again.
        """
        must_be_list(str, ids, "ids")
        for each in ids:
            must_be_text(each, MAX_FIELD_BYTES, "ids")
        found = self._found(ids, consistent=self.consistent)
        missing = [event_id for event_id in ids if event_id not in found]
        return found if self.consistent or not missing else found | self._found(missing, consistent=True)

    def metered(self) -> tuple[TaggedEvents, Meter]:
        """The same store, and a meter of what it consumes: for what has no outcome to carry it, and for several calls.

        The meter of this store counts it, too.
        """
        driver, meter = self.driver.metered()
        return replace(self, driver=driver), meter

    def checked(self, event: TaggedEvent, field: str) -> TaggedEvent:
        """The event with an id; raises `InvalidInput` naming what is malformed below `field`."""
        check_type(event.type, f"{field}.type")
        for tag in event.tags:
            check_tag(tag, f"{field}.tags")
        for name in ("causation_id", "correlation_id", "executed_user"):
            if getattr(event, name) is not None:
                must_be_text(getattr(event, name), MAX_FIELD_BYTES, f"{field}.{name}")
        for name, body in (("data", event.data), ("meta", event.meta)):
            if isinstance(body, str):
                _check_json(body, f"{field}.{name}")
        if event.id is None:
            return replace(event, id=str(uuid.UUID(bytes=self.fresh(16), version=4)))
        return replace(event, id=parse_event_id(event.id, f"{field}.id"))

    def _fence(self, query: Query, field: str, after: Position | None) -> Fence:
        must_be(Query, query, field, "a Query")
        must_be((Position, type(None)), after, "after", "a position that a read returned")
        if after is None:
            return fence(query, type_heads=self.site.type_heads)
        return fence_after(query, after, type_heads=self.site.type_heads)

    def _found(self, ids: Sequence[str], *, consistent: bool) -> dict[str, RecordedTaggedEvent]:
        op = events_by_id(self.site, ids, consistent=consistent)
        return {event.id: event for event in map(read_event, self.driver.ask(op).items)}

    def _batch(self, events: Sequence[TaggedEvent]) -> TaggedBatch:
        if not events:
            raise InvalidInput("events", "must not be empty")
        checked = tuple(self.checked(event, f"events[{at}]") for at, event in enumerate(events))
        if len({event.id for event in checked}) < len(checked):
            raise InvalidInput("events", "an id stands twice")
        now = from_unix_nanoseconds(self.now())
        stamps = (
            Stamp(sortable_id(now, int.from_bytes(self.fresh(5), "big")), format_ticks(now)) for _ in checked
        )
        return TaggedBatch(events=checked, stamps=tuple(stamps))


def _in_the_way(rejected: TaggedConflict) -> str:
    named = ", ".join(f"{event.type} {event.id}" for event in rejected.events[:NAMED])
    rest = " and others" if len(rejected.events) > NAMED else ""
    return f"not appended: the condition forbids {named}{rest}, appended since the position given"


def _check_json(body: str, field: str) -> None:
    if body.startswith("\ufeff"):
        raise InvalidInput(field, "must be JSON without a byte order mark before it")
    try:
        json.loads(body.encode())
    except ValueError as error:
        raise InvalidInput(
            field, "must be JSON that UTF-8 can hold; what is not is given as bytes"
        ) from error
