"""Tagged events as answers show them, alone and in pages.

Bodies in the bucket are answered with a link, since they may be larger than a function's memory. A page ends where the
next event has no room, and says where the next page begins.
"""

from __future__ import annotations

from typing import Any, Final

from epochal.http import answers, problems, schemas
from epochal.http.answer_size import AnswerSize, is_too_large
from epochal.http.bodies import Link, shown_bodies, with_bodies
from epochal.http.components import Component, Shown
from epochal.http.event_fields import INDEX, POSITION
from epochal.http.events import IDS_SHOWN
from epochal.http.problems import Problem
from epochal.http.sent_events import ID
from epochal.http.tag_pages import DatedPage
from epochal.http.tagged_requests import GOES_ON, NEXT, PLACE
from epochal.model.events import Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import write_position
from epochal.model.tag_answers import BackwardPage, TaggedPage
from epochal.plan.values import Units

STAMP: Final = schemas.words("Time of the append.")

EVENT: Final = Component(
    "TaggedEvent",
    schemas.record(
        {
            "id": schemas.words("Id of the event."),
            "place": PLACE,
            "type": schemas.words("Type of the event."),
            "tags": schemas.array(schemas.words(), "Tags of the event, in sorted order."),
            "stream": schemas.words("Stream to which the event was appended, if it was appended to one."),
            "index": {**INDEX, "description": "Index of the event in that stream."},
            "timestamp": STAMP,
            **IDS_SHOWN,
            "executedUser": schemas.words("User who caused the event, if recorded."),
            **shown_bodies(),
            "position": {
                **POSITION,
                "description": "Position after this event, for the `after` of a later append. Present if "
                "`positions` was requested. For an event read by its id, its place in its first "
                "tag.",
            },
        },
        required=("id", "place", "type", "tags", "timestamp"),
    ),
)


class Listed:
    """Collects events for an answer, up to a limit and as many as the answer has room for.

    The store calls it with one event after the other.

    Attributes:
        views: JSON values of the collected events.
    """

    def __init__(
        self, limit: int, link: Link, *, positions: bool = False, answer: AnswerSize | None = None
    ) -> None:
        """Start an empty list of events.

        Args:
            limit: most events to collect.
            link: signer of download URLs for bodies in the bucket.
            positions: whether each event shows its position.
            answer: space that is left in the answer; None for an answer of its own.
        """
        self._limit = limit
        self._link = link
        self._positions = positions
        self._answer = answer or AnswerSize()
        self.views: list[Any] = []

    def __call__(self, event: Recorded) -> bool:
        """Add an event and return true; return false where the limit is reached or the answer is full."""
        if len(self.views) >= self._limit:
            return False
        frame = build_event_frame(event)
        if self._positions and event.position is not None:
            frame["position"] = write_position(event.position)
        if is_too_large(event):
            view = None if self.views else self._answer.omit(frame)
        else:
            whole = with_bodies(frame, event, self._link)
            view = self._answer.fit(whole) if self.views else self._answer.put(whole, frame)
        if view is not None:
            self.views.append(view)
        return view is not None

    def refused(self, rejected: Conflict, units: Units) -> Problem:
        """Return the problem of an append whose condition met the collected events.

        With these events and the position a writer can decide again without another read.

        Args:
            rejected: the conflict.
            units: capacity units that the request used.
        """
        return Problem(
            problems.CONDITION_FAILED,
            "events that match failIf have been appended: decide again with them, and append after this position",
            figures={"Conflicts": 1.0, **answers.consumed(units)},
            events=self.views,
            position=write_position(rejected.position),
            more=rejected.more,
        )


def build_event_view(event: Recorded, link: Link) -> dict[str, Any]:
    """Show an event, with its bodies in the bucket as links."""
    return with_bodies(build_event_frame(event), event, link)


def build_single_event_view(event: Recorded, link: Link) -> Any:
    """Return the JSON of an event as a whole answer, with its position in the tag that it was found by."""
    frame = build_event_frame(event)
    if event.position is not None:
        frame["position"] = write_position(event.position)
    if is_too_large(event):
        return AnswerSize().omit(frame)
    return AnswerSize().put(with_bodies(frame, event, link), frame)


def build_event_frame(event: Recorded) -> dict[str, Any]:
    """Return the JSON object of a tagged event without its bodies."""
    ids = {"causationId": event.causation_id, "correlationId": event.correlation_id, **event.besides}
    return {
        "id": event.id,
        "place": event.place,
        "type": event.type,
        "tags": list(event.tags),
        "timestamp": event.timestamp,
        **({"stream": event.stream, "index": event.index} if event.stream else {}),
        **{name: value for name, value in ids.items() if value is not None},
    }


_MADE: Final = Shown("", {"id": (ID, "id"), "place": (PLACE, "place"), "timestamp": (STAMP, "timestamp")})
APPENDED: Final = Shown(
    "AppendedTagged",
    {
        "events": schemas.array(_MADE.schema, "The events, in the order of the request."),
        "position": schemas.or_null(
            POSITION,
            "Position for the `after` of a later append with the same query; without `failIf`, the position in the "
            "tags of the events. For a replayed append it may lie before the events, or be null.",
        ),
        "versions": {
            "type": "object",
            "description": "Number of events of each tag after this append. Events without a tag are counted under "
            '"". For a replayed append the numbers may include later events.',
            "additionalProperties": {"type": "integer", "minimum": 1},
        },
        "replayed": (schemas.flag("Whether an earlier request appended these events."), "replayed"),
        "capacity": schemas.CAPACITY,
    },
)
EVENT_PAGE: Final = Shown(
    "TaggedEventPage",
    {
        "events": schemas.array(
            schemas.ref("TaggedEvent"), "Events in the order of their places; backward, newest first."
        ),
        "position": schemas.or_null(
            POSITION,
            "Position for the `after` of a later append. Null before the last page, unless reading backward.",
        ),
        "next": schemas.or_null(NEXT, GOES_ON),
    },
)
LISTED: Final = Shown(
    "ListedEvents",
    {
        "events": schemas.array(schemas.ref("TaggedEvent"), "Events in the order of their places."),
        "next": schemas.or_null(PLACE, GOES_ON),
    },
)


def build_append_view(outcome: Appended, units: Units) -> dict[str, Any]:
    """Build the answer to an append of tagged events.

    A replayed append without a condition has read no tag, so its position is null.

    Args:
        units: capacity units that the request used.
    """
    return APPENDED(
        outcome,
        events=[_MADE(event) for event in outcome.events],
        position=write_position(outcome.position) if outcome.position.seen else None,
        versions=dict(outcome.versions),
        capacity=answers.capacity(units),
    )


def build_page_view(page: TaggedPage | BackwardPage, listed: Listed) -> dict[str, Any]:
    """Build the answer to a page of a query.

    Only the last page, or each page of a backward read, has the position to append after.
    """
    return EVENT_PAGE(
        events=listed.views,
        position=None if page.position is None else write_position(page.position),
        next=None if page.rest is None else page.rest.text(),
    )


def build_listing_view(page: DatedPage[Recorded], link: Link) -> dict[str, Any]:
    """Build the answer to a page of listed events, cut short where the answer is full.

    A page never ends between events of one place, since no next page could go on from there.
    """
    answer, views, last = AnswerSize(), list[Any](), ""
    for event in page.items:
        # A page never ends between events of one place: no next page could go on from there.
        ends = bool(views) and event.place > last
        if is_too_large(event):
            view = None if ends else answer.omit(build_event_frame(event))
        else:
            view = build_event_view(event, link)
            view = answer.fit(view) if ends else answer.put(view, build_event_frame(event))
        if view is None:
            return LISTED(events=views, next=last)
        views.append(view)
        last = event.place
    return LISTED(events=views, next=page.next)
