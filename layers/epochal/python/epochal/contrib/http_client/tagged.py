"""Tagged events over HTTP: appends under conditions, queries, and events by their ids.

The methods are those of `store.tagged.TaggedStore`, without `also`, which needs rights on tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from epochal.contrib.http_client.api import ApiClient, segment
from epochal.contrib.http_client.received import (
    Omitted,
    capacity_of,
    position_of,
    recorded_event,
    refusal_of,
)
from epochal.contrib.http_client.sent import event_member, query_member, with_uploads
from epochal.contrib.http_client.streams import condition_members, key_of
from epochal.errors import CorruptData, InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.capacity import NOTHING
from epochal.model.events import Event, Recorded
from epochal.model.kinds import must_be_list, must_be_whole
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import write_position
from epochal.model.positions import Position
from epochal.model.tag_answers import Seen
from epochal.model.tags import Query, parse_event_id
from epochal.store.encoding import with_metadata
from epochal.store.outcomes import condition_error
from epochal.store.reading import Direction, check_range

PAGE: Final = 1_000

_OK: Final = 200
_MADE: Final = 201


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTaggedEvents:
    """The store of tagged events behind an HTTP API. `HttpStreams.tagged` returns one.

    Any method may raise `InvalidInput` for a malformed argument, `Unavailable`, `Refused`, `CorruptData` and
    `MissingBody`, besides the errors that the method names.

    Attributes:
        api: the API, with its address, credentials and connections.
    """

    api: ApiClient

    def append(
        self,
        events: Sequence[Event],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Append events atomically; raise `ConflictError` if an event after `after` matches `fail_if`.

        Args:
            events: at most 1,000, all in one transaction of at most 100 items and 4 MB.
            fail_if: a query. If an event that matches is stored, nothing is appended. None appends in any case.
            after: the position of a read of the same query or of a broader one: events up to it do not count.
            idempotency_key: key that makes all repeats in the store one append. The events get ids from it, and have
                none of their own. None makes a new UUIDv7, unless all events have ids, which do the same.

        Raises:
            InvalidInput: no events, a malformed field, ids on some of the events alone or of other contents, a
                position of another query, a key used for other contents.
            TooLarge: an event or the transaction is too large.
            ConflictError: events match `fail_if`; carries a `Conflict` with these events.
        """
        outcome = self.try_append(events, fail_if=fail_if, after=after, idempotency_key=idempotency_key)
        if isinstance(outcome, Conflict):
            raise condition_error(outcome)
        return outcome

    def try_append(
        self,
        events: Sequence[Event],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        idempotency_key: str | None = None,
    ) -> Appended | Conflict:
        """Append as `append` does, but return a `Conflict` instead of raising `ConflictError`.

        Args:
            events, fail_if, after, idempotency_key: as for `append`.
        """
        must_be_list(Event, events, "events")
        names = [event.id is not None for event in events]
        if any(names) and not all(names):
            raise InvalidInput(
                "events",
                "must all have an id, or all have none: a repeated append is found by its ids or its key",
            )
        events = with_metadata(events)
        sent, _ = with_uploads(self.api, events, None)
        body = {"events": [event_member(event) for event in sent], **condition_members(fail_if, after)}
        key = None if idempotency_key is None and any(names) else key_of(idempotency_key)
        reply = self.api.call("POST", "/events", body, key=key, writes=True)
        document = reply.document
        if reply.status == _MADE:
            shown = zip(events, document["events"], strict=True)
            return Appended(
                events=tuple(_recorded(event, appended) for event, appended in shown),
                position=position_of(document),
                versions=document["versions"],
                replayed=document["replayed"],
                capacity=capacity_of(document),
            )
        refused = refusal_of(self.api, reply)
        if isinstance(refused, Conflict):
            return refused
        raise reply.error

    def read(
        self,
        query: Query,
        *,
        after: Position | None = None,
        limit: int | None = None,
        direction: Direction = "forward",
        positions: bool = False,
        page_size: int = PAGE,
    ) -> Seen:
        """Read the events that match a query, in order, and the position to pass as `after` to an append.

        All pages of the read are of one moment.

        Args:
            query: query that the events match.
            after: the position of a read, or of an event, of this query or of a broader one: only events since then.
            limit: number of events at most; None for all.
            direction: `backward` reads the newest events first. With a limit these are the last ones; the position then
                includes all events before them, too.
            positions: whether each event has its position, which makes answers larger.
            page_size: number of events that one answer has at most, 1 to 10,000.

        Raises:
            InvalidInput: an event has more than 5.5 MB, which no answer holds.
        """
        check_range(None, limit, direction)
        must_be_whole(page_size, "page_size", 1)
        cut = limit is not None and direction == "forward"
        body: dict[str, Any] = {
            "query": query_member(query),
            **({} if direction == "forward" else {"direction": direction}),
            **({"positions": True} if positions or cut else {}),
            **({} if after is None else {"after": write_position(after)}),
        }
        events, spent = list[Recorded](), NOTHING
        following: str | None = None
        while True:
            size = page_size if limit is None else min(page_size, limit - len(events))
            limit_query = {} if size == PAGE else {"limit": size}
            more = {} if following is None else {"from": following}
            reply = self.api.call("POST", "/events/query", {**body, **limit_query, **more})
            if reply.status != _OK:
                raise reply.error
            document = reply.document
            events += [self._whole(recorded_event(self.api, shown)) for shown in document["events"]]
            spent, following = spent + capacity_of(document), document["next"]
            full = limit is not None and len(events) >= limit
            if following is None or full:
                break
        position = position_of(document)
        if following is not None and cut and events[-1].position is not None:
            position = events[-1].position
        return Seen(events=tuple(events), position=position, more=following is not None, capacity=spent)

    def event(self, event_id: str) -> Recorded | None:
        """Return the event that was appended with the id `event_id`; None if there is none.

        Args:
            event_id: id of the event, a UUID.
        """
        reply = self.api.call("GET", f"/events/{segment(parse_event_id(event_id))}")
        if reply.problem == "event-not-found":
            return None
        if reply.status != _OK:
            raise reply.error
        event = recorded_event(self.api, reply.document)
        if isinstance(event, Omitted):
            raise InvalidInput("event_id", f"{event_id} is an event of over 5.5 MB, too large for a response")
        return event

    def _whole(self, event: Recorded | Omitted) -> Recorded:
        """Return an event with its bodies, reading it alone where a page had no room for them."""
        if isinstance(event, Recorded):
            return event
        alone = self.event(event.event.id)
        if alone is None:
            raise CorruptData(f"the event {event.event.id} is listed, but not found by its id")
        return alone


def _recorded(event: Event, appended: dict[str, Any]) -> Recorded:
    """Return an event as it was stored, from what was sent and what the answer says of it."""
    return Recorded(
        type=event.type,
        data=event.data,
        meta=event.meta,
        timestamp=appended["timestamp"],
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=tuple(sorted({*event.tags})),
        id=appended["id"],
        place=appended["place"],
    )
