"""Whatever is sent: an answer or a refusal that names a field, and what was accepted comes back as it was."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec import json
from epochal.errors import GroupMissing, InvalidInput
from epochal.http import gateway_requests
from epochal.http.gateway import Performers
from epochal.http.operation import Operation, Request
from epochal.http.problems import Problem
from epochal.http.routes import operations
from epochal.http.sent_events import NEW_EVENT
from epochal.model.position_text import write_position
from epochal.model.positions import Position
from epochal.model.stream_names import stream_name
from epochal.model.tags import check_tag
from tests.support.api import Api, gateway_event
from tests.support.examples import examples

T = TypeVar("T")

TEXT = st.text(max_size=8)
NUMBERS = st.one_of(
    st.integers(),
    st.integers(min_value=-(10**40), max_value=10**40),
    st.decimals(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [
        *NEW_EVENT.names,
        "events",
        "unfolds",
        "expected",
        "snapshot",
        "occurredAt",
        "before",
        "sha256",
        "bytes",
        "key",
        "id",
        "tags",
        "types",
        "items",
        "query",
        "failIf",
        "after",
        "from",
        "limit",
        "state",
        "state64",
        "eventsProcessed",
        "lastSortableId",
        "x",
    ]
)
POSITION = write_position(Position())
SHAPED = st.recursive(
    st.one_of(
        VALUES,
        st.sampled_from(["any", "YQ==", "2013-01-01T00:00:00Z", "0" * 64, "0" * 30, POSITION, 1, -1]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=4)),
    max_leaves=20,
)
"""Documents that use the API's own words, so that parsing gets past the first field."""

PERFORMERS = Performers(Api().deployment)

HEADERS = st.dictionaries(
    st.sampled_from(["if-match", "if-none-match", "idempotency-key", "content-type", "content-encoding"]),
    st.one_of(TEXT, st.sampled_from(["*", '"1"', 'W/"1"', "application/json", "identity", "k"])),
)
QUERY = st.lists(
    st.tuples(
        st.one_of(
            TEXT, st.sampled_from(["from", "limit", "direction", "wait", "data", "category", "leaveOpen"])
        ),
        st.one_of(TEXT, st.sampled_from(["0", "1", "true", "backward", "tail", "0@1"])),
    ),
    max_size=4,
)


def outcome(call: Callable[[], T]) -> T | InvalidInput:
    """A result or a refusal; anything else that is raised ends the test."""
    try:
        return call()
    except InvalidInput as refused:
        return refused


def is_answered(operation: Operation, request: Request) -> None:
    """Performed, or refused with a field and a rule, or a problem of what is stored."""
    try:
        found = outcome(lambda: PERFORMERS.of(operation)(request))
    except (Problem, GroupMissing):
        return
    assert not isinstance(found, InvalidInput) or (found.field and found.rule)


@pytest.mark.slow
@pytest.mark.parametrize("operation", operations(), ids=lambda each: each.name)
@examples(100)
@given(
    name=st.one_of(TEXT, st.sampled_from(["Cat-1", "0", "$x"])),
    body=st.one_of(st.binary(max_size=30), SHAPED.map(json.dumps)),
    headers=HEADERS,
    query=QUERY,
)
def test_a_request_is_answered_or_is_refused_by_field(
    operation: Operation, name: str, body: bytes, headers: dict[str, str], query: list[tuple[str, str]]
) -> None:
    path = {"stream": name, "partition": name, "type": "order", "id": name}
    path |= {"tag": name, "name": name, "version": "v1", "group": name, "timer": name}
    request = Request(path=path, query=tuple(query), headers=headers, body=body)
    is_answered(operation, request)


@examples(300)
@given(document=SHAPED)
def test_a_document_is_taken_or_is_refused_by_field(document: Any) -> None:
    path = {
        "stream": "Cat-1",
        "type": "order",
        "id": "1",
        "name": "Totals",
        "version": "v1",
        "group": "board",
    }
    for operation in operations():
        if operation.method in ("POST", "PUT"):
            is_answered(operation, Request(path=path, body=json.dumps(document)))


@examples(200)
@given(
    text=st.text(alphabet=st.characters(codec=None), max_size=20),
    raw=st.text(max_size=40),
    encoded=st.booleans(),
)
def test_a_gateway_event_is_a_request_or_is_refused_by_field(text: str, raw: str, *, encoded: bool) -> None:
    event = gateway_event("POST", "/bodies") | {
        "body": text,
        "rawQueryString": raw,
        "isBase64Encoded": encoded,
    }
    found = outcome(lambda: gateway_requests.request_of(event, {}, 28.0))
    assert (
        found.field in {"body", "query"} if isinstance(found, InvalidInput) else isinstance(found.body, bytes)
    )


@examples(150)
@given(data=VALUES, meta=VALUES)
def test_any_json_comes_back_to_the_digit(data: Any, meta: Any) -> None:
    api = Api()
    sent = {"events": [{"type": "A", "data": data, "meta": meta}]}
    assert api.call("POST", "/streams/Cat-1/events", sent).status == 201
    (event,) = api.call("GET", "/streams/Cat-1/events").json["events"]
    assert json.dumps(event["data"]) == json.dumps(json.loads(json.dumps(data)))
    assert json.dumps(event["meta"]) == json.dumps(json.loads(json.dumps(meta)))


@examples(150)
@given(data=VALUES, snapshot=VALUES)
def test_any_json_of_an_aggregate_comes_back_to_the_digit(data: Any, snapshot: Any) -> None:
    api = Api()
    sent = {"events": [{"type": "A", "data": data}], "snapshot": snapshot}
    assert api.call("POST", "/aggregates/order/1/events", sent).status == 201
    (event,) = api.call("GET", "/aggregates/order/1/events").json["events"]
    found = api.call("GET", "/aggregates/order/1").json["snapshot"]
    assert json.dumps(event["data"]) == json.dumps(json.loads(json.dumps(data)))
    assert json.dumps(found) == json.dumps(json.loads(json.dumps(snapshot)))


@pytest.mark.slow
@examples(150)
@given(data=VALUES, state=VALUES)
def test_any_json_of_a_tagged_event_and_a_state_comes_back_to_the_digit(data: Any, state: Any) -> None:
    api = Api()
    sent = {"events": [{"type": "A", "data": data, "tags": ["a"]}]}
    assert api.call("POST", "/dcb/events", sent).status == 201
    (event,) = api.call("POST", "/dcb/query", {"query": {"items": [{"tags": ["a"]}]}}).json["events"]
    assert json.dumps(event["data"]) == json.dumps(json.loads(json.dumps(data)))
    assert api.call("PUT", "/projections/P/v", {"eventsProcessed": 0, "state": state}).status == 200
    found = api.call("GET", "/projections/P/v").json["state"]
    assert json.dumps(found) == json.dumps(json.loads(json.dumps(state)))


@examples(150)
@given(
    tags=st.lists(
        st.one_of(st.text(max_size=12), st.sampled_from(["a/b", "100%", "ä:ö", "~", "a;", ".", ".."])),
        max_size=3,
    )
)
def test_tags_are_kept_and_found_or_refused_by_their_place(tags: list[str]) -> None:
    api = Api()
    answer = api.call("POST", "/dcb/events", {"events": [{"type": "A", "data": 1, "tags": tags}]})
    wrong = [
        at
        for at, tag in enumerate(tags)
        if isinstance(outcome(partial(check_tag, tag)), InvalidInput) or tag in (".", "..")
    ]
    if wrong:
        assert (answer.status, answer.json["field"]) == (400, f"events[0].tags[{wrong[0]}]")
        return
    assert answer.status == 201
    for tag in tags:
        (event,) = api.call("POST", "/dcb/query", {"query": {"items": [{"tags": [tag]}]}}).json["events"]
        assert event["tags"] == sorted(set(tags))
        (found,) = api.call("GET", "/dcb/tags", query=f"tag={quote(tag, safe='')}").json["tags"]
        assert found == {"tag": tag, "events": 1}


@examples(150)
@given(data=st.binary(max_size=200))
def test_any_bytes_come_back_as_they_were(data: bytes) -> None:
    api = Api()
    sent = {"events": [{"type": "A", "data64": base64.b64encode(data).decode()}]}
    assert api.call("POST", "/streams/Cat-1/events", sent).status == 201
    answer = api.call("GET", "/streams/Cat-1/events")
    (event,) = answer.json["events"]
    if "data64" in event:
        assert base64.b64decode(event["data64"]) == data
    elif "data" in event:
        assert f'"data":{data.decode()}' in answer.text
    else:
        assert data == b""


@examples(300)
@given(name=st.one_of(st.text(max_size=12), st.from_regex(r"\A[A-Za-z0-9\-_.:~@+=]{1,20}\Z")))
def test_a_stream_name_is_served_or_refused_and_never_missed(name: str) -> None:
    """Only a slash, which makes another path of it, may lead elsewhere."""
    answer = Api().call("GET", f"/streams/{name}")
    if "/" in name:
        return
    found = outcome(lambda: stream_name(name))
    if isinstance(found, InvalidInput):
        assert (answer.status, answer.json["rule"]) == (400, found.rule)
    else:
        assert (answer.status, answer.problem) == (404, "stream-not-found")
