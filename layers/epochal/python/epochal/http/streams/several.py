"""An append to several streams at once, all or nothing, which pages alone can do.

    {"appends": [{"stream": "Account-1", "events": […], "expected": 3},
                 {"stream": "Account-2", "events": […], "expected": "2.9f8c….1.0.0.1.1"}]}

Each is what an append to its stream alone takes. A header names the state of one stream, so a token is in `expected`
here: the stream's ETag, without its quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.answer_size import capacity
from epochal.http.document import document
from epochal.http.fields import Node, required
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, appends, consumed, streams_for
from epochal.http.preconditions import expectation_of, idempotency_key
from epochal.http.problems import Problem
from epochal.http.query import QueryParameters
from epochal.http.streams.writing import contents_of
from epochal.model.names import stream_name
from epochal.model.outcomes import Conflict
from epochal.model.several import AllAppended, AllOutcome, AllUndetermined, Conflicts, StreamAppend
from epochal.model.versions import ANY, ExpectedVersion, Token, parse_token
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store.driver import Meter
from epochal.store.seals import Seals
from epochal.store.streams import Streams

MAX_APPENDS: Final = TRANSACTION_ITEMS
"""Streams of one append; one less with a key, whose record is a write of the transaction too."""

_OF_ALL: Final = ("transaction", "item", "events")
"""What is found to be too much when all of it is to be written, as the store calls it: it does not tell whose it is."""


def opened(deployment: Deployment, streams: str) -> Streams:
    """A store of streams of a deployment, by its name there."""
    found: Streams = getattr(deployment, streams)
    return found


def append_all(streams: Streams, request: Request) -> Response:
    """Append to several streams, all or nothing."""
    QueryParameters(request)
    for name in ("If-Match", "If-None-Match"):
        if request.header(name) is not None:
            raise InvalidInput(name, "names the state of one stream: each append has its own `expected`")
    key = idempotency_key(request)
    root = document(request)
    nodes = required(root, root.members(("appends",)), "appends").items(MAX_APPENDS - (key is not None))
    asked = tuple(map(append_of, nodes))
    store, meter = streams_for(streams, request)
    seals = Seals.of(store, writes=True)
    asked = tuple(_believed(each, seals) for each in asked)
    match _outcome(store, asked, key):
        case AllAppended() as made:
            view, replayed = _made(asked, made, seals, meter), _is_replayed(made)
            events = [event for each in asked for event in each.events]
            counted = appends(events, replayed=replayed)
            figures = {**counted, "Appends": float(len(asked))} if counted else {}
            return answer(meter, view, status=201, figures=figures)
        case Conflicts(streams=found):
            raise _refused(found, seals, meter)
        case AllUndetermined() as unknown:
            raise _undetermined(unknown)


def _outcome(store: Streams, asked: Sequence[StreamAppend], key: str | None) -> AllOutcome:
    try:
        return store.try_append_all(asked, idempotency_key=key)
    except InvalidInput as error:
        if error.field in _OF_ALL:
            error.call_it("appends")
        raise


def append_of(node: Node) -> StreamAppend:
    """What one stream gets; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("stream", "events", "unfolds", "expected"))
    stream = required(node, fields, "stream")
    name = stream_name(stream.value, stream.name)
    events, unfolds = contents_of(node, fields)
    expected = _expected(fields["expected"]) if "expected" in fields else ANY
    return StreamAppend(stream=name, events=events, unfolds=unfolds, expected=expected)


def _expected(node: Node) -> ExpectedVersion:
    """A version, a word, or a token, which has points."""
    if isinstance(node.value, str) and "." in node.value:
        return parse_token(node.value, node.name)
    return expectation_of(node)


def _believed(append: StreamAppend, seals: Seals) -> StreamAppend:
    if not isinstance(append.expected, Token):
        return append
    return replace(append, expected=seals.believed(append.stream, append.expected))


def _is_replayed(made: AllAppended) -> bool:
    return any(each.replayed for each in made.streams.values())


def _made(asked: Iterable[StreamAppend], made: AllAppended, seals: Seals, meter: Meter) -> dict[str, Any]:
    """What each stream got, in the order of the request."""
    each_of = [(each.stream, made.streams[each.stream]) for each in asked]
    shown = [
        {
            "stream": stream,
            "first": got.first,
            "version": got.version,
            "token": seals.sealed(stream, got.token).text(),
        }
        for stream, got in each_of
    ]
    return {"streams": shown, "replayed": _is_replayed(made), "capacity": capacity(meter.units)}


def _refused(found: Mapping[str, Conflict], seals: Seals, meter: Meter) -> Problem:
    """Streams in the way. A deleted one decides the status: to go on from where the others are is in vain."""
    shown = [_in_the_way(stream, conflict, seals) for stream, conflict in found.items()]
    deleted = [each for each in shown if each["deleted"]]
    first = (deleted or shown)[0]
    detail = f"{first['stream']} {'was deleted' if deleted else 'is'} at version {first['version']}"
    return Problem(
        problems.STREAM_DELETED if deleted else problems.VERSION_CONFLICT,
        detail if len(shown) == 1 else f"{detail}, and {len(shown) - 1} more are in the way",
        figures={"Conflicts": 1.0, **consumed(meter.units)},
        streams=shown,
    )


def _in_the_way(stream: str, conflict: Conflict, seals: Seals) -> dict[str, Any]:
    shown = {"stream": stream, "version": conflict.version, "deleted": conflict.deleted}
    if conflict.token is not None and not conflict.deleted:
        shown["token"] = seals.sealed(stream, conflict.token).text()
    return shown


def _undetermined(unknown: AllUndetermined) -> Problem:
    return Problem(
        problems.UNDETERMINED,
        "a response was lost, and what would tell has been pruned or replaced since, in every stream: read the states "
        "before writing again",
        streams=[{"stream": stream, "index": each.first} for stream, each in unknown.streams.items()],
    )
