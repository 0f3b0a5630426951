"""The most that the API takes, on DynamoDB itself: the longest names, and numbers, texts and depths at their ends.

Tables in memory have no limits on keys or numbers; what passes the API's own rules must not meet one later. Each
request is taken, or refused as input: no failure, and what was taken is read back as it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from epochal.dynamo.interpreter import interpreter
from epochal.layout.tables import store_tables
from epochal.model.position_text import MAX_COUNT, write_position
from epochal.model.positions import Position, Reached
from epochal.model.tokens import MAX_VERSION
from epochal.plan.ops import Execute, Op, Reply, Transact
from tests.doors.test_forgery import place
from tests.support.api import Api
from tests.support.tables import Tables

pytestmark = pytest.mark.ddbl

STREAM: Final = ("s" * 500 + "-@+=:._~").ljust(512, "x")
WIDE: Final = "\U0001f680" * 128
"""512 bytes of UTF-8, in characters that are two units of UTF-16."""

TEXTS: Final = (
    "\x00",
    "\u2028",
    "\ufeff",
    "\U0010ffff",
    "a\u0301",
    "'; DROP",
    "${x}",
    "#n",
    ":v",
    "</script>",
    "\\u0000",
)
NESTED: Final[Any] = json.loads("[" * 90 + "]" * 90)


@pytest.fixture
def api(ddbl_tables: Tables) -> Api:
    names = {spec.kind: ddbl_tables.create(spec) for spec in store_tables()}
    execute = interpreter(ddbl_tables.client)

    def renamed(op: Any) -> Any:
        if isinstance(op, Transact):
            return replace(op, writes=tuple(map(renamed, op.writes)))
        return replace(op, table=names[op.table])

    def on_dynamodb(_: Execute) -> Execute:
        def perform(op: Op) -> Reply:
            return execute(renamed(op))

        return perform

    return Api(type_heads=True, around=on_dynamodb)


def test_streams_with_the_longest_name_take_the_oddest_events(api: Api) -> None:
    events = [
        {
            "type": text * (512 // len(text.encode())),
            "data": {text: [text, NESTED, 1.50, -0.0, 10**300, True, None]},
            "meta": text,
            "correlationId": text,
            "causationId": text * (512 // len(text.encode())),
            "timestamp": "9999-12-31T23:59:59.9999999Z",
        }
        for text in TEXTS
    ]
    unfolds = [{key: event[key] for key in ("type", "data", "meta")} for event in events]
    sent = api.call(
        "POST", f"/streams/{STREAM}/events", {"events": events, "unfolds": unfolds, "expected": 0}
    )
    assert sent.status == 201, sent.text
    found = api.call("GET", f"/streams/{STREAM}/events").json["events"]
    assert [[event["type"], event["data"], event["correlationId"]] for event in found] == [
        [event["type"], event["data"], event["correlationId"]] for event in events
    ]
    assert api.call("GET", f"/streams/{STREAM}").json["unfolds"][0]["data"] == events[0]["data"]


def test_aggregates_with_the_longest_id_take_the_oddest_events(api: Api) -> None:
    path = f"/aggregates/order/{'9' * 506}"
    events = [{"type": text, "data": text} for text in TEXTS]
    assert api.call("POST", f"{path}/events", {"events": events, "snapshot": TEXTS}).status == 201
    found = api.call("GET", f"{path}/events").json["events"]
    assert [(event["type"], event["data"]) for event in found] == [(text, text) for text in TEXTS]
    assert api.call("GET", path).json["snapshot"] == list(TEXTS)


def test_tagged_events_take_as_many_of_the_longest_tags_as_a_transaction_holds(api: Api) -> None:
    tags = [f"{n:02}:{'t' * 509}" for n in range(40)] + [WIDE]
    event = {
        "type": WIDE,
        "data": {"deep": NESTED, "n": 10**300},
        "tags": tags,
        "executedUser": "\x00",
        "expires": 10**11,
    }
    sent = api.call("POST", "/dcb/events", {"events": [event]})
    assert sent.status == 201, sent.text
    (shown,) = api.call("POST", "/dcb/query", {"query": {"items": [{"tags": tags, "types": [WIDE]}]}}).json[
        "events"
    ]
    assert (shown["type"], shown["data"], shown["tags"]) == (event["type"], event["data"], sorted(tags))
    assert api.call("GET", f"/dcb/tags/{tags[0]}").json["events"] == 1
    assert api.call("GET", "/dcb/tags", query="group=00").json["tags"] == [{"tag": tags[0], "events": 1}]


def test_states_with_the_longest_names_and_numbers_come_back(api: Api) -> None:
    path = f"/projections/{WIDE}/{'v' * 512}"
    state = {"eventsProcessed": 2**53 - 1, "lastSortableId": "9" * 30, "safeWindow": WIDE, "state": TEXTS}
    assert api.call("PUT", path, state).status == 200
    assert api.call("GET", path).json["state"] == list(TEXTS)
    listed = api.call("GET", f"/projections/{WIDE}", query=f"from={'v' * 511}").json["versions"]
    assert [each["eventsProcessed"] for each in listed] == [2**53 - 1]
    assert api.call("DELETE", path).status == 200


def forged(count: int, last: str) -> str:
    return write_position(Position(seen={"order:1": Reached(count, last)}))


def asked() -> Iterator[tuple[str, str, Any, str, dict[str, str]]]:
    """Requests whose numbers and places are at their ends: method, path, body, query, headers."""
    event = {"type": "A", "data": 1, "tags": ["order:1"]}
    query = {"items": [{"tags": ["order:1"]}]}
    etag = f"{MAX_VERSION}.{'f' * 32}." + ".".join(["9999999"] * 5)
    events = {"events": [{"type": "A"}]}
    for position in (forged(MAX_COUNT, "9" * 30), forged(1, "0" * 30)):
        yield "POST", "/dcb/query", {"query": query, "after": position}, "", {}
        yield "POST", "/dcb/query", {"query": query, "from": f"{forged(0, '')}.{position}"}, "", {}
        yield "POST", "/dcb/events", {"events": [event], "failIf": query, "after": position}, "", {}
    for parts, part, beyond in ((1, 0, "x" * 512), (1024, 1023, ""), (1, 0, "order:1")):
        written = json.dumps([parts, part, beyond], ensure_ascii=False).encode()
        yield "GET", "/dcb/tags", None, f"from={place(written)}", {}
    yield "POST", "/streams/S-1/events", events, "", {"If-Match": f'"{etag}"'}
    yield "POST", "/streams/S-1/events", {**events, "expected": MAX_VERSION}, "", {}
    yield "POST", "/streams/S-1/prune", {"before": MAX_VERSION}, "", {}
    yield "DELETE", "/streams/S-1", None, "", {"If-Match": f'"{etag}"'}
    yield "GET", "/streams/S-1/events", None, f"from={MAX_VERSION}", {}
    yield "GET", "/streams/S-1/events", None, f"from={MAX_VERSION}&direction=backward", {}
    yield "GET", "/aggregates/order/1/events", None, f"from={MAX_VERSION}", {}
    yield (
        "POST",
        "/aggregates/order/1/events",
        events | {"events": [{"type": "A", "data": 1}]},
        "",
        {"If-Match": f'"{MAX_VERSION}.{MAX_VERSION}"'},
    )
    yield "GET", "/feed/0", None, f"from={2**63 - 1}", {}
    yield "GET", "/feed/999999999", None, "", {}
    yield "GET", "/dcb/events/ffffffff-ffff-ffff-ffff-ffffffffffff", None, "", {}


def test_numbers_and_places_at_their_ends_are_no_failure(api: Api) -> None:
    written: list[Callable[[], Any]] = [
        lambda: api.append("S-1", "A", "B"),
        lambda: api.call("POST", "/dcb/events", {"events": [{"type": "A", "data": 1, "tags": ["order:1"]}]}),
        lambda: api.call(
            "POST", "/aggregates/order/1/events", {"events": [{"type": "A", "data": 1}], "snapshot": 1}
        ),
    ]
    assert [write().status for write in written] == [201, 201, 201]
    for method, path, body, query, headers in asked():
        answer = api.call(method, path, body, query=query, headers=headers)
        assert answer.status < 500, (method, path, answer.text)
