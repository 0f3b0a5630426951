"""The routes of projection states: what is kept, in which form it is shown, and what is refused."""

from __future__ import annotations

import base64
import gzip
import json
import os
from typing import Any

import pytest

from epochal.contrib.sekiban.http.operations import MAX_STATE_BYTES, MOST_SHOWN
from epochal.contrib.sekiban.items import PROJECTION_STATES
from epochal.plan.ops import Set, Update
from epochal.plan.values import number, text
from tests.support.api import Answer, Api

LAST = "063934128000000000000000000001"
V1 = "/projections/Totals/v1"


@pytest.fixture
def api() -> Api:
    return Api()


def put(api: Api, processed: int = 1, path: str = V1, **body: Any) -> Answer:
    sent = {"eventsProcessed": processed, "lastSortableId": LAST, **(body or {"state": {"n": 1}})}
    return api.call("PUT", path, sent)


def save(api: Api, state: bytes, processed: int = 1) -> None:
    """Past the API, as the library does."""
    api.states.save("Totals", "v1", [state], events_processed=processed, last_sortable_id=LAST)


def spoil(api: Api, name: str, value: Any) -> None:
    key = {"pk": text("PROJECTOR#Totals"), "sk": text("VERSION#v1")}
    api.tables.execute(Update(table=PROJECTION_STATES.kind, key=key, sets=(Set(name, value),)))


def test_a_state_comes_back_with_what_is_known_of_it(api: Api) -> None:
    assert put(api, 7, safeWindow="20s", state={"n": [7, None]}).status == 200
    found = api.call("GET", V1)
    assert found.json == {
        "name": "Totals",
        "version": "v1",
        "eventsProcessed": 7,
        "lastSortableId": LAST,
        "safeWindow": "20s",
        "bytes": 14,
        "compressedBytes": found.json["compressedBytes"],
        "state": {"n": [7, None]},
    }


@pytest.mark.parametrize("number", ["1.10", "-0.0", "1E+400", "123456789012345678901234567890"])
def test_a_number_comes_back_to_the_digit(api: Api, number: str) -> None:
    body = f'{{"eventsProcessed":0,"state":[{number}]}}'.encode()
    assert api.call("PUT", V1, body).status == 200
    assert f'"state":[{number}]' in api.call("GET", V1).text


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_any_json_is_a_state_and_null_is_one(api: Api, value: object) -> None:
    assert put(api, state=value).status == 200
    assert api.call("GET", V1).json["state"] == value


@pytest.mark.parametrize("state", [b"", b"\x00\xff", b"{not json", os.urandom(500_000)])
def test_any_bytes_are_a_state(api: Api, state: bytes) -> None:
    assert put(api, state64=base64.b64encode(state).decode()).status == 200
    assert base64.b64decode(api.call("GET", V1).json["state64"]) == state


def test_before_any_event_there_is_no_last_one(api: Api) -> None:
    assert api.call("PUT", V1, {"eventsProcessed": 0, "state": 1}).status == 200
    assert api.call("GET", V1).json["lastSortableId"] is None


def test_the_state_that_has_come_further_wins(api: Api) -> None:
    assert put(api, 5).status == 200
    before = api.stored
    answer = put(api, 4, state="older")
    assert (answer.status, answer.problem, answer.json["eventsProcessed"]) == (409, "projection-behind", 5)
    assert (answer.json["name"], answer.json["version"]) == ("Totals", "v1")
    assert api.stored == before
    assert put(api, 5, state="as far").status == 200
    assert put(api, 6).status == 200


def test_an_etag_names_the_exact_state(api: Api) -> None:
    put(api, 1)
    etag = api.call("GET", V1).etag
    again = api.call("GET", V1, headers={"If-None-Match": etag})
    assert (again.status, again.text, again.etag) == (304, "", etag)
    put(api, 1, state="other, as far")
    assert api.call("GET", V1, headers={"If-None-Match": etag}).status == 200


def test_versions_are_listed_without_their_states_page_by_page(api: Api) -> None:
    for version in ("v1", "v10", "v2", "w"):
        put(api, path=f"/projections/Totals/{version}")
    put(api, path="/projections/Total/v0")
    for limit in (1, 2, 3, 4, 100):
        found: list[Any] = []
        query = f"limit={limit}"
        while True:
            page = api.call("GET", "/projections/Totals", query=query).json
            assert len(page["versions"]) <= limit
            found += page["versions"]
            if page["next"] is None:
                break
            query = f"limit={limit}&from={page['next']}"
        assert [each["version"] for each in found] == ["v1", "v10", "v2", "w"]
        assert not any("state" in each for each in found)
    assert api.call("GET", "/projections/Nothing").json == {"name": "Nothing", "versions": [], "next": None}


def test_a_deleted_state_is_gone_and_deleting_it_again_succeeds(api: Api) -> None:
    put(api)
    for _ in range(2):
        answer = api.call("DELETE", V1)
        assert (answer.status, answer.json) == (200, {"name": "Totals", "version": "v1"})
        assert (api.call("GET", V1).status, api.call("GET", V1).problem) == (404, "projection-not-found")


def test_a_large_state_that_an_answer_holds_is_shown_from_the_bucket(api: Api) -> None:
    state = os.urandom(2_000_000)
    save(api, state)
    assert len(api.objects.contents) == 1
    assert base64.b64decode(api.call("GET", V1).json["state64"]) == state


def test_a_state_that_no_answer_holds_is_a_link_to_its_object(api: Api) -> None:
    save(api, os.urandom(MOST_SHOWN + 1))
    (key,) = api.objects.contents
    found = api.call("GET", V1).json
    assert found["stateUrl"] == {
        "url": f"https://bucket.example/{key}?expires=900",
        "expiresIn": 900,
        "bytes": len(api.objects.contents[key]),
        "encoding": "gzip",
    }
    assert found["bytes"] == MOST_SHOWN + 1


def test_a_state_that_no_answer_holds_and_its_item_does_is_shown_compressed(api: Api) -> None:
    state = b'{"n":1}' * 1_000_000
    save(api, state)
    found = api.call("GET", V1).json
    assert gzip.decompress(base64.b64decode(found["stateGzip64"])) == state


def test_a_state_larger_than_its_item_says_does_not_burst_the_answer(api: Api) -> None:
    save(api, b"0" * 20_000_000)
    spoil(api, "originalSizeBytes", number(5))
    assert "stateGzip64" in api.call("GET", V1).json


def test_quotes_that_would_burst_an_answer_make_it_base64(api: Api) -> None:
    state = json.dumps(["\n" * 700_000] * 2).encode()
    save(api, state)
    answer = api.call("GET", V1)
    assert base64.b64decode(answer.json["state64"]) == state
    assert len(json.dumps(answer.text)) < 5_000_000


@pytest.mark.parametrize("size", [500_000, MOST_SHOWN + 1])
def test_an_object_that_is_gone_is_a_named_error(api: Api, size: int) -> None:
    save(api, os.urandom(size))
    api.objects.contents.clear()
    answer = api.call("GET", V1)
    assert (answer.status, answer.problem) == (500, "missing-body")


@pytest.mark.parametrize("stored", ["!", "AAAA", "H4sIAAAA"])
def test_a_state_that_does_not_decompress_is_a_named_error(api: Api, stored: str) -> None:
    put(api)
    spoil(api, "stateData", text(stored))
    answer = api.call("GET", V1)
    assert (answer.status, answer.problem) == (500, "corrupt-data")


def refused(api: Api, answer: Answer, field: str, status: int = 400) -> None:
    assert (answer.status, answer.json.get("field")) == (status, field), answer.text
    assert answer.json["detail"].startswith(f"{field}: {answer.json['rule']}")
    assert api.stored == []
    assert api.objects.contents == {}


BODIES: dict[str, tuple[object, str]] = {
    "nothing": ({}, "eventsProcessed"),
    "an array": ([], "body"),
    "no state": ({"eventsProcessed": 0}, "state"),
    "two states": ({"eventsProcessed": 0, "state": 1, "state64": ""}, "state64"),
    "a negative count": ({"eventsProcessed": -1, "state": 1}, "eventsProcessed"),
    "a count that is text": ({"eventsProcessed": "1", "state": 1}, "eventsProcessed"),
    "a count that is true": ({"eventsProcessed": True, "state": 1}, "eventsProcessed"),
    "a count no one counts to": ({"eventsProcessed": 2**53, "state": 1}, "eventsProcessed"),
    "no last event": ({"eventsProcessed": 1, "state": 1}, "lastSortableId"),
    "a last event that is a time": (
        {"eventsProcessed": 1, "lastSortableId": "2026-01-01", "state": 1},
        "lastSortableId",
    ),
    "a last event that is null": (
        {"eventsProcessed": 0, "lastSortableId": None, "state": 1},
        "lastSortableId",
    ),
    "base64 that is none": ({"eventsProcessed": 0, "state64": "?"}, "state64"),
    "half a surrogate pair": ({"eventsProcessed": 0, "state": "\ud800"}, "state"),
    "an empty window": ({"eventsProcessed": 0, "state": 1, "safeWindow": ""}, "safeWindow"),
    "an unknown field": ({"eventsProcessed": 0, "state": 1, "data": 1}, "data"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_malformed_state_is_refused_by_its_field(api: Api, name: str) -> None:
    body, field = BODIES[name]
    refused(api, api.call("PUT", V1, json.dumps(body).encode()), field)


@pytest.mark.slow
def test_a_state_too_large_for_a_request_is_refused_with_who_can_write_it(api: Api) -> None:
    for body in (
        {"state64": base64.b64encode(bytes(MAX_STATE_BYTES + 1)).decode()},
        {"state": "x" * MAX_STATE_BYTES},
    ):
        answer = put(api, **body)
        refused(api, answer, next(iter(body)), status=413)
        assert answer.json["size"] > answer.json["limit"] == MAX_STATE_BYTES
        assert "epochal projections put" in answer.json["detail"]
    assert put(api, state64=base64.b64encode(bytes(MAX_STATE_BYTES)).decode()).status == 200


PATHS = [
    ("/", "name"),
    ("a\n/v", "name"),
    (f"{'x' * 513}/v", "name"),
    ("a/", "version"),
    ("a/v\x7f", "version"),
]


@pytest.mark.parametrize(("path", "field"), PATHS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_malformed_name_is_refused_by_every_operation(api: Api, method: str, path: str, field: str) -> None:
    path = f"/projections/{path}" if path != "/" else "/projections//v"
    refused(api, api.call(method, path, {} if method == "PUT" else None), field)


@pytest.mark.parametrize(
    ("query", "field"),
    [("limit=0", "limit"), ("limit=101", "limit"), ("from=", "from"), ("from=a/b", "from")],
)
def test_a_malformed_listing_is_refused_by_its_parameter(api: Api, query: str, field: str) -> None:
    refused(api, api.call("GET", "/projections/Totals", query=query), field)


def test_parameters_and_bodies_where_none_have_a_meaning_are_refused(api: Api) -> None:
    refused(api, api.call("GET", V1, {}), "body")
    refused(api, api.call("DELETE", V1, {}), "body")
    refused(api, api.call("GET", "/projections/Totals", {}), "body")
    refused(api, api.call("GET", V1, query="version=v1"), "version")
    refused(api, api.call("PUT", V1, {"eventsProcessed": 0, "state": 1}, query="force=true"), "force")
