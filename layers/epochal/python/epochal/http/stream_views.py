"""The head of a stream, and pages of its events, as answers show them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from epochal.http import schemas
from epochal.http.answer_size import AnswerSize
from epochal.http.bodies import Link
from epochal.http.components import Shown
from epochal.http.event_fields import INDEX
from epochal.http.events import event, event_frame, unfold, unfold_frame
from epochal.http.stream_fields import LOW_WATER, STREAM, TOKEN, VERSION
from epochal.model.tokens import MAX_VERSION, Token
from epochal.store.reading import StreamPage
from epochal.store.unopened import UnopenedHead, UnopenedUnfold

STATE: Final = Shown(
    "State",
    {
        "stream": (STREAM, "stream"),
        "version": (VERSION, "version"),
        "token": TOKEN,
        "lowWater": (LOW_WATER, "low_water"),
        "headEvents": schemas.whole("Number of the last events that the head contains."),
        "unfolds": schemas.array(schemas.ref("Unfold"), "State derived from the events."),
        "events": schemas.array(
            schemas.ref("Event"), "Events that the head contains, if requested with `events=true`."
        ),
    },
    optional=("events",),
)
EVENT_PAGE: Final = Shown(
    "EventPage",
    {
        "stream": STREAM,
        "version": (VERSION, "version"),
        "lowWater": (LOW_WATER, "low_water"),
        "events": schemas.array(schemas.ref("Event"), "Events in the requested order."),
        "next": schemas.or_null(INDEX, "`from` of the next page; null if there is none."),
        "hole": schemas.record(
            {
                "first": schemas.whole("First index that was requested.", 0, MAX_VERSION),
                "end": schemas.whole("Index after the last pruned event.", 0, MAX_VERSION),
            },
            description="Requested events that have been pruned, before the returned ones. Absent if none have "
            "been pruned.",
        ),
    },
    optional=("hole",),
)


def build_state_view(unopened: UnopenedHead, token: Token, link: Link, *, events: bool) -> dict[str, Any]:
    """Return the JSON object of a stream's head: token, unfolds and, with `events`, its last events.

    Events are opened only where `events` is true: they may be large.
    """
    unfolds = unopened.unfolds()
    stored = [state.stored for state in unfolds]
    outlines = [unfold_frame(state.version, state.type, state.timestamp) for state in stored]
    frames = [*map(event_frame, unopened.outlines())] if events else []
    # A head has hundreds of events, all of which are shown; names that JSON has to escape can be most of an answer.
    answer = AnswerSize([*outlines, *frames])
    views = [
        answer.put_opened(partial(_opened_unfold, state, link), frame, large=state.may_be_large)
        for state, frame in zip(unfolds, outlines, strict=True)
    ]
    carried: dict[str, Any] = {}
    if events:
        carried = {
            "events": [
                answer.put_opened(
                    partial(_opened, unopened, place, link), frame, large=unopened.may_be_large(place)
                )
                for place, frame in enumerate(frames)
            ]
        }
    return STATE(unopened.head, token=token.text(), headEvents=unopened.count, unfolds=views, **carried)


def _opened_unfold(unopened: UnopenedUnfold, link: Link, largest: int) -> dict[str, Any] | None:
    """Show an unfold; None where its data or metadata exceed `largest` bytes."""
    opened = unopened.decode(largest)
    return None if opened is None else unfold(opened, link)


def _opened(unopened: UnopenedHead, place: int, link: Link, largest: int) -> dict[str, Any] | None:
    """Return the JSON object of an event of a stream's head; None if a body exceeds `largest` bytes.

    Args:
        place: offset of the event within the head.
    """
    opened = unopened.event(place, largest)
    return None if opened is None else event(opened, link)


def build_page_view(stream: str, page: StreamPage, link: Link) -> dict[str, Any]:
    """Return the JSON object of a page of a stream's events, cut short if the answer is full."""
    answer, views, following = AnswerSize(), list[Any](), page.next
    for recorded in page.events:
        if recorded.index in page.omitted:
            views.append(answer.omit(event_frame(recorded)))
            continue
        view = (
            answer.fit(event(recorded, link))
            if views
            else answer.put(event(recorded, link), event_frame(recorded))
        )
        if view is None:
            following = recorded.index
            break
        views.append(view)
    hole = {} if page.hole is None else {"hole": {"first": page.hole.first, "end": page.hole.end}}
    return EVENT_PAGE(page, stream=stream, events=views, next=following, **hole)
