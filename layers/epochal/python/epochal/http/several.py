"""The append to several streams, all or nothing: what it takes and answers, and how it is performed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from epochal.errors import InvalidInput, TooLarge
from epochal.http import problems, shapes
from epochal.http.events import CONDITION, INDEX
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem
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
    opened,  # noqa: F401  what it runs on is opened as for the other operations
    reached_by,
)
from epochal.lazy_dataclasses import replace
from epochal.model.versions import (
    ANY,
    Appended,
    Conflict,
    ExpectedVersion,
    Outcome,
    StreamAppend,
    Token,
    Undetermined,
    parse_token,
)
from epochal.plan.ops import TRANSACTION_ITEMS
from epochal.store.driver import Meter
from epochal.store.seals import Seals
from epochal.store.streams import Streams

MAX_APPENDS: Final = TRANSACTION_ITEMS
"""Streams of one append; one less with a key, whose record is a write of the transaction too."""


_OF_ALL: Final = ("transaction", "item", "events")
"""What is found to be too much when all of it is to be written, as the store calls it: it does not tell whose it is."""


def _expected(node: shapes.Node) -> ExpectedVersion:
    """A version, a word, or a token, which has points."""
    if isinstance(node.value, str) and "." in node.value:
        return parse_token(node.value, node.name)
    return shapes.expectation_of(node)


STREAM_APPEND: Final = append_form("StreamAppend", _expected, TOKEN, stream={"stream": STREAM}, condition={})


def append_of(node: shapes.Node) -> StreamAppend:
    """What one stream gets; raises `InvalidInput` naming the field that breaks a rule."""
    return stream_append(node, STREAM_APPEND.read(node))


def stream_append(node: shapes.Node, sent: Mapping[str, Any]) -> StreamAppend:
    """What one stream gets, of what was read."""
    expected = sent.get("expected", ANY)
    return StreamAppend(stream=sent["stream"], expected=expected, **contents_of(node, sent))


APPEND_ALL: Final = shapes.Component(
    "AppendAll",
    shapes.record(
        {
            "appends": {
                **shapes.array(shapes.ref("StreamAppend"), "Each of another stream.", MAX_APPENDS),
                "minItems": 1,
            },
            **CONDITION,
        },
        required=("appends",),
        dependentRequired=WITH_QUERY,
    ),
    reads={"appends": append_of},
)

EACH_APPENDED: Final = shapes.Shown(
    "", {"stream": STREAM, "first": (FIRST, "first"), "version": (VERSION, "version"), "token": TOKEN}
)
ALL_APPENDED: Final = shapes.Shown(
    "AllAppended",
    {
        "streams": shapes.array(EACH_APPENDED.schema, "What each stream got, in the order of the request."),
        "replayed": REPLAYED,
        "position": REACHED,
        "capacity": shapes.CAPACITY,
    },
    optional=("position",),
)

IN_THE_WAY: Final = shapes.record(
    {
        "stream": STREAM,
        "version": VERSION,
        "token": TOKEN,
        "deleted": shapes.flag("Whether it takes no more events."),
        "index": {
            **INDEX,
            "description": "Of the first event, where nobody can tell whether it was appended.",
        },
    },
    required=("stream",),
)


# The operation.


@shapes.operation(
    "Append to several streams, all or nothing",
    "One transaction. Each append is what `POST /streams/{stream}/events` takes, with its stream. "
    f"With an `Idempotency-Key` at most {MAX_APPENDS - 1}. `If-Match` and `If-None-Match` are refused.",
    parameters=(shapes.IDEMPOTENCY_KEY,),
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
def append_all(on: Opened, request: Request, _: shapes.QueryString) -> Response:
    """Append to several streams. A header names the state of one, so a token is in each one's `expected` here: the
    stream's ETag, without its quotes.
    """
    for given in ("If-Match", "If-None-Match"):
        if request.header(given) is not None:
            raise InvalidInput(given, "names the state of one stream: each append has its own `expected`")
    key = shapes.idempotency_key(request)
    sent = APPEND_ALL.read(shapes.document(request))
    asked, most = sent["appends"], MAX_APPENDS - (key is not None)
    if len(asked) > most:
        raise TooLarge("appends", len(asked), most, "items")
    store, meter = shapes.streams_for(on.streams, request)
    seals = Seals.of(store, writes=True)
    asked = tuple(_believed(each, seals) for each in asked)
    condition = condition_of(sent, store, on.link)
    match _outcome(store, asked, key, condition):
        case Appended() as made:
            replayed = any(each.replayed for each in made.streams.values())
            got = [(each.stream, made.streams[each.stream]) for each in asked]
            shown = [
                EACH_APPENDED(one, stream=name, token=seals.sealed(name, one.token).text())
                for name, one in got
            ]
            reached = reached_by(made, store)
            view = ALL_APPENDED(
                streams=shown, replayed=replayed, capacity=shapes.capacity(meter.units), **reached
            )
            counted = shapes.appends([event for each in asked for event in each.events], replayed=replayed)
            figures = {**counted, "Appends": float(len(asked))} if counted else {}
            return shapes.answer(meter, view, status=201, figures=figures)
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


def _believed(append: StreamAppend, seals: Seals) -> StreamAppend:
    if not isinstance(append.expected, Token):
        return append
    return replace(append, expected=seals.believed(append.stream, append.expected))


def _outcome(
    store: Streams, asked: Sequence[StreamAppend], key: str | None, condition: Mapping[str, Any]
) -> Outcome:
    try:
        return store.try_append_all(asked, idempotency_key=key, **condition)
    except InvalidInput as error:
        if error.field in _OF_ALL:
            error.call_it("appends")
        raise


def _all_refused(found: Mapping[str, Conflict], seals: Seals, meter: Meter) -> Problem:
    """Streams in the way. A deleted one decides the status: to go on from where the others are is in vain."""
    shown = [_in_the_way(stream, conflict, seals) for stream, conflict in found.items()]
    gone = [each for each in shown if each["deleted"]]
    first = (gone or shown)[0]
    detail = f"{first['stream']} {'was deleted' if gone else 'is'} at version {first['version']}"
    return Problem(
        problems.STREAM_DELETED if gone else problems.VERSION_CONFLICT,
        detail if len(shown) == 1 else f"{detail}, and {len(shown) - 1} more are in the way",
        figures={"Conflicts": 1.0, **shapes.consumed(meter.units)},
        streams=shown,
    )


def _in_the_way(stream: str, conflict: Conflict, seals: Seals) -> dict[str, Any]:
    shown = {"stream": stream, "version": conflict.version, "deleted": conflict.deleted}
    if conflict.token is not None and not conflict.deleted:
        shown["token"] = seals.sealed(stream, conflict.token).text()
    return shown
