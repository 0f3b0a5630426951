"""The store of tagged events, with queries and with appends that a query can forbid. Both are strongly consistent.

`TaggedStore` is the base class; a subclass implements the appends and reads of its layout (`tagged_pages`).
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Final, Literal, Self, TypeVar

from epochal.errors import InvalidInput
from epochal.layout.queries import AppendCondition, Fence, IdTaken, TypeHeads, fence, fence_after
from epochal.layout.query_reads import ENTRIES, TaggedReads, read, read_page, read_page_back
from epochal.layout.streams import Also
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Event, Recorded
from epochal.model.kinds import must_be, must_be_list, must_be_text
from epochal.model.moments import format_ticks, from_unix_nanoseconds, read_moment
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import Position, Reached
from epochal.model.stream_names import TIMERS, no_step
from epochal.model.tag_answers import BackwardPage, Down, Rest, Seen, TaggedPage, Takes
from epochal.model.tags import Query, Trail, check_tag, check_type, own_tags, parse_event_id
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.ops import Steps
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import check_key, with_metadata
from epochal.store.outcomes import also_conflict, condition_error, explain_also_errors
from epochal.store.queueing import Key, QueuePlace
from epochal.store.reading import check_range

MAX_FIELD_BYTES: Final = 1024
"""Largest bytes of a causation id or correlation id."""

MAX_EVENTS: Final = 1_000
"""Largest number of events in an append over HTTP."""


_USED: Final = "was already used for an append with other contents"

_LOOKED_FOR: Final = (0, 1, 10, 55, TRANSACTION_ITEMS)
"""Bounds of the event numbers in the requests that look for a key's events. Most keys are unused, or have one event."""


A = TypeVar("A", Seen, TaggedPage, BackwardPage)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedStore(ABC):
    """A store of tagged events: appends under conditions, and queries by tags and types.

    Any method may raise `InvalidInput` for a malformed argument, `Unavailable`, `MissingTable`, `Refused` and
    `CorruptData`, in addition to the errors that the method lists.

    Attributes:
        driver: the driver that sends the requests.
        now: function that returns the time in nanoseconds since 1970.
        fresh: function that returns a given number of random bytes, for ids.
        fetch: whether bodies that lie in the bucket are fetched; if not, events have claims (references to the objects)
            in their place.
        most_events: largest number of events in one append over HTTP.
    """

    driver: Driver
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom
    fetch: bool = True
    most_events: ClassVar[int] = MAX_EVENTS

    def append(
        self,
        events: Sequence[Event],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        idempotency_key: str | None = None,
        also: Also = (),
    ) -> Appended:
        """Append events atomically; raise if an event beyond `after` matches the query `fail_if`.

        The events get the metadata of the block around the call (`epochal.metadata`). Events repeated by their ids keep
        the metadata of the first call.

        Args:
            events: all in one transaction of at most 100 items and 4 MB. It has an item for each different tag of
                events and condition, and for each id; in Sekiban's tables for each event and each tag of each, too.
            fail_if: a query. If an event that matches is stored, nothing is appended. None appends in any case.
            after: the position of a read, or of an event, of the same query or of a broader one: events up to it do
                not count for `fail_if`. None: all events count. Then up to 20,000 events of a tag are read, and if none
                of them matches and the tag has more, the append is refused.
            idempotency_key: key that makes all repeats in the store one append: a call with the same key and events
                gets the outcome of the first, whatever its condition, as long as the events are stored. The events get
                ids from the key, and have none of their own.
            also: writes to tables of your own in this transaction (`epochal.store.also`), which count among the 100
                items.

        Raises:
            InvalidInput: no events, a malformed field, an id twice or with other contents, a condition without tags
                for whose types the store was not opened, a position of another query, a key used for other contents.
            TooLarge: an event or the transaction is too large.
            ConflictError: events match `fail_if`; carries a `Conflict` with these events.
            ConditionUnmet: a condition of `also` does not hold; names its place, and the item in the way.
        """
        outcome = self.try_append(
            events, fail_if=fail_if, after=after, idempotency_key=idempotency_key, also=also
        )
        if isinstance(outcome, Conflict):
            raise condition_error(outcome)
        return outcome

    def try_append(
        self,
        events: Sequence[Event],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        takes: Takes | None = None,
        idempotency_key: str | None = None,
        also: Also = (),
    ) -> Appended | Conflict:
        """Append as `append` does, but return a conflict instead of raising it.

        Args:
            events, fail_if, after, idempotency_key, also: as for `append`.
            takes: function that says whether a conflict brings one more of the matching events; the first always comes.
                None brings all.
        """
        must_be_list(Event, events, "events")
        condition = self.condition(fail_if, after, takes)
        normalized = self._normalize_events(events)
        if idempotency_key is not None:
            normalized = with_keyed_ids(events, normalized, idempotency_key)
        store, meter = self.metered()
        with meter, explain_also_errors(also):
            with store._turn(normalized, condition) as place:  # noqa: SLF001  its own
                if idempotency_key is None:
                    outcome = store._append(normalized, condition, also, place)  # noqa: SLF001  its own
                else:
                    outcome = store._append_once(normalized, condition, idempotency_key, also, place)  # noqa: SLF001  its own
            if isinstance(outcome, Conflict) and outcome.unmet:
                return also_conflict(outcome, meter.capacity)
            if isinstance(outcome, Appended) and outcome.replayed:
                reader = replace(store, driver=store.driver.reading_back())
                outcome = replace(outcome, versions=reader.counts(own_tags(outcome.events)))
            elif isinstance(outcome, Appended):
                outcome = replace(outcome, events=_placed(outcome.events, outcome.versions))
            outcome = replace(outcome, events=store.whole(outcome.events))
        return replace(outcome, capacity=meter.capacity)

    def condition(
        self, fail_if: Query | None, after: Position | None, takes: Takes | None = None
    ) -> AppendCondition | None:
        """Make a layout's append condition from `fail_if`, `after` and `takes`; None without a query.

        Args:
            fail_if, after, takes: as for `try_append`.

        Raises:
            InvalidInput: `after` without a query; or as `append`.
        """
        if fail_if is None:
            if after is not None:
                raise InvalidInput("after", "must not be given without `fail_if`")
            return None
        return AppendCondition(fence=self._fence(fail_if, "fail_if", after), after=after, takes=takes)

    def appended(self, idempotency_key: str) -> tuple[Recorded, ...]:
        """Return the events that were appended under an idempotency key; none if the key is unused.

        It takes one request if the key is unused, and two for a few events.

        Args:
            idempotency_key: key that the events were appended under.
        """
        check_key(idempotency_key)
        events: list[Recorded] = []
        for first, end in pairwise(_LOOKED_FOR):
            ids = [keyed_id(idempotency_key, number) for number in range(first, end)]
            by_id = self._settled(ids)
            events += (by_id[event_id] for event_id in ids if event_id in by_id)
            if len(by_id) < len(ids):
                break
        return tuple(events)

    def read(
        self,
        query: Query,
        *,
        after: Position | None = None,
        limit: int | None = None,
        direction: Literal["forward", "backward"] = "forward",
    ) -> Seen:
        """Read the events that match a query, oldest or newest first, with the position to append after.

        With `after`, only events that are new since that position are read.

        Each event has a position too, which includes the events up to this event.

        Args:
            query: query that the events match.
            after: the position of a read, or of an event, of this query or of a broader one.
            limit: number of events at most; None for all. No more requests are made than it takes to find so many.
            direction: `backward` reads the newest events first. With a limit these are the last ones; the position then
                includes all events before them, too.
        """
        fenced = self._fence(query, "query", after)
        check_range(None, limit, direction)
        return self._answered(read(self._reads(fenced), after, limit, forward=direction == "forward"))

    def page(
        self,
        query: Query,
        *,
        after: Position | None = None,
        rest: Rest | None = None,
        takes: Takes,
        limit: int = ENTRIES,
    ) -> TaggedPage:
        """Read one page of the events that `read` would return; all pages together give the same events.

        Args:
            query: query that the events match.
            after: position of a read, or of an event, as of `read`.
            rest: `rest` of the page before, which had the same query and `after`; None for the first page.
            takes: function that says whether there is room for one more event; the first is taken in any case.
            limit: number of events wanted: little more is read than what holds so many.
        """
        fenced = self._fence(query, "query", after)
        return self._answered(read_page(self._reads(fenced), after, rest, takes, limit))

    def page_back(
        self,
        query: Query,
        *,
        after: Position | None = None,
        rest: Down | None = None,
        takes: Takes,
        limit: int = ENTRIES,
    ) -> BackwardPage:
        """Read one page as `page` does, newest events first.

        The position of each page is that of the whole read.

        Args:
            query, after, takes, limit: as for `page`.
            rest: `rest` of the page before; None for the first page, which has the newest events.
        """
        fenced = self._fence(query, "query", after)
        return self._answered(read_page_back(self._reads(fenced), after, rest, takes, limit))

    def _answered(self, steps: Steps[A]) -> A:
        """Run a read; return its result with large bodies and the capacity that it consumed."""
        answer, capacity = self.driver.measured(steps)
        return replace(answer, events=self.whole(answer.events), capacity=capacity)

    def beginning(self, query: Query) -> Position:
        """Return the position of a query before any event was read.

        Args:
            query: query that the position is of.
        """
        fenced = self._fence(query, "query", None)
        return Position(seen={tag: Reached() for tag in fenced.all_tags}, items=fenced.marks)

    def event(self, event_id: str) -> Recorded | None:
        """Return one event by the id that its caller chose; None if there is none.

        Args:
            event_id: id of the event, a UUID.
        """
        parsed_id = parse_event_id(event_id)
        return self.events([parsed_id]).get(parsed_id)

    @property
    @abstractmethod
    def type_heads(self) -> TypeHeads:
        """Reserved tags of types, or of all events, that a query may ask for without a tag; or whether it may for any
        type.
        """

    def _settled(self, ids: Sequence[str]) -> Mapping[str, Recorded]:
        """Return events by id, once no append of them is under way: all events of an append, or none."""
        return self.events(ids)

    @abstractmethod
    def counts(self, tags: Sequence[str]) -> dict[str, int]:
        """Return the number of events of each tag; the empty tag stands for events without tags.

        Args:
            tags: the tags.
        """

    @abstractmethod
    def events(self, ids: Sequence[str]) -> Mapping[str, Recorded]:
        """Return events by id, at most 100; ids without an event are missing in the result.

        Args:
            ids: ids of the events, UUIDs.
        """

    def seal_position(self, position: Position, *, writes: bool) -> Position:  # noqa: ARG002  only pages have seals
        """Return a position with signatures (seals), to be given to a client; by default it is unchanged.

        Args:
            position: position that a read returned.
            writes: whether a missing key for seals may be put.
        """
        return position

    def verify_seals(self, position: Position) -> Position:
        """Return a client's position, its tokens with valid seals marked as trusted; unchanged by default.

        Tokens without a valid seal stay untrusted, and cost a read.

        Args:
            position: position that came from outside, with the seals of `seal_position`.
        """
        return position

    def with_body_limit(self, largest: int) -> Self:  # noqa: ARG002  bodies of other layouts are no larger than an item
        """Return a store that reads events with a body over `largest` without bodies; by default this store.

        Args:
            largest: largest bytes of data, or of metadata, of an event that comes with its bodies.
        """
        return self

    def whole(self, events: tuple[Recorded, ...]) -> tuple[Recorded, ...]:
        """Return events that a layout has read, completed with their bodies; by default unchanged.

        Args:
            events: events of this store, whose bodies may be claims.
        """
        return events

    def heads_watched(self, query: Query) -> int:
        """Count the tags and types whose latest state an append on the condition of a query checks.

        Args:
            query: query of the condition (`fail_if`).

        Raises:
            InvalidInput: the query names no tags, and there are no type heads.
        """
        return len(fence(query, type_heads=self.type_heads).all_tags)

    def queues_of(self, query: Query) -> Sequence[Key]:  # noqa: ARG002  of those with queues
        """Return keys of the queues in which this process's decisions on a query take turns; by default none.

        Args:
            query: query of the decisions.
        """
        return ()

    def metered(self) -> tuple[Self, Meter]:
        """Return a copy of the store, and a meter of the capacity that the copy consumes.

        The meter serves reads without an outcome, and several calls together.

        The meter of this store counts it, too.
        """
        driver, meter = self.driver.metered()
        return replace(self, driver=driver), meter

    def normalize_event(self, event: Event, field: str) -> Event:
        """Check an event before an append; return it with its id and timestamp in their stored form.

        Args:
            event: event to append.
            field: name of the argument that holds the event, for error messages.

        Raises:
            InvalidInput: names what is malformed below `field`.
        """
        check_type(event.type, f"{field}.type")
        for tag in event.tags:
            no_step(check_tag(tag, f"{field}.tags"), f"{field}.tags")
        for name in ("causation_id", "correlation_id"):
            if getattr(event, name) is not None:
                must_be_text(getattr(event, name), MAX_FIELD_BYTES, f"{field}.{name}")
        if event.timestamp is not None:
            event = replace(event, timestamp=format_ticks(read_moment(event.timestamp, f"{field}.timestamp")))
        if event.type in TIMERS:
            from epochal.scheduling import check_tagged  # noqa: PLC0415  few appends set a timer

            check_tagged(event, field, from_unix_nanoseconds(self.now()), self.normalize_event)
        return event if event.id is None else replace(event, id=parse_event_id(event.id, f"{field}.id"))

    def _turn(self, events: Sequence[Event], condition: AppendCondition | None) -> QueuePlace:  # noqa: ARG002  of those with queues
        """Return the place of an append in the queues of this process; in none by default."""
        return QueuePlace(self.driver)

    def _append_once(
        self,
        events: Sequence[Event],
        condition: AppendCondition | None,
        key: str,
        also: Also,
        place: QueuePlace,
    ) -> Appended | Conflict:
        """Append events with ids of an idempotency key, once; return the outcome, raise for other contents.

        Raises:
            IdTaken: the key was used for other events.
        """
        try:
            outcome = self._append(events, condition, also, place)
            if isinstance(outcome, Conflict) and not outcome.unmet and self.appended(key):
                # The matching events were appended after those of the key, but read before all of those were visible.
                # Now they are visible and their ids are taken, so that this append writes nothing.
                outcome = self._append(events, None, also, place)
            if isinstance(outcome, Conflict) or not outcome.replayed:
                return outcome
            reader = replace(self, driver=self.driver.reading_back())
            if len(reader.appended(key)) == len(events):
                return outcome
        except IdTaken as taken:
            raise IdTaken("idempotency_key", _USED) from taken
        raise IdTaken("idempotency_key", _USED)

    def _fence(self, query: Query, field: str, after: Position | None) -> Fence:
        """Return a query's fence: the tags whose heads show new matching events, after `after` if given.

        Raises:
            InvalidInput: the query or the position is no such object, or nothing fences an item of the query.
        """
        must_be(Query, query, field, "a Query")
        must_be((Position, type(None)), after, "after", "a position that a read returned")
        heads = self.type_heads
        if after is None:
            return fence(query, type_heads=heads)
        return fence_after(query, after, type_heads=heads)

    @abstractmethod
    def _append(
        self, events: Sequence[Event], condition: AppendCondition | None, also: Also, place: QueuePlace
    ) -> Appended | Conflict:
        """Append checked events under a condition, with writes to other tables; return the outcome.

        Args:
            place: the append's place in the queues of `_turn`.
        """

    @abstractmethod
    def _reads(self, fenced: Fence) -> TaggedReads: ...

    def _normalize_events(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """Add ambient metadata to the events of an append and check each; return them.

        Raises:
            InvalidInput: there are no events, one is malformed, or an id appears twice.
        """
        if not events:
            raise InvalidInput("events", "must not be empty")
        normalized = tuple(
            self.normalize_event(event, f"events[{place}]")
            for place, event in enumerate(with_metadata(events))
        )
        ids = [event.id for event in normalized if event.id is not None]
        if len(set(ids)) < len(ids):
            raise InvalidInput("events", "must not contain an id twice")
        return normalized


def keyed_id(key: str, number: int) -> str:
    """Compute the id of the event with a number in the append under a key.

    The id must never be computed differently: repeats must find the events.
    """
    digest = hashlib.sha256(f"{key}\0{number}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


def with_keyed_ids(given: Sequence[Event], normalized: Sequence[Event], key: str) -> tuple[Event, ...]:
    """Return normalized events with ids derived from an idempotency key; raise if one has an id already.

    Args:
        given: the events as the caller gave them.

    Raises:
        InvalidInput: an event has an id already.
    """
    check_key(key)
    for number, event in enumerate(given):
        if event.id is not None:
            raise InvalidInput(
                f"events[{number}].id", "must not be given with an idempotency key, which determines the id"
            )
    return tuple(replace(event, id=keyed_id(key, number)) for number, event in enumerate(normalized))


def _placed(events: Sequence[Recorded], versions: Mapping[str, int]) -> tuple[Recorded, ...]:
    """Return events that were just appended, each with its position in its tags."""
    counts, placed = dict(versions), list[Recorded]()
    for event in reversed(events):
        own = {tag: counts[tag] for tag in own_tags((event,))}
        placed.append(replace(event, trail=Trail.in_tags(own, event.place)))
        counts |= {tag: count - 1 for tag, count in own.items()}
    return tuple(reversed(placed))
