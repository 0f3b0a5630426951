"""Plays cases with the client in Python, ordinary or awaited: calls as cases write them, and what the caller sees.

The library's errors do not carry the status of an answer, and `Unavailable` does not say which kind of trouble has
outlasted the patience: what they do carry is compared.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from epochal import Decider, Event, Query, QueryItem, StreamAppend, Unfold, json_codec
from epochal.aio.bridge import run
from epochal.contrib.http_client import HttpDeciders, HttpStreams, bearer, open_http_streams
from epochal.contrib.http_client.aio import open_async_http_streams
from epochal.contrib.http_client.exchange import Auth
from epochal.errors import (
    ConflictError,
    Contended,
    CorruptData,
    EpochalError,
    InvalidInput,
    InvalidRequest,
    MissingTable,
    OutcomeUndetermined,
    Refused,
    StreamDeleted,
    TooLarge,
    Unavailable,
)
from epochal.index.checkpoints import parse_checkpoint
from epochal.model.events import Recorded
from epochal.model.expected_version import ANY, AtVersion, Expected, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.tokens import parse_token
from epochal.store.bulk import BulkAppend
from epochal.store.driver import Patience

Play = Callable[[str, Mapping[str, Any], Callable[[HttpStreams], Any]], Any]
"""Function that opens a client at an address with a case's options, and calls something with it."""

TRANSIENT: Final = frozenset({"unavailable", "connection", "gateway", "internal"})
"""Types of trouble that `Unavailable` stands for."""

NOT_CARRIED: Final = frozenset({"status", "message", "stream"})
"""Fields of a case's error that the library's errors do not have."""


@dataclass(frozen=True)
class Counted:
    """The event of the decider `counter`."""

    n: int


CODEC = json_codec(Counted)


def play_ordinary(url: str, options: Mapping[str, Any], call: Callable[[HttpStreams], Any]) -> Any:
    """Make a call with the ordinary client."""
    with open_http_streams(url, **_settings(options)) as streams:
        return call(streams)


def play_awaited(url: str, options: Mapping[str, Any], call: Callable[[HttpStreams], Any]) -> Any:
    """Make a call with the client of an event loop."""

    async def program() -> Any:
        async with open_async_http_streams(url, **_settings(options)) as streams:
            return await run(call, streams.store)

    return asyncio.run(program())


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    attempts: int | None = options.get("attempts")
    auth: Auth = _nobody
    if "auth" in options:
        auth = bearer(options["auth"]["bearer"])
    patience = Patience(seconds=30.0, first=0.01, retries=None if attempts is None else attempts - 1)
    return {"auth": auth, "patience": patience, "answer_seconds": options.get("timeout", 10.0)}


def _nobody(_: object) -> dict[str, str]:
    return {}


def what_is_seen(streams: HttpStreams, call: Mapping[str, Any]) -> dict[str, Any]:
    """Make a case's call, and return what the caller sees of it: a value or an error, as cases have them."""
    ((name, arguments),) = call.items()
    try:
        return {"value": CALLS[name](streams, **arguments)}
    except EpochalError as error:
        return {"error": _error(error)}


def carried(sees: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a case says of its result without the fields that Python's errors do not carry."""
    if "error" in sees:
        return {"error": _carried_error(sees["error"], value.get("error", {}))}
    results = sees["value"].get("results") if isinstance(sees["value"], dict) else None
    if results is None:
        return dict(sees)
    seen = value["value"]["results"]
    expected = [
        {**one, "error": _carried_error(one["error"], two.get("error", {}))} if "error" in one else one
        for one, two in zip(results, seen, strict=True)
    ]
    return {"value": {**sees["value"], "results": expected}}


def _carried_error(expected: Mapping[str, Any], error: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in expected.items() if name not in NOT_CARRIED}
    if error.get("type") == "unavailable" and expected["type"] in TRANSIENT:
        fields["type"] = "unavailable"
    if error.get("attempts"):  # a decision that is given up does not say where the stream is
        fields = {"type": expected["type"], "maybeApplied": False}
    return fields


def _expected(value: Any) -> ExpectedVersion:
    if value is None:
        return ANY
    if isinstance(value, int):
        return AtVersion(value)
    return parse_token(value) if "." in value else Expected(value)


def _body(value: Mapping[str, Any], name: str) -> bytes:
    if name not in value:
        return b""
    return json.dumps(value[name], separators=(",", ":"), ensure_ascii=False).encode()


def _event(value: Mapping[str, Any]) -> Event:
    return Event(
        type=value["type"],
        data=_body(value, "data"),
        meta=_body(value, "meta"),
        timestamp=value.get("timestamp"),
        correlation_id=value.get("correlationId"),
        causation_id=value.get("causationId"),
        tags=tuple(value.get("tags", ())),
        id=value.get("id"),
    )


def _unfolds(values: Any) -> list[Unfold] | None:
    if values is None:
        return None
    return [Unfold(type=one["type"], data=_body(one, "data"), meta=_body(one, "meta")) for one in values]


def _query(value: Any) -> Query | None:
    if value is None:
        return None
    return Query(
        items=tuple(QueryItem(types=one.get("types", ()), tags=one.get("tags", ())) for one in value["items"])
    )


def _condition(arguments: Mapping[str, Any]) -> dict[str, Any]:
    after = arguments.get("after")
    return {
        "fail_if": _query(arguments.get("failIf")),
        "after": None if after is None else read_position(after),
    }


def _stream_append(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "stream": value["stream"],
        "events": [_event(one) for one in value.get("events", ())],
        "unfolds": _unfolds(value.get("unfolds")),
        "expected": _expected(value.get("expected")),
    }


def _shown_event(event: Recorded) -> dict[str, Any]:
    shown = {"stream": event.stream, "index": event.index, "type": event.type, "tags": [*event.tags]}
    if event.id:
        shown["id"] = event.id
    if event.data:
        shown["data"] = json.loads(event.content)
    return shown


def _shown(done: Appended) -> dict[str, Any]:
    shown = {
        "first": done.first,
        "version": done.version,
        "token": done.token.text(),
        "replayed": done.replayed,
    }
    return {**shown, "position": write_position(done.position)} if done.position.seen else shown


def append(streams: HttpStreams, **arguments: Any) -> Any:
    own = _stream_append(arguments)
    key = arguments.get("key")
    return _shown(
        streams.append(
            own.pop("stream"), own.pop("events"), **own, **_condition(arguments), idempotency_key=key
        )
    )


def append_all(streams: HttpStreams, **arguments: Any) -> Any:
    appends = [StreamAppend(**_stream_append(one)) for one in arguments["appends"]]
    done = streams.append_all(appends, **_condition(arguments), idempotency_key=arguments.get("key"))
    shown = [{**_shown(one), "stream": name} for name, one in done.streams.items()]
    return {"streams": shown, "replayed": done.replayed}


def append_each(streams: HttpStreams, appends: list[dict[str, Any]]) -> Any:
    sent = [
        BulkAppend(**_stream_append(one), **_condition(one), idempotency_key=one.get("key"))
        for one in appends
    ]
    results = []
    for one, answer in zip(appends, streams.append_each(sent), strict=True):
        if isinstance(answer, Appended):
            shown = _shown(answer)
        elif isinstance(answer, Conflict):
            shown = {"error": {"type": "version-conflict", **_where(answer)}}
        else:
            assert isinstance(answer, EpochalError)
            shown = {"error": _error(answer)}
        results.append({"stream": one["stream"], **shown})
    return {"results": results}


def append_tagged(streams: HttpStreams, **arguments: Any) -> Any:
    events = [_event(one) for one in arguments["events"]]
    done = streams.tagged.append(events, **_condition(arguments), idempotency_key=arguments.get("key"))
    return {
        "events": [_shown_event(event) for event in done.events],
        "position": write_position(done.position),
        "versions": {**done.versions},
        "replayed": done.replayed,
    }


def query_tagged(streams: HttpStreams, **arguments: Any) -> Any:
    query = _query(arguments["query"])
    assert query is not None
    after = arguments.get("after")
    seen = streams.tagged.read(
        query,
        after=None if after is None else read_position(after),
        direction=arguments.get("direction", "forward"),
        page_size=arguments.get("limit", 1_000),
    )
    return {"events": [_shown_event(one) for one in seen.events], "position": write_position(seen.position)}


def read(streams: HttpStreams, **arguments: Any) -> Any:
    events = [
        *streams.read(
            arguments["stream"],
            start=arguments.get("from"),
            direction=arguments.get("direction", "forward"),
            types=arguments.get("types"),
            page_size=arguments.get("limit", 1_000),
        )
    ]
    return {"events": [_shown_event(event) for event in events]}


def state(streams: HttpStreams, stream: str) -> Any:
    found = streams.load(stream, events=False)
    assert found is not None
    unfolds = [
        {"version": one.version, "type": one.type, "data": json.loads(one.content)} for one in found.unfolds
    ]
    return {"version": found.version, "token": found.token.text(), "unfolds": unfolds}


def decide(streams: HttpStreams, stream: str, limit: int, attempts: int = 10) -> Any:
    counter = Decider[None, int, Counted](
        initial=lambda: 0,
        evolve=lambda number, _: number + 1,
        decide=lambda _, number: [Counted(number)] if number < limit else [],
    )
    deciders = HttpDeciders(streams=streams, decider=counter, codec=CODEC, attempts=attempts)
    return {"version": deciders.handle(stream, None).version}


def feed(streams: HttpStreams, take: int, categories: list[str] | None = None, **arguments: Any) -> Any:
    start = arguments.get("from", "beginning")
    if not isinstance(start, str):
        start = {int(partition): parse_checkpoint(text) for partition, text in start.items()}
    items: list[dict[str, Any]] = []
    for batch in streams.feed.follow(start=start, categories=categories):
        for item in batch.items:
            event = item.event
            shown: dict[str, Any] = {"stream": item.stream, "index": item.index, "type": item.type}
            if event is not None and event.data:
                shown["data"] = json.loads(event.content)
            items.append(shown)
        if len(items) >= take:
            checkpoint = {str(partition): str(place) for partition, place in batch.position.items()}
            return {"items": items, "checkpoint": checkpoint}
    raise AssertionError("the feed has an end")


CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "append": append,
    "append_all": append_all,
    "append_each": append_each,
    "append_tagged": append_tagged,
    "query_tagged": query_tagged,
    "read": read,
    "state": state,
    "decide": decide,
    "feed": feed,
}


def _where(conflict: Conflict) -> dict[str, Any]:
    token = {} if conflict.token is None else {"token": conflict.token.text()}
    return {"version": conflict.version, **token}


SETTLED: Final = {"maybeApplied": False}


def _error(error: Exception) -> dict[str, Any]:
    """Return an error as cases write it."""
    match error:
        case ConflictError():
            return {**_conflict(error), **SETTLED}
        case OutcomeUndetermined():
            return {"type": "undetermined", "maybeApplied": True}
        case Unavailable():
            return {"type": "unavailable", "maybeApplied": error.maybe_applied}
        case TooLarge():
            return {"type": "too-large", "size": error.size, "limit": error.limit, **SETTLED}
        case InvalidInput() if error.field != "url":
            return {"type": "invalid-input", "field": error.field, "rule": error.rule, **SETTLED}
        case _:
            return {"type": _type(error), **SETTLED}


def _type(error: Exception) -> str:
    """Return the type of an error that has no further fields."""
    if isinstance(error, InvalidInput | Refused):
        return "gateway"
    if isinstance(error, InvalidRequest):
        return error.code
    if isinstance(error, MissingTable):
        return "not-deployed"
    assert isinstance(error, CorruptData), error
    return "content" if "hash" in str(error) else "corrupt-data"


def _conflict(error: ConflictError) -> dict[str, Any]:
    """Return a conflict as cases write it."""
    if isinstance(error, Contended):
        return {"type": "version-conflict", "attempts": error.attempts}
    if isinstance(error, StreamDeleted):
        return {"type": "stream-deleted", "version": error.version}
    conflict = error.outcome
    if conflict.events:
        return {
            "type": "condition-failed",
            "events": [_shown_event(event) for event in conflict.events],
            "position": write_position(conflict.position),
            "more": conflict.more,
        }
    streams = [{"stream": name, **_where(one)} for name, one in conflict.streams.items()]
    return {"type": "version-conflict", **_where(conflict), "streams": streams}
