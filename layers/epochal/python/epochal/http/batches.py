"""Appends of one request that are each for themselves: what keeps one of them from being made keeps no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from epochal.errors import EpochalError, InvalidInput, TooLarge
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem, problem_of
from epochal.http.several import MAX_APPENDS, STREAM_APPEND, stream_append
from epochal.http.shapes import (
    CAPACITY,
    Component,
    Node,
    QueryString,
    Shown,
    answer,
    array,
    capacity,
    checked_key,
    document,
    flag,
    operation,
    record,
    ref,
    streams_for,
    text,
    whole,
)
from epochal.http.streams import STREAM, TOKEN, VERSION, Opened, appended, opened
from epochal.model.versions import MAX_VERSION, StreamAppend
from epochal.store.driver import SIDE_BY_SIDE, Meter, pool
from epochal.store.streams import Streams

__all__ = ["append_each", "opened"]

_MEMBERS: Final = STREAM_APPEND.schema["properties"]
EACH_APPEND: Final = Component(
    "EachAppend",
    {
        **STREAM_APPEND.schema,
        "properties": {
            **_MEMBERS,
            # What its stream refuses is a problem of this append alone.
            "events": {**_MEMBERS["events"], "items": ref("NewEvent")},
            "idempotencyKey": text(
                "As the header `Idempotency-Key` of an append to this stream.",
                most=255,
                pattern=r"[\x21-\x7e]{1,255}",
            ),
        },
    },
    reads={**STREAM_APPEND.special, "idempotencyKey": lambda node: checked_key(node.value, node.name)},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    """An append of the request, and its place there."""

    place: int
    append: StreamAppend
    key: str | None


def _one_of(node: Node) -> tuple[StreamAppend, str | None]:
    sent = EACH_APPEND.read(node)
    return stream_append(node, sent), sent.get("idempotencyKey")


APPEND_EACH: Final = Component(
    "AppendEach",
    record(
        {
            "appends": {
                **array(ref("EachAppend"), "Those to one stream in this order.", MAX_APPENDS),
                "minItems": 1,
            }
        },
        required=("appends",),
    ),
    reads={"appends": _one_of},
)
RESULT: Final = Component(
    "AppendResult",
    record(
        {
            "stream": STREAM,
            "status": whole("As it would be answered by itself.", 200, 599),
            "first": whole("Index of the first event.", 0, MAX_VERSION),
            "version": VERSION,
            "token": TOKEN,
            "replayed": flag("An earlier request had made it."),
            "type": text("Of the problem, where it was not made."),
            "title": text("The same in words."),
            "detail": text("What happened."),
            "field": text("The field that broke a rule."),
            "rule": text("The rule it broke."),
            "size": whole("How large it was."),
            "limit": whole("How large it may be."),
            "index": whole("Where it would be, where nobody can tell whether it is.", 0, MAX_VERSION),
        },
        required=("stream", "status"),
        description="What came of one append: what it made, or the problem that kept it.",
    ),
)
ANSWERED: Final = Shown(
    "AppendResults",
    {
        "results": array(ref("AppendResult"), "What came of each, in the order of the request."),
        "capacity": CAPACITY,
    },
)


@operation(
    "Append to streams, each for itself",
    "Each append is what `POST /streams/{stream}/events` takes, with its stream and its key, and is answered as it "
    "would be there. Appends to one stream are made in their order, others side by side. What is malformed is refused "
    "before anything is written.",
    takes=APPEND_EACH,
    gives=ANSWERED,
)
def append_each(on: Opened, request: Request, _: QueryString) -> Response:
    """Make several appends, of which each is atomic by itself."""
    for given in ("If-Match", "If-None-Match", "Idempotency-Key"):
        if request.header(given) is not None:
            raise InvalidInput(given, "is of one append: each has its own `expected` and `idempotencyKey`")
    sent = APPEND_EACH.read(document(request))["appends"]
    if len(sent) > MAX_APPENDS:
        raise TooLarge("appends", len(sent), MAX_APPENDS, "items")
    store, meter = streams_for(on.streams, request)
    streams = dict[str, list[One]]()
    for place, (append, key) in enumerate(sent):
        streams.setdefault(append.stream, []).append(One(place=place, append=append, key=key))
    results, figures = dict[int, Mapping[str, Any]](), dict[str, float]()
    with pool(SIDE_BY_SIDE) as side_by_side:
        for made in side_by_side.map(lambda those: list(_made(store, meter, those)), streams.values()):
            for place, result, counted in made:
                results[place] = result
                for name, count in counted.items():
                    figures[name] = figures.get(name, 0.0) + count
    shown = [results[place] for place in range(len(sent))]
    return answer(meter, ANSWERED(results=shown, capacity=capacity(meter.units)), figures=figures)


def _made(
    store: Streams, meter: Meter, those: Sequence[One]
) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, float]]]:
    """What came of the appends to a stream, by their places, and the figures of each."""
    for one in those:
        wanted = one.append
        try:
            found = appended(store, meter, wanted, one.key, {})
        except (Problem, EpochalError) as error:
            problem = problem_of(error)
            conflicts = problem.figures.get("Conflicts", 0.0)
            yield one.place, _refused(one, problem), {"Conflicts": conflicts} if conflicts else {}
        else:
            made = {"stream": wanted.stream, "status": 201, "first": found.first, "version": found.version}
            made |= {"token": found.token.text(), "replayed": found.replayed}
            events = 0.0 if found.replayed else float(len(wanted.events))
            yield one.place, made, {} if found.replayed else {"Appends": 1.0, "Events": events}


def _refused(one: One, problem: Problem) -> Mapping[str, Any]:
    """The problem of one append, in the words of its own answer."""
    kind, members = problem.kind, dict(problem.members)
    if "field" in members:
        members["field"] = f"appends[{one.place}].{members['field']}"
    if (etag := problem.headers.get("ETag")) is not None:
        members["token"] = etag.strip('"')
    said = {} if problem.detail is None else {"detail": problem.detail}
    return {
        "stream": one.append.stream,
        "status": kind.status,
        "type": kind.type,
        "title": kind.title,
        **said,
        **members,
    }
