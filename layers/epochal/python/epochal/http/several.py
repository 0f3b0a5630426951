"""Appends to several streams in one request, all or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from epochal.errors import InvalidInput, TooLarge
from epochal.http import parameters, problems, schemas
from epochal.http.answers import answer, appends, capacity, consumed
from epochal.http.appends import (
    REACHED,
    WITH_QUERY,
    append_form,
    condition_of,
    condition_problem,
    contents_of,
    position_member,
)
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.event_fields import CONDITION, INDEX
from epochal.http.idempotency import idempotency_key
from epochal.http.metering import streams_for
from epochal.http.nodes import Node
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem
from epochal.http.query_strings import QueryString
from epochal.http.stream_fields import FIRST, REPLAYED, STREAM, TOKEN, VERSION
from epochal.http.streams import Opened, opened
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import ANY
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.quantities import quantity
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import Token
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store.driver import Meter
from epochal.store.seals import Seals
from epochal.store.streams import Streams

__all__ = ["append_all", "opened"]

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


def stream_append(node: Node, members: Mapping[str, Any]) -> StreamAppend:
    """Build the append to one stream from the members that `Component.read` returned."""
    expected = members.get("expected", ANY)
    return StreamAppend(stream=members["stream"], expected=expected, **contents_of(node, members))


APPEND_ALL: Final = Component(
    "AppendAll",
    schemas.record(
        {
            "appends": {
                **schemas.array(schemas.ref("StreamAppend"), "Appends, each to another stream.", MAX_APPENDS),
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
        "streams": schemas.array(
            EACH_APPENDED.schema, "Result for each stream, in the order of the request."
        ),
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
        "deleted": schemas.flag("Whether the stream was deleted and accepts no more events."),
        "index": {
            **INDEX,
            "description": "Index of the first event, if it cannot be determined whether the append was made.",
        },
    },
    required=("stream",),
)


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
    """Append to several streams in one transaction.

    Appends to all streams or to none. Each append has the fields of `POST /streams/{stream}/events`, and its stream. At
    most 100 appends, or 99 with an `Idempotency-Key`. `If-Match` and `If-None-Match` are refused.
    """
    for header in ("If-Match", "If-None-Match"):
        if request.header(header) is not None:
            raise InvalidInput(header, "applies to a single stream: give each append its own `expected`")
    key = idempotency_key(request)
    members = APPEND_ALL.read(document(request))
    appends_, most = members["appends"], MAX_APPENDS - (key is not None)
    if len(appends_) > most:
        raise TooLarge("appends", len(appends_), most, "items")
    store, meter = streams_for(on.streams, request)
    seals = Seals.of(store, writes=True)
    appends_ = tuple(_with_verified_token(append, seals) for append in appends_)
    condition = condition_of(members, store, on.link)
    match _try_append_all(store, appends_, key, condition):
        case Appended() as appended:
            outcomes = [(append.stream, appended.streams[append.stream]) for append in appends_]
            streams = [
                EACH_APPENDED(one, stream=name, token=seals.seal_token(name, one.token).text())
                for name, one in outcomes
            ]
            reached = position_member(appended, store)
            view = ALL_APPENDED(appended, streams=streams, capacity=capacity(meter.units), **reached)
            events = [event for append in appends_ for event in append.events]
            counted = appends(events, replayed=appended.replayed)
            figures = {**counted, "Appends": float(len(appends_))} if counted else {}
            return answer(meter, view, status=201, figures=figures)
        case Conflict() as forbidden if forbidden.events:
            raise condition_problem(forbidden, condition, store, meter)
        case Conflict(streams=conflicts):
            raise _conflicts_problem(conflicts, seals, meter)
        case Undetermined() as unknown:
            raise Problem(
                problems.UNDETERMINED,
                "a response was lost, and what would show whether the appends were made has been pruned or replaced "
                "since in every stream: read the states before writing again",
                streams=[
                    {"stream": stream, "index": outcome.first} for stream, outcome in unknown.streams.items()
                ],
            )


def _with_verified_token(append: StreamAppend, seals: Seals) -> StreamAppend:
    """Return an append with its expected token trusted only as far as the token's seal goes."""
    if not isinstance(append.expected, Token):
        return append
    return replace(append, expected=seals.verify_token(append.stream, append.expected))


def _try_append_all(
    store: Streams, appends_: Sequence[StreamAppend], key: str | None, condition: Mapping[str, Any]
) -> Outcome:
    """Append to all streams in one transaction and return the outcome.

    Where the transaction as a whole breaks a limit, the error names the field `appends`.

    Args:
        key: the idempotency key; None for none.
        condition: append condition as keyword arguments, as `condition_of` returns it.
    """
    try:
        return store.try_append_all(appends_, idempotency_key=key, **condition)
    except InvalidInput as error:
        if error.field in _OF_ALL:
            error.call_it("appends")
        raise


def _conflicts_problem(conflicts: Mapping[str, Conflict], seals: Seals, meter: Meter) -> Problem:
    """Return the problem of a refused append to several streams: 409, or 410 if one of them is deleted.

    One deleted stream makes the status 410, since a retry at the other streams' versions would fail as well.

    Args:
        conflicts: the conflict of each stream, by stream name.
    """
    streams = [_build_conflict_view(stream, conflict, seals) for stream, conflict in conflicts.items()]
    deleted = [stream for stream in streams if stream["deleted"]]
    first = (deleted or streams)[0]
    detail = f"{first['stream']} {'was deleted' if deleted else 'is'} at version {first['version']}"
    return Problem(
        problems.STREAM_DELETED if deleted else problems.VERSION_CONFLICT,
        detail
        if len(streams) == 1
        else f"{detail}, with {quantity(len(streams) - 1, 'more stream')} in conflict",
        figures={"Conflicts": 1.0, **consumed(meter.units)},
        streams=streams,
    )


def _build_conflict_view(stream: str, conflict: Conflict, seals: Seals) -> dict[str, Any]:
    """Show one conflicting stream: its name, its version, whether it is deleted, and its token."""
    view = {"stream": stream, "version": conflict.version, "deleted": conflict.deleted}
    if conflict.token is not None and not conflict.deleted:
        view["token"] = seals.seal_token(stream, conflict.token).text()
    return view
