"""Bad input to the routes of aggregates is refused with the field and the rule, and nothing is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochal.contrib.event_store_adapter.http.operations import MAX_EVENTS
from tests.support.api import Answer, Api

ALICE = "/aggregates/user-account/alice"
EVENT = {"type": "A", "data": 1}


@pytest.fixture
def api() -> Api:
    """A store that holds one aggregate, so that there is something to spoil."""
    api = Api()
    assert api.call("POST", f"{ALICE}/events", {"events": [EVENT], "snapshot": {}}).status == 201
    return api


def refused(api: Api, answer: Answer, field: str, status: int = 400) -> None:
    assert (answer.status, answer.json.get("field")) == (status, field), answer.text
    assert answer.json["detail"] == f"{field}: {answer.json['rule']}"
    assert len(api.stored) == 2
    assert {item["seq_nr"]["N"] for item in api.stored} == {"0", "1"}


OPERATIONS = (
    ("POST", "/events", {"events": [EVENT], "snapshot": {}}),
    ("GET", "", None),
    ("GET", "/events", None),
)

AGGREGATES = {
    "an unregistered type": ("invoice/1", "type"),
    "a type that begins a registered one": ("user/account-alice", "type"),
    "a type in other letters": ("Order/1", "type"),
    "no type": ("/1", "type"),
    "an empty value": ("order/", "id"),
    "a reserved character": ("order/$1", "id"),
    "a space": ("order/a b", "id"),
    "a letter beyond ASCII": ("order/ä", "id"),
    "a control character": ("order/a\n", "id"),
    "an id too long": (f"order/{'x' * 512}", "id"),
}


@pytest.mark.parametrize(("method", "rest", "body"), OPERATIONS, ids=["append", "read", "events"])
@pytest.mark.parametrize("name", AGGREGATES)
def test_a_malformed_aggregate_is_refused_by_every_operation(
    api: Api, name: str, method: str, rest: str, body: object
) -> None:
    path, field = AGGREGATES[name]
    refused(api, api.call(method, f"/aggregates/{path}{rest}", body), field)


@pytest.mark.parametrize(("method", "rest", "body"), OPERATIONS, ids=["append", "read", "events"])
def test_where_no_type_is_registered_every_operation_says_so(method: str, rest: str, body: object) -> None:
    api = Api(types=())
    answer = api.call(method, f"/aggregates/order/1{rest}", body)
    assert (answer.status, answer.json["rule"]) == (400, "no aggregate types are registered")
    assert api.stored == []


@pytest.mark.parametrize("length", [1, 506])
def test_the_shortest_and_the_longest_id_are_taken(api: Api, length: int) -> None:
    path = f"/aggregates/order/{'x' * length}/events"
    assert api.call("POST", path, {"events": [EVENT], "snapshot": {}}).status == 201


BODIES: dict[str, tuple[object, str]] = {
    "nothing": ({}, "events"),
    "no events": ({"events": []}, "events"),
    "a snapshot alone": ({"snapshot": {}}, "events"),
    "events that are null": ({"events": None}, "events"),
    "events that are an object": ({"events": EVENT}, "events"),
    "an event that is null": ({"events": [EVENT, None]}, "events[1]"),
    "no type": ({"events": [{"data": 1}]}, "events[0].type"),
    "an empty type": ({"events": [{**EVENT, "type": ""}]}, "events[0].type"),
    "a type that is a number": ({"events": [{**EVENT, "type": 1}]}, "events[0].type"),
    "no data": ({"events": [{"type": "A"}]}, "events[0].data"),
    "data with half a surrogate pair": ({"events": [{**EVENT, "data": "\ud800"}]}, "events[0].data"),
    "a snapshot with half a surrogate pair": ({"events": [EVENT], "snapshot": ["\udfff"]}, "snapshot"),
    "a time that is a number": ({"events": [{**EVENT, "occurredAt": 1}]}, "events[0].occurredAt"),
    "a time that is none": ({"events": [{**EVENT, "occurredAt": "now"}]}, "events[0].occurredAt"),
    "an unknown field": ({"events": [EVENT], "unfolds": []}, "unfolds"),
    "an unknown field of an event": ({"events": [{**EVENT, "seqNr": 2}]}, "events[0].seqNr"),
    "base64, which streams know": ({"events": [{"type": "A", "data64": ""}]}, "events[0].data64"),
    "an expected version that is negative": ({"events": [EVENT], "expected": -1}, "expected"),
    "an expected version that is text": ({"events": [EVENT], "expected": "1"}, "expected"),
    "an expected version that is true": ({"events": [EVENT], "expected": True}, "expected"),
    "an expected version that is null": ({"events": [EVENT], "expected": None}, "expected"),
    "a type too long": ({"events": [{**EVENT, "type": "x" * 513}]}, "events[0].type"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_malformed_append_is_refused_by_its_field(api: Api, name: str) -> None:
    body, field = BODIES[name]
    # By the standard library, which writes half a surrogate pair as it is.
    refused(api, api.call("POST", f"{ALICE}/events", json.dumps(body).encode()), field)


LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "an event": ({"events": [EVENT, {"type": "A", "data": "x" * 400_000}]}, "events[1].data"),
    "a snapshot": ({"events": [EVENT], "snapshot": "x" * 400_000}, "snapshot"),
    "events by number": ({"events": [EVENT] * (MAX_EVENTS + 1)}, "events"),
    "events by their sum": ({"events": [{"type": "A", "data": "x" * 300_000}] * 15}, "transaction"),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_is_413_with_sizes(api: Api, name: str) -> None:
    body, field = LARGE[name]
    answer = api.call("POST", f"{ALICE}/events", body)
    refused(api, answer, field, status=413)
    assert answer.json["size"] > answer.json["limit"]


def test_as_many_events_as_a_transaction_holds_are_taken(api: Api) -> None:
    assert api.call("POST", f"{ALICE}/events", {"events": [EVENT] * MAX_EVENTS}).status == 201


@pytest.mark.parametrize("expected", [None, "any", "no_stream", 0])
def test_a_first_event_without_a_snapshot_is_refused(api: Api, expected: object) -> None:
    body = {"events": [EVENT]} if expected is None else {"events": [EVENT], "expected": expected}
    refused(api, api.call("POST", "/aggregates/order/1/events", body), "snapshot")


@pytest.mark.parametrize("number", [0, 2, 9])
def test_a_number_that_does_not_join_is_refused_in_the_header_it_came_in(api: Api, number: int) -> None:
    headers = {"If-Match": f'"1.{number}"'}
    answer = api.call("POST", f"{ALICE}/events", {"events": [EVENT]}, headers=headers)
    refused(api, answer, "If-Match")
    assert "does not follow the last event, 1" in answer.json["rule"]


@pytest.mark.parametrize(
    "value",
    [
        "1.1",
        'W/"1.1"',
        '"1.1", "2.2"',
        '""',
        '"1."',
        '"01.1"',
        '"0.9"',
        '"1.-1"',
        '"1.1.1"',
        '"99999999999.1"',
        '"٣"',
    ],
)
def test_an_if_match_that_is_no_lock_is_refused(api: Api, value: str) -> None:
    refused(
        api, api.call("POST", f"{ALICE}/events", {"events": [EVENT]}, headers={"If-Match": value}), "If-Match"
    )


@pytest.mark.parametrize(
    ("headers", "body", "field"),
    [
        ({"If-Match": '"1.1"'}, {"expected": 1}, "expected"),
        ({"If-None-Match": "*"}, {"expected": 0}, "expected"),
        ({"If-Match": '"1.1"', "If-None-Match": "*"}, {}, "If-None-Match"),
        ({"If-None-Match": '"1.1"'}, {}, "If-None-Match"),
        ({"Idempotency-Key": "two words"}, {}, "Idempotency-Key"),
    ],
)
def test_an_expectation_stands_in_one_place(
    api: Api, headers: dict[str, str], body: dict[str, Any], field: str
) -> None:
    refused(api, api.call("POST", f"{ALICE}/events", {"events": [EVENT], **body}, headers=headers), field)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=0", "from"),
        ("from=-1", "from"),
        ("from=1.5", "from"),
        ("from=", "from"),
        ("from=1&from=2", "from"),
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("direction=backward", "direction"),
    ],
)
def test_a_malformed_query_is_refused_by_its_parameter(api: Api, query: str, field: str) -> None:
    refused(api, api.call("GET", f"{ALICE}/events", query=query), field)


def test_a_body_where_none_has_a_meaning_is_refused(api: Api) -> None:
    refused(api, api.call("GET", ALICE, {}), "body")
    refused(api, api.call("GET", f"{ALICE}/events", {}), "body")


def test_an_if_none_match_that_is_no_etag_is_refused(api: Api) -> None:
    refused(api, api.call("GET", ALICE, headers={"If-None-Match": "1.1"}), "If-None-Match")
