"""Independent appends in one request: a conflict of one of them does not keep the others from being applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.errors import EpochalError, InvalidInput, NotTried, TooLarge
from epochal.http import schemas
from epochal.http.answer_size import AnswerSize
from epochal.http.answers import answer, capacity
from epochal.http.appends import (
    REACHED,
    WITH_QUERY,
    check_appended,
    condition_of,
    position_member,
    verify_token,
)
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.event_fields import CONDITION
from epochal.http.idempotency import checked_key
from epochal.http.metering import streams_for
from epochal.http.nodes import Node
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem, problem_of
from epochal.http.query_strings import QueryString
from epochal.http.several import STREAM_APPEND, stream_append
from epochal.http.stream_fields import STREAM, TOKEN, VERSION
from epochal.http.streams import Opened, opened
from epochal.model.expected_version import ExpectedVersion
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import MAX_VERSION
from epochal.store import bulk
from epochal.store.bulk import Answer, Bulk, BulkAppend
from epochal.store.driver import Meter
from epochal.store.streams import Streams

__all__ = ["append_each", "opened"]

MAX_CONDITIONS: Final = 100
"""Most appends with a condition in one request: the conflicting events of all of them must fit one answer."""

_MEMBERS: Final = STREAM_APPEND.schema["properties"]
EACH_APPEND: Final = Component(
    "EachAppend",
    {
        **STREAM_APPEND.schema,
        "properties": {
            **_MEMBERS,
            # An event that its stream refuses is a problem of this append alone.
            "events": {**_MEMBERS["events"], "items": schemas.ref("NewEvent")},
            **CONDITION,
            "idempotencyKey": schemas.text(
                "Like the header `Idempotency-Key` of an append to this stream.",
                most=255,
                pattern=r"[\x21-\x7e]{1,255}",
            ),
        },
        "dependentRequired": WITH_QUERY,
    },
    reads={**STREAM_APPEND.special, "idempotencyKey": lambda node: checked_key(node.value, node.name)},
)


def read_bulk_append(node: Node) -> tuple[StreamAppend, Mapping[str, Any]]:
    """Read one append of a bulk request; return the append and all members sent for it.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    members = EACH_APPEND.read(node)
    if "after" in members and "failIf" not in members:
        raise InvalidInput(node.below("after"), "must not be given without failIf")
    return stream_append(node, members), members


APPEND_EACH: Final = Component(
    "AppendEach",
    schemas.record(
        {
            "appends": {
                **schemas.array(
                    schemas.ref("EachAppend"),
                    "Appends. Those to the same stream are made in this order.",
                    bulk.MAX_APPENDS,
                ),
                "minItems": 1,
            }
        },
        required=("appends",),
    ),
    reads={"appends": read_bulk_append},
)
RESULT: Final = Component(
    "AppendResult",
    schemas.record(
        {
            "stream": STREAM,
            "status": schemas.whole(
                "HTTP status that the append would get as a request of its own.", 200, 599
            ),
            "first": schemas.whole("Index of the first event.", 0, MAX_VERSION),
            "version": VERSION,
            "token": TOKEN,
            "replayed": schemas.flag("Whether an earlier request made this append."),
            "type": schemas.text("Type of the problem, if the append was not made."),
            "title": schemas.text("Title of the problem."),
            "detail": schemas.text("What happened."),
            "field": schemas.text("Field that broke a rule."),
            "rule": schemas.text("Rule that it broke."),
            "size": schemas.whole("Size of the refused value."),
            "limit": schemas.whole("Largest size allowed."),
            "index": schemas.whole(
                "Index at which the first event would be, if it cannot be determined whether "
                "the append was made.",
                0,
                MAX_VERSION,
            ),
            "events": schemas.array(
                schemas.ref("TaggedEvent"), "Events that match `failIf` and so refused the append."
            ),
            "more": schemas.flag("Whether there are further such events."),
            "position": REACHED,
            "tried": schemas.flag(
                "False if the time was over before this append was sent to the store. Send it again."
            ),
        },
        required=("stream", "status"),
        description="Result of one append: what was appended, or the problem that prevented it.",
    ),
)
ANSWERED: Final = Shown(
    "AppendResults",
    {
        "results": schemas.array(
            schemas.ref("AppendResult"), "Result of each append, in the order of the request."
        ),
        "capacity": schemas.CAPACITY,
    },
)


@operation(takes=APPEND_EACH, gives=ANSWERED)
def append_each(on: Opened, request: Request, _: QueryString) -> Response:
    """Append to streams independently of each other, and report the result of each append.

    Each append has the fields of `POST /streams/{stream}/events`, its stream and its key, and gets the result that it
    would get there. Appends to the same stream are made in the order given, in one write where possible. Appends to
    different streams are made in parallel. A malformed request is refused before anything is written.
    """
    for header in ("If-Match", "If-None-Match", "Idempotency-Key"):
        if request.header(header) is not None:
            raise InvalidInput(
                header, "applies to a single append: give each append its own `expected` and `idempotencyKey`"
            )
    requested = APPEND_EACH.read(document(request))["appends"]
    conditions = sum("failIf" in members for _, members in requested)
    if conditions > MAX_CONDITIONS:
        raise TooLarge("appends", conditions, MAX_CONDITIONS, "items with `failIf`")
    store, meter = streams_for(on.streams, request)
    room, limit = AnswerSize(), schemas.DEFAULT_LIMIT // max(1, conditions)
    appends = [
        bulk_append(
            verify_token(store, append), append, members, condition_of(members, store, on.link, limit, room)
        )
        for append, members in requested
    ]
    results, figures = list[Mapping[str, Any]](), dict[str, float]()
    for place, (one, outcome) in enumerate(zip(appends, Bulk(store).append(appends), strict=True)):
        result, counted = _build_append_result(store, meter, place, one, outcome)
        results.append(result)
        for name, count in counted.items():
            figures[name] = figures.get(name, 0.0) + count
    return answer(meter, ANSWERED(results=results, capacity=capacity(meter.units)), figures=figures)


def bulk_append(
    expected: ExpectedVersion,
    append: StreamAppend,
    members: Mapping[str, Any],
    condition: Mapping[str, Any],
) -> BulkAppend:
    """Build one append of a bulk request as the library takes it.

    Args:
        expected: the expected version, its token already checked against its seal.
        members: members of the append; the idempotency key is in `idempotencyKey`.
        condition: append condition as keyword arguments, as `condition_of` returns it.
    """
    return BulkAppend(
        stream=append.stream,
        events=append.events,
        unfolds=append.unfolds,
        expected=expected,
        idempotency_key=members.get("idempotencyKey"),
        **condition,
    )


def _build_append_result(
    store: Streams, meter: Meter, place: int, one: BulkAppend, outcome: Answer
) -> tuple[Mapping[str, Any], Mapping[str, float]]:
    """Show the outcome of one append of a bulk request; return its result object and its metrics.

    Args:
        place: offset of the append within the request.
        outcome: outcome of the append, or the error it ended with.
    """
    try:
        if isinstance(outcome, EpochalError):
            raise outcome
        appended = check_appended(store, meter, one.stream, outcome, {"takes": one.takes})
    except (Problem, EpochalError) as error:
        if isinstance(error, InvalidInput) and error.field == "idempotency_key":
            error.call_it("idempotencyKey")
        problem = problem_of(error)
        tried = {"tried": False} if isinstance(error, NotTried) else {}
        figures = {name: count for name, count in problem.figures.items() if name == "Conflicts"}
        return {**_refused(place, one.stream, problem), **tried}, figures
    view = {
        "stream": one.stream,
        "status": 201,
        "first": appended.first,
        "version": appended.version,
        "token": appended.token.text(),
        "replayed": appended.replayed,
        **position_member(appended, store),
    }
    return view, {} if appended.replayed else {"Appends": 1.0, "Events": float(len(one.events))}


def _refused(place: int, stream: str, problem: Problem) -> Mapping[str, Any]:
    """Return the result object that shows the problem of one append of a bulk request.

    Args:
        place: offset of the append within the request, with which field names are prefixed.
    """
    kind, members = problem.kind, dict(problem.members)
    if "field" in members:
        members["field"] = f"appends[{place}].{members['field']}"
    said = {} if problem.detail is None else {"detail": problem.detail}
    return {
        "stream": stream,
        "status": kind.status,
        "type": kind.type,
        "title": kind.title,
        **said,
        **members,
    }
