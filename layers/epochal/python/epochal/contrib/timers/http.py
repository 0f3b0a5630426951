"""The operations on timers of streams and of tags. They are set by events of an append, and cancelled by others:
`$timer-set` and `$timer-cancelled`, as FORMATS §9 has them; what is here tells which are pending, and whether one could
be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from epochal.contrib.timers.stores import timers_of
from epochal.deployment import Deployment
from epochal.errors import Contended
from epochal.http import parameters, problems, schemas
from epochal.http.answer_size import AnswerSize
from epochal.http.answers import answer, appends, consumed
from epochal.http.bodies import build_body_member
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.event_fields import INDEX, MAX_NAMED, OMITTED, TAG
from epochal.http.metering import measured, streams_for
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem
from epochal.http.query_strings import QueryString
from epochal.http.sent_events import tag_of
from epochal.http.stream_fields import STREAM
from epochal.model.events import Event
from epochal.model.stream_names import stream_name
from epochal.scheduling import NAME, Timer, timer_name
from epochal.store.driver import Meter
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

_TIMER: Final = schemas.text(
    "The timer's name within its stream.", pattern=rf"(?!\.{{1,2}}$){NAME}", examples=["reminder"]
)
_SHOWN: Final = {
    "name": _TIMER,
    "due": schemas.words("Time at which it fires unless it is cancelled, in ISO 8601, UTC."),
    "events": schemas.array(schemas.ref("NewEvent"), "Events that the timer appends."),
    "copied": schemas.flag(
        "Whether this is a copy of a timer, which fires only in the stream that it was copied from."
    ),
    "omitted": {
        **OMITTED,
        "description": "Whether the events are left out because the answer is too large. Read "
        "the event that set the timer.",
    },
}
TIMER: Final = Component(
    "Timer",
    schemas.record(
        {**_SHOWN, "set": {**INDEX, "description": "Index of the event that set it."}},
        required=("name", "due", "set"),
        description="A timer that is pending, or was pending until it was cancelled.",
    ),
)
TAG_TIMER: Final = Component(
    "TagTimer",
    schemas.record(
        {
            **_SHOWN,
            "set": schemas.words("Id of the event that set it."),
            "tags": schemas.array(
                schemas.words(), "Exactly the tags that the timer belongs to, in sorted order."
            ),
        },
        required=("name", "due", "set", "tags"),
        description="A timer of tags, not of a stream, that is pending or was pending until it was cancelled.",
    ),
)
_TAGS: Final = {
    **schemas.array(TAG, "Exactly the tags with which the timer was set.", MAX_NAMED),
    "minItems": 1,
}
TAGS_ASKED: Final = Component(
    "TagTimersQuery",
    schemas.record({"tags": {**_TAGS, "description": "Tags that the timers must all have."}}),
    reads={"tags": tag_of},
)
TAG_TIMER_NAMED: Final = Component(
    "TagTimerNamed",
    schemas.record({"tags": _TAGS, "timer": _TIMER}),
    reads={"tags": tag_of, "timer": lambda node: timer_name(node.value, node.name)},
)
_MORE: Final = schemas.flag("Whether there are later timers that do not fit into the answer.")
TAG_TIMERS: Final = Shown(
    "TagTimers",
    {
        "timers": schemas.array(schemas.ref("TagTimer"), "Timers in the order in which they are due."),
        "more": _MORE,
    },
)
TIMERS: Final = Shown(
    "PendingTimers",
    {
        "stream": STREAM,
        "timers": schemas.array(schemas.ref("Timer"), "Timers in the order in which they are due."),
        "more": _MORE,
    },
)


def opened(deployment: Deployment, store: str) -> Any:
    """Return a deployment's store of streams or of tagged events, by its attribute name there."""
    return getattr(deployment, store)


@operation(parameters=(parameters.path("stream", STREAM),), gives=TIMERS)
def read_timers(streams: Streams, request: Request, _: QueryString) -> Response:
    """List the pending timers of a stream by due time.

    Reads the whole stream. The list is empty if the stream has no timers or does not exist.
    """
    stream = stream_name(request.path["stream"])
    store, meter = streams_for(streams, request)
    timers = timers_of(store).pending(stream)
    views = _fitting(timers)
    return answer(meter, TIMERS(stream=stream, timers=views, more=len(views) < len(timers)))


@operation(
    parameters=(parameters.path("stream", STREAM), parameters.path("timer", _TIMER)),
    gives=TIMER,
    fails=(problems.TIMER_NOT_FOUND, problems.VERSION_CONFLICT),
)
def cancel_timer(streams: Streams, request: Request, _: QueryString) -> Response:
    """Cancel a pending timer of a stream and return it, if there is one.

    The whole stream is read, and the timer never fires. The answer is 404 if no timer of this name is pending: it has
    fired, was cancelled, or was never set. An append of `$timer-cancelled` also cancels a timer; it reads nothing, and
    does not report whether the timer was pending.
    """
    stream, name = stream_name(request.path["stream"]), timer_name(request.path["timer"], "timer")
    store, meter = streams_for(streams, request)
    return _called_off(
        meter, partial(timers_of(store).cancel, stream), name, stream, f"{stream} has", stream=stream
    )


@operation(takes=TAGS_ASKED, gives=TAG_TIMERS)
def read_tag_timers(tagged: TaggedStore, request: Request, _: QueryString) -> Response:
    """List the pending timers that have all of the given tags.

    Reads all events with these tags. Timers of streams are not included, whatever tags they have.
    """
    tags = TAGS_ASKED.read(document(request))["tags"]
    store, meter = measured(tagged, request)
    timers = timers_of(store).pending(tags)
    views = _fitting(timers)
    return answer(meter, TAG_TIMERS(timers=views, more=len(views) < len(timers)))


@operation(
    takes=TAG_TIMER_NAMED,
    gives=TAG_TIMER,
    fails=(problems.TIMER_NOT_FOUND, problems.VERSION_CONFLICT),
)
def cancel_tag_timer(tagged: TaggedStore, request: Request, _: QueryString) -> Response:
    """Cancel a pending timer of exactly the given tags and return it, if there is one.

    The tags are exactly those with which the timer was set. All events with these tags are read, and the timer never
    fires. The answer is 404 if no timer of this name is pending.
    """
    sent = TAG_TIMER_NAMED.read(document(request))
    tags, name = sent["tags"], sent["timer"]
    store, meter = measured(tagged, request)
    return _called_off(meter, partial(timers_of(store).cancel, tags), name, "these tags", "these tags have")


def _called_off(
    meter: Meter, cancel: Callable[[str], Timer | None], name: str, where: str, has: str, **place: Any
) -> Response:
    """Cancel the timer `name` by `cancel` and answer with it; raise 404 without one, 409 if contended.

    Args:
        where: phrase for the scope in the error about a conflict, such as "these tags".
        has: phrase for the scope in the error about a missing timer, such as "these tags have".
        place: members that the error's JSON has besides.

    Raises:
        Problem: 404 if no such timer is pending, 409 if other writers were faster at every attempt.
    """
    try:
        timer = cancel(name)
    except Contended:
        raise Problem(
            problems.VERSION_CONFLICT,
            f"other writers kept changing {where}: try again",
            figures={"Conflicts": 1.0, **consumed(meter.units)},
            **place,
        ) from None
    if timer is None:
        raise Problem(problems.TIMER_NOT_FOUND, f"{has} no pending timer {name}", **place)
    view = AnswerSize().put(shown(timer), _frame(timer))
    return answer(meter, view, figures=appends((timer,), replayed=False))


def _fitting(timers: Sequence[Timer]) -> list[Any]:
    """Return the JSON of as many timers as the answer has room for, at least the first.

    The first timer is shown without its events if these are too large.
    """
    size, views = AnswerSize(), list[Any]()
    for timer in timers:
        view = size.fit(shown(timer)) if views else size.put(shown(timer), _frame(timer))
        if view is None:
            break
        views.append(view)
    return views


def _frame(timer: Timer) -> dict[str, Any]:
    """Return a timer as JSON without its events."""
    copied = {"copied": True} if timer.copied else {}
    place = {} if timer.stream else {"tags": list(timer.tags)}
    return {"name": timer.name, "due": timer.due, "set": timer.setting, **place, **copied}


def shown(timer: Timer) -> dict[str, Any]:
    """Return a timer as JSON, with its events."""
    return {**_frame(timer), "events": list(map(_event, timer.events))}


def _event(event: Event) -> dict[str, Any]:
    """Return an event of a timer as JSON that an append would accept; none of its bodies is in the bucket."""
    texts = {
        "timestamp": event.timestamp,
        "correlationId": event.correlation_id,
        "causationId": event.causation_id,
    }
    return {
        "type": event.type,
        **{name: value for name, value in texts.items() if value is not None},
        **({"tags": list(event.tags)} if event.tags else {}),
        **build_body_member("data", event.data, _no_link),
        **build_body_member("meta", event.meta, _no_link),
    }


def _no_link(*_: object) -> str:
    """Raise `AssertionError`: a timer's events have their bodies, so none needs a download link."""
    raise AssertionError("a timer's events have their bodies")
