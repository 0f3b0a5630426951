"""Appends of one request that are each for themselves: what keeps one of them from being made keeps no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.bulk import MAX_APPENDS, Answer, Bulk, BulkAppend
from epochal.errors import EpochalError, InvalidInput, NotTried, TooLarge
from epochal.http import shapes
from epochal.http.events import CONDITION, AnswerSize
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem, problem_of
from epochal.http.several import STREAM_APPEND, stream_append
from epochal.http.streams import (
    REACHED,
    STREAM,
    TOKEN,
    VERSION,
    WITH_QUERY,
    Opened,
    believed,
    condition_of,
    made,
    opened,
    reached_by,
)
from epochal.model.versions import MAX_VERSION, ExpectedVersion, StreamAppend
from epochal.store.driver import Meter
from epochal.store.streams import Streams

__all__ = ["append_each", "opened"]

MAX_CONDITIONS: Final = 100
"""Appends with a condition: the events in the way of all of them have to fit one answer."""

_MEMBERS: Final = STREAM_APPEND.schema["properties"]
EACH_APPEND: Final = shapes.Component(
    "EachAppend",
    {
        **STREAM_APPEND.schema,
        "properties": {
            **_MEMBERS,
            # What its stream refuses is a problem of this append alone.
            "events": {**_MEMBERS["events"], "items": shapes.ref("NewEvent")},
            **CONDITION,
            "idempotencyKey": shapes.text(
                "As the header `Idempotency-Key` of an append to this stream.",
                most=255,
                pattern=r"[\x21-\x7e]{1,255}",
            ),
        },
        "dependentRequired": WITH_QUERY,
    },
    reads={**STREAM_APPEND.special, "idempotencyKey": lambda node: shapes.checked_key(node.value, node.name)},
)


def one_of(node: shapes.Node) -> tuple[StreamAppend, Mapping[str, Any]]:
    """An append of many, and all that was sent of it; raises `InvalidInput` naming the field that breaks a rule."""
    sent = EACH_APPEND.read(node)
    if "after" in sent and "failIf" not in sent:
        raise InvalidInput(node.below("after"), "needs a query to go with")
    return stream_append(node, sent), sent


APPEND_EACH: Final = shapes.Component(
    "AppendEach",
    shapes.record(
        {
            "appends": {
                **shapes.array(shapes.ref("EachAppend"), "Those to one stream in this order.", MAX_APPENDS),
                "minItems": 1,
            }
        },
        required=("appends",),
    ),
    reads={"appends": one_of},
)
RESULT: Final = shapes.Component(
    "AppendResult",
    shapes.record(
        {
            "stream": STREAM,
            "status": shapes.whole("As it would be answered by itself.", 200, 599),
            "first": shapes.whole("Index of the first event.", 0, MAX_VERSION),
            "version": VERSION,
            "token": TOKEN,
            "replayed": shapes.flag("An earlier request had made it."),
            "type": shapes.text("Of the problem, where it was not made."),
            "title": shapes.text("The same in words."),
            "detail": shapes.text("What happened."),
            "field": shapes.text("The field that broke a rule."),
            "rule": shapes.text("The rule it broke."),
            "size": shapes.whole("How large it was."),
            "limit": shapes.whole("How large it may be."),
            "index": shapes.whole("Where it would be, where nobody can tell whether it is.", 0, MAX_VERSION),
            "events": shapes.array(
                shapes.ref("TaggedEvent"), "Events that match `failIf` and are in the way."
            ),
            "more": shapes.flag("Whether others are in the way, too."),
            "position": REACHED,
            "tried": shapes.flag("False: the time was over before anything was sent for it. Send it again."),
        },
        required=("stream", "status"),
        description="What came of one append: what it made, or the problem that kept it.",
    ),
)
ANSWERED: Final = shapes.Shown(
    "AppendResults",
    {
        "results": shapes.array(
            shapes.ref("AppendResult"), "What came of each, in the order of the request."
        ),
        "capacity": shapes.CAPACITY,
    },
)


@shapes.operation(
    "Append to streams, each for itself",
    "Each append is what `POST /streams/{stream}/events` takes, with its stream and its key, and is answered as it "
    "would be there. Appends to one stream are made in their order, as one write where they can be; others side by "
    "side. What is malformed is refused before anything is written.",
    takes=APPEND_EACH,
    gives=ANSWERED,
)
def append_each(on: Opened, request: Request, _: shapes.QueryString) -> Response:
    """Make several appends, of which each is atomic by itself."""
    for given in ("If-Match", "If-None-Match", "Idempotency-Key"):
        if request.header(given) is not None:
            raise InvalidInput(given, "is of one append: each has its own `expected` and `idempotencyKey`")
    sent = APPEND_EACH.read(shapes.document(request))["appends"]
    conditions = sum("failIf" in members for _, members in sent)
    if conditions > MAX_CONDITIONS:
        raise TooLarge("appends", conditions, MAX_CONDITIONS, "items with `failIf`")
    store, meter = shapes.streams_for(on.streams, request)
    room, limit = AnswerSize(), shapes.DEFAULT_LIMIT // max(1, conditions)
    asked = [
        bulk_append(
            believed(store, wanted), wanted, members, condition_of(members, store, on.link, limit, room)
        )
        for wanted, members in sent
    ]
    results, figures = list[Mapping[str, Any]](), dict[str, float]()
    for place, (one, came) in enumerate(zip(asked, Bulk(store).append(asked), strict=True)):
        result, counted = _shown(store, meter, place, one, came)
        results.append(result)
        for name, count in counted.items():
            figures[name] = figures.get(name, 0.0) + count
    return shapes.answer(
        meter, ANSWERED(results=results, capacity=shapes.capacity(meter.units)), figures=figures
    )


def bulk_append(
    expected: ExpectedVersion,
    wanted: StreamAppend,
    sent: Mapping[str, Any],
    condition: Mapping[str, Any],
) -> BulkAppend:
    """An append of many, as the library takes it."""
    return BulkAppend(
        stream=wanted.stream,
        events=wanted.events,
        unfolds=wanted.unfolds,
        expected=expected,
        idempotency_key=sent.get("idempotencyKey"),
        **condition,
    )


def _shown(
    store: Streams, meter: Meter, place: int, one: BulkAppend, came: Answer
) -> tuple[Mapping[str, Any], Mapping[str, float]]:
    """What came of an append, and its figures."""
    try:
        if isinstance(came, EpochalError):
            raise came
        found = made(store, meter, one.stream, came, {"takes": one.takes})
    except (Problem, EpochalError) as error:
        problem = problem_of(error)
        conflicts = problem.figures.get("Conflicts", 0.0)
        tried = {"tried": False} if isinstance(error, NotTried) else {}
        return {**_refused(place, one.stream, problem), **tried}, {
            "Conflicts": conflicts
        } if conflicts else {}
    view = {
        "stream": one.stream,
        "status": 201,
        "first": found.first,
        "version": found.version,
        "token": found.token.text(),
        "replayed": found.replayed,
        **reached_by(found, store),
    }
    return view, {} if found.replayed else {"Appends": 1.0, "Events": float(len(one.events))}


def _refused(place: int, stream: str, problem: Problem) -> Mapping[str, Any]:
    """The problem of one append, in the words of its own answer."""
    kind, members = problem.kind, dict(problem.members)
    if "field" in members:
        members["field"] = f"appends[{place}].{members['field']}"
    if (etag := problem.headers.get("ETag")) is not None:
        members["token"] = etag.strip('"')
    said = {} if problem.detail is None else {"detail": problem.detail}
    return {
        "stream": stream,
        "status": kind.status,
        "type": kind.type,
        "title": kind.title,
        **said,
        **members,
    }
