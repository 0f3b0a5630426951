"""Appends to several streams in one request, all or nothing or independently: their schemas and the functions that
perform them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from epochal.errors import EpochalError, InvalidInput, NotTried, TooLarge
from epochal.http import parameters, problems, schemas
from epochal.http.answers import answer, appends, capacity, consumed
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.events import CONDITION, INDEX, AnswerSize
from epochal.http.idempotency import checked_key, idempotency_key
from epochal.http.metering import streams_for
from epochal.http.nodes import Node
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem, problem_of
from epochal.http.query_strings import QueryString
from epochal.http.streams import (
    FIRST,
    REACHED,
    REPLAYED,
    STREAM,
    TOKEN,
    VERSION,
    WITH_QUERY,
    Opened,
    append_form,
    condition_of,
    contents_of,
    forbidden_by,
    made,
    opened,
    reached_by,
    verify_token,
)
from epochal.lazy_dataclasses import replace
from epochal.model.versions import (
    ANY,
    MAX_VERSION,
    Appended,
    Conflict,
    ExpectedVersion,
    Outcome,
    StreamAppend,
    Token,
    Undetermined,
)
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store import bulk
from epochal.store.bulk import Answer, Bulk, BulkAppend
from epochal.store.driver import Meter
from epochal.store.seals import Seals
from epochal.store.streams import Streams

__all__ = ["append_all", "append_each", "opened"]

MAX_APPENDS: Final = TRANSACTION_ITEMS
"""Most streams of one append; one less with an idempotency key, whose record is also a write of the transaction."""


_OF_ALL: Final = ("transaction", "item", "events")
"""Fields by which the store refuses a whole transaction as too large, without naming the append that is at fault."""


STREAM_APPEND: Final = append_form("StreamAppend", stream={"stream": STREAM}, condition={})


def append_of(node: Node) -> StreamAppend:
    """Read one append of an all-or-nothing request.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    return stream_append(node, STREAM_APPEND.read(node))


def stream_append(node: Node, sent: Mapping[str, Any]) -> StreamAppend:
    """Build the append to one stream from the members that `Component.read` returned."""
    expected = sent.get("expected", ANY)
    return StreamAppend(stream=sent["stream"], expected=expected, **contents_of(node, sent))


APPEND_ALL: Final = Component(
    "AppendAll",
    schemas.record(
        {
            "appends": {
                **schemas.array(schemas.ref("StreamAppend"), "Each of another stream.", MAX_APPENDS),
                "minItems": 1,
            },
            **CONDITION,
        },
        required=("appends",),
        dependentRequired=WITH_QUERY,
    ),
    reads={"appends": append_of},
)

EACH_APPENDED: Final = Shown(
    "", {"stream": STREAM, "first": (FIRST, "first"), "version": (VERSION, "version"), "token": TOKEN}
)
ALL_APPENDED: Final = Shown(
    "AllAppended",
    {
        "streams": schemas.array(EACH_APPENDED.schema, "What each stream got, in the order of the request."),
        "replayed": (REPLAYED, "replayed"),
        "position": REACHED,
        "capacity": schemas.CAPACITY,
    },
    optional=("position",),
)

IN_THE_WAY: Final = schemas.record(
    {
        "stream": STREAM,
        "version": VERSION,
        "token": TOKEN,
        "deleted": schemas.flag("Whether it takes no more events."),
        "index": {
            **INDEX,
            "description": "Of the first event, where nobody can tell whether it was appended.",
        },
    },
    required=("stream",),
)


# The operation.


@operation(
    parameters=(parameters.IDEMPOTENCY_KEY,),
    takes=APPEND_ALL,
    status=201,
    gives=ALL_APPENDED,
    fails=(
        problems.VERSION_CONFLICT,
        problems.STREAM_DELETED,
        problems.CONDITION_FAILED,
        problems.UNDETERMINED,
    ),
)
def append_all(on: Opened, request: Request, _: QueryString) -> Response:
    """Append to several streams, all or nothing.

    One transaction. Each append is what `POST /streams/{stream}/events` takes, with its stream. With an
    `Idempotency-Key` at most 99. `If-Match` and `If-None-Match` are refused.
    """
    for given in ("If-Match", "If-None-Match"):
        if request.header(given) is not None:
            raise InvalidInput(given, "names the state of one stream: each append has its own `expected`")
    key = idempotency_key(request)
    sent = APPEND_ALL.read(document(request))
    asked, most = sent["appends"], MAX_APPENDS - (key is not None)
    if len(asked) > most:
        raise TooLarge("appends", len(asked), most, "items")
    store, meter = streams_for(on.streams, request)
    seals = Seals.of(store, writes=True)
    asked = tuple(_with_verified_token(each, seals) for each in asked)
    condition = condition_of(sent, store, on.link)
    match _outcome(store, asked, key, condition):
        case Appended() as made:
            got = [(each.stream, made.streams[each.stream]) for each in asked]
            shown = [
                EACH_APPENDED(one, stream=name, token=seals.sealed(name, one.token).text())
                for name, one in got
            ]
            reached = reached_by(made, store)
            view = ALL_APPENDED(made, streams=shown, capacity=capacity(meter.units), **reached)
            events = [event for each in asked for event in each.events]
            counted = appends(events, replayed=made.replayed)
            figures = {**counted, "Appends": float(len(asked))} if counted else {}
            return answer(meter, view, status=201, figures=figures)
        case Conflict() as forbidden if forbidden.events:
            raise forbidden_by(forbidden, condition, store, meter)
        case Conflict(streams=found):
            raise _all_refused(found, seals, meter)
        case Undetermined() as unknown:
            raise Problem(
                problems.UNDETERMINED,
                "a response was lost, and what would tell has been pruned or replaced since, in every stream: read the "
                "states before writing again",
                streams=[{"stream": stream, "index": each.first} for stream, each in unknown.streams.items()],
            )


def _with_verified_token(append: StreamAppend, seals: Seals) -> StreamAppend:
    """Return an append with its expected token trusted only as far as the token's seal goes."""
    if not isinstance(append.expected, Token):
        return append
    return replace(append, expected=seals.verify_token(append.stream, append.expected))


def _outcome(
    store: Streams, asked: Sequence[StreamAppend], key: str | None, condition: Mapping[str, Any]
) -> Outcome:
    """Append to all streams in one transaction and return the outcome.

    Where the transaction as a whole breaks a limit, the error names the field `appends`.

    Args:
        key: the idempotency key; None for none.
        condition: append condition as keyword arguments, as `condition_of` returns it.
    """
    try:
        return store.try_append_all(asked, idempotency_key=key, **condition)
    except InvalidInput as error:
        if error.field in _OF_ALL:
            error.call_it("appends")
        raise


def _all_refused(found: Mapping[str, Conflict], seals: Seals, meter: Meter) -> Problem:
    """Return the problem of an all-or-nothing append, listing each stream that is in conflict.

    One deleted stream makes the status 410, since a retry at the other streams' versions would fail as well.

    Args:
        found: the conflict of each stream, by stream name.
    """
    shown = [_in_the_way(stream, conflict, seals) for stream, conflict in found.items()]
    gone = [each for each in shown if each["deleted"]]
    first = (gone or shown)[0]
    detail = f"{first['stream']} {'was deleted' if gone else 'is'} at version {first['version']}"
    return Problem(
        problems.STREAM_DELETED if gone else problems.VERSION_CONFLICT,
        detail if len(shown) == 1 else f"{detail}, and {len(shown) - 1} more are in the way",
        figures={"Conflicts": 1.0, **consumed(meter.units)},
        streams=shown,
    )


def _in_the_way(stream: str, conflict: Conflict, seals: Seals) -> dict[str, Any]:
    """Show one conflicting stream: its name, its version, whether it is deleted, and its token."""
    shown = {"stream": stream, "version": conflict.version, "deleted": conflict.deleted}
    if conflict.token is not None and not conflict.deleted:
        shown["token"] = seals.sealed(stream, conflict.token).text()
    return shown


# Independent appends: a conflict of one of them does not keep the others from being applied.

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
                "As the header `Idempotency-Key` of an append to this stream.",
                most=255,
                pattern=r"[\x21-\x7e]{1,255}",
            ),
        },
        "dependentRequired": WITH_QUERY,
    },
    reads={**STREAM_APPEND.special, "idempotencyKey": lambda node: checked_key(node.value, node.name)},
)


def one_of(node: Node) -> tuple[StreamAppend, Mapping[str, Any]]:
    """Read one append of a bulk request; return the append and all members sent for it.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    sent = EACH_APPEND.read(node)
    if "after" in sent and "failIf" not in sent:
        raise InvalidInput(node.below("after"), "needs a query to go with")
    return stream_append(node, sent), sent


APPEND_EACH: Final = Component(
    "AppendEach",
    schemas.record(
        {
            "appends": {
                **schemas.array(
                    schemas.ref("EachAppend"), "Those to one stream in this order.", bulk.MAX_APPENDS
                ),
                "minItems": 1,
            }
        },
        required=("appends",),
    ),
    reads={"appends": one_of},
)
RESULT: Final = Component(
    "AppendResult",
    schemas.record(
        {
            "stream": STREAM,
            "status": schemas.whole("As it would be answered by itself.", 200, 599),
            "first": schemas.whole("Index of the first event.", 0, MAX_VERSION),
            "version": VERSION,
            "token": TOKEN,
            "replayed": schemas.flag("An earlier request had made it."),
            "type": schemas.text("Of the problem, where it was not made."),
            "title": schemas.text("The same in words."),
            "detail": schemas.text("What happened."),
            "field": schemas.text("The field that broke a rule."),
            "rule": schemas.text("The rule it broke."),
            "size": schemas.whole("How large it was."),
            "limit": schemas.whole("How large it may be."),
            "index": schemas.whole("Where it would be, where nobody can tell whether it is.", 0, MAX_VERSION),
            "events": schemas.array(
                schemas.ref("TaggedEvent"), "Events that match `failIf` and are in the way."
            ),
            "more": schemas.flag("Whether others are in the way, too."),
            "position": REACHED,
            "tried": schemas.flag("False: the time was over before anything was sent for it. Send it again."),
        },
        required=("stream", "status"),
        description="What came of one append: what it made, or the problem that kept it.",
    ),
)
ANSWERED: Final = Shown(
    "AppendResults",
    {
        "results": schemas.array(
            schemas.ref("AppendResult"), "What came of each, in the order of the request."
        ),
        "capacity": schemas.CAPACITY,
    },
)


@operation(takes=APPEND_EACH, gives=ANSWERED)
def append_each(on: Opened, request: Request, _: QueryString) -> Response:
    """Append to streams, each for itself.

    Each append is what `POST /streams/{stream}/events` takes, with its stream and its key, and is answered as it would
    be there. Appends to one stream are made in their order, as one write where they can be; others side by side. What
    is malformed is refused before anything is written.
    """
    for given in ("If-Match", "If-None-Match", "Idempotency-Key"):
        if request.header(given) is not None:
            raise InvalidInput(given, "is of one append: each has its own `expected` and `idempotencyKey`")
    sent = APPEND_EACH.read(document(request))["appends"]
    conditions = sum("failIf" in members for _, members in sent)
    if conditions > MAX_CONDITIONS:
        raise TooLarge("appends", conditions, MAX_CONDITIONS, "items with `failIf`")
    store, meter = streams_for(on.streams, request)
    room, limit = AnswerSize(), schemas.DEFAULT_LIMIT // max(1, conditions)
    asked = [
        bulk_append(
            verify_token(store, wanted), wanted, members, condition_of(members, store, on.link, limit, room)
        )
        for wanted, members in sent
    ]
    results, figures = list[Mapping[str, Any]](), dict[str, float]()
    for place, (one, came) in enumerate(zip(asked, Bulk(store).append(asked), strict=True)):
        result, counted = _shown(store, meter, place, one, came)
        results.append(result)
        for name, count in counted.items():
            figures[name] = figures.get(name, 0.0) + count
    return answer(meter, ANSWERED(results=results, capacity=capacity(meter.units)), figures=figures)


def bulk_append(
    expected: ExpectedVersion,
    wanted: StreamAppend,
    sent: Mapping[str, Any],
    condition: Mapping[str, Any],
) -> BulkAppend:
    """Build one append of a bulk request as the library takes it.

    Args:
        expected: the expected version, its token already checked against its seal.
        sent: members of the append; the idempotency key is in `idempotencyKey`.
        condition: append condition as keyword arguments, as `condition_of` returns it.
    """
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
    """Show the outcome of one append of a bulk request; return its result object and its metrics.

    Args:
        place: offset of the append within the request.
        came: outcome of the append, or the error it ended with.
    """
    try:
        if isinstance(came, EpochalError):
            raise came
        found = made(store, meter, one.stream, came, {"takes": one.takes})
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
        "first": found.first,
        "version": found.version,
        "token": found.token.text(),
        "replayed": found.replayed,
        **reached_by(found, store),
    }
    return view, {} if found.replayed else {"Appends": 1.0, "Events": float(len(one.events))}


def _refused(place: int, stream: str, problem: Problem) -> Mapping[str, Any]:
    """Show the problem of one append of a bulk request as a result object.

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
