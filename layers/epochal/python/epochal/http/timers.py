"""The operations on timers of streams. They are set by events of an append, and called off by others: `$timer-set` and
`$timer-cancelled`, as FORMATS §9 has them; what is here tells which are pending, and whether one could be called off.
"""

from __future__ import annotations

from typing import Any, Final

from epochal.deployment import Deployment
from epochal.errors import Contended
from epochal.http import problems, shapes
from epochal.http.events import INDEX, OMITTED, AnswerSize, members
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem
from epochal.http.streams import STREAM
from epochal.model.events import Event, stream_name
from epochal.scheduling import NAME, Timer, timer_name
from epochal.store.streams import Streams
from epochal.timers.stores import timers_of

_TIMER: Final = shapes.text(
    "The timer's name within its stream.", pattern=rf"(?!\.{{1,2}}$){NAME}", examples=["reminder"]
)
TIMER: Final = shapes.Component(
    "Timer",
    shapes.record(
        {
            "name": _TIMER,
            "due": shapes.words("When it fires, unless it is called off: ISO 8601, UTC."),
            "set": {**INDEX, "description": "Index of the event that set it."},
            "events": shapes.array(shapes.ref("NewEvent"), "What it appends."),
            "copied": shapes.flag("It fires in the stream that this is a copy of, and not here."),
            "omitted": {**OMITTED, "description": "The answer had no room for the events: read that event."},
        },
        required=("name", "due", "set"),
        description="A timer that is pending, or was until it was called off.",
    ),
)
TIMERS: Final = shapes.Shown(
    "Timers",
    {
        "stream": STREAM,
        "timers": shapes.array(shapes.ref("Timer"), "In the order of their due times."),
        "more": shapes.flag("Whether there are later ones, for which the answer had no room."),
    },
)


def opened(deployment: Deployment, streams: str) -> Streams:
    """A store of streams of a deployment, by its name there."""
    store: Streams = getattr(deployment, streams)
    return store


@shapes.operation(
    "List the timers of a stream that are pending",
    "All of the stream is read. A stream without timers has none, and so has one that is not there.",
    parameters=(shapes.path("stream", STREAM),),
    gives=TIMERS,
)
def read_timers(streams: Streams, request: Request, _: shapes.QueryString) -> Response:
    """The timers of a stream, by their due times, as many as an answer has room for."""
    stream = stream_name(request.path["stream"])
    store, meter = shapes.streams_for(streams, request)
    size, views = AnswerSize(), list[Any]()
    found = timers_of(store).pending(stream)
    for timer in found:
        view = size.fit(shown(timer)) if views else size.put(shown(timer), _frame(timer))
        if view is None:
            break
        views.append(view)
    return shapes.answer(meter, TIMERS(stream=stream, timers=views, more=len(views) < len(found)))


@shapes.operation(
    "Call a timer of a stream off",
    "All of the stream is read, and the answer has the timer, which never fires. 404 where none of the name is "
    "pending: it has fired, was called off, or never was. An append of `$timer-cancelled` reads nothing, and does "
    "not tell.",
    parameters=(shapes.path("stream", STREAM), shapes.path("timer", _TIMER)),
    gives=TIMER,
    fails=(problems.TIMER_NOT_FOUND, problems.VERSION_CONFLICT),
)
def cancel_timer(streams: Streams, request: Request, _: shapes.QueryString) -> Response:
    """Call a timer off, if it is pending."""
    stream, name = stream_name(request.path["stream"]), timer_name(request.path["timer"], "timer")
    store, meter = shapes.streams_for(streams, request)
    try:
        timer = timers_of(store).cancel(stream, name)
    except Contended:
        raise Problem(
            problems.VERSION_CONFLICT,
            f"others write to {stream} all the time: try again",
            figures={"Conflicts": 1.0, **shapes.consumed(meter.units)},
            stream=stream,
        ) from None
    if timer is None:
        raise Problem(
            problems.TIMER_NOT_FOUND, f"{stream} has no timer {name} that is pending", stream=stream
        )
    view = AnswerSize().put(shown(timer), _frame(timer))
    return shapes.answer(meter, view, figures=shapes.appends((timer,), replayed=False))


def _frame(timer: Timer) -> dict[str, Any]:
    copied = {"copied": True} if timer.copied else {}
    return {"name": timer.name, "due": timer.due, "set": timer.setting, **copied}


def shown(timer: Timer) -> dict[str, Any]:
    """A timer."""
    return {**_frame(timer), "events": list(map(_event, timer.events))}


def _event(event: Event) -> dict[str, Any]:
    """An event of a timer, as it could be sent: none of its bodies is in the bucket."""
    texts = {
        "timestamp": event.timestamp,
        "correlationId": event.correlation_id,
        "causationId": event.causation_id,
    }
    return {
        "type": event.type,
        **{name: each for name, each in texts.items() if each is not None},
        **({"tags": list(event.tags)} if event.tags else {}),
        **members("data", event.data, _no_link),
        **members("meta", event.meta, _no_link),
    }


def _no_link(*_: object) -> str:
    raise AssertionError("a timer's events have their bodies")
