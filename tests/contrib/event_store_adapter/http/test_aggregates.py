"""The routes of aggregates: what is written, what is answered, and what stands in the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT
from epochal.plan.ops import Execute, Op, Put, Reply
from epochal.settings import RESPONSE_BYTES
from tests.support.api import Answer, Api, losing_one_answer

ALICE = "/aggregates/user-account/alice"


@pytest.fixture
def api() -> Api:
    return Api()


def append(api: Api, *types: str, headers: dict[str, str] | None = None, **body: Any) -> Answer:
    """Append events of these types to Alice, whose data is their position in the call."""
    events = [{"type": kind, "data": {"n": n}} for n, kind in enumerate(types)]
    return api.call("POST", f"{ALICE}/events", {"events": events, **body}, headers=headers)


def begun(api: Api) -> Answer:
    answer = append(api, "Created", snapshot={"name": "Alice"})
    assert answer.status == 201, answer.text
    return answer


def types(api: Api) -> list[str]:
    return [event["type"] for event in api.call("GET", f"{ALICE}/events").json["events"]]


def test_a_first_append_answers_where_its_events_stand_and_what_it_cost(api: Api) -> None:
    answer = append(api, "Created", "Renamed", snapshot={"name": "Alice"}, expected="no_stream")
    assert answer.status == 201
    assert answer.json == {
        "aggregate": "user-account-alice",
        "first": 1,
        "version": 1,
        "lastSeqNr": 2,
        "token": "1.2",
        "replayed": False,
        "capacity": {"read": 0, "write": answer.json["capacity"]["write"]},
    }
    assert answer.json["capacity"]["write"] > 0
    assert answer.etag == '"1.2"'


@pytest.mark.parametrize("expectation", ["its own", "reloaded", "any", "version"])
def test_a_repeated_key_is_answered_like_the_first_whatever_it_expects(api: Api, expectation: str) -> None:
    begun(api)
    first = append(api, "Renamed", headers={"Idempotency-Key": "k", "If-Match": '"1.1"'})
    append(api, "Moved")
    headers = {"its own": {"If-Match": '"1.1"'}, "reloaded": {"If-Match": api.call("GET", ALICE).etag}}
    body = {"version": {"expected": 1}}.get(expectation, {})
    again = append(api, "Renamed", headers={"Idempotency-Key": "k", **headers.get(expectation, {})}, **body)
    assert (first.json["replayed"], again.json["replayed"], again.status) == (False, True, 201)
    shown = ("first", "version", "lastSeqNr")
    assert [again.json[name] for name in shown] == [first.json[name] for name in shown]
    assert again.etag == first.etag
    assert types(api) == ["Created", "Renamed", "Moved"]


def test_a_key_used_for_other_contents_is_refused(api: Api) -> None:
    begun(api)
    append(api, "Renamed", headers={"Idempotency-Key": "k"})
    for answer in (
        append(api, "Moved", headers={"Idempotency-Key": "k"}),
        append(api, "Renamed", snapshot={}, headers={"Idempotency-Key": "k"}),
    ):
        assert (answer.status, answer.json["field"]) == (400, "Idempotency-Key")
    assert types(api) == ["Created", "Renamed"]


def test_an_aggregate_is_its_snapshot_and_the_events_after_it(api: Api) -> None:
    begun(api)
    append(api, "Renamed", "Moved", snapshot={"name": "Ann"})
    append(api, "Closed")
    answer = api.call("GET", ALICE)
    assert (answer.status, answer.etag, answer.headers["Cache-Control"]) == (200, '"3.4"', "no-cache")
    shown = answer.json
    (event,) = shown.pop("events")
    assert shown == {
        "aggregate": "user-account-alice",
        "version": 3,
        "lastSeqNr": 4,
        "token": "3.4",
        "snapshotSeqNr": 3,
        "snapshot": {"name": "Ann"},
        "next": None,
    }
    assert (event["seqNr"], event["type"], event["data"]) == (4, "Closed", {"n": 0})


def test_an_event_comes_back_as_it_was_sent(api: Api) -> None:
    sent = {
        "type": "Moved",
        "data": {"to": "Zürich ✈", "none": None},
        "occurredAt": "2013-01-01T05:15:00.1234567-05:00",
    }
    api.call("POST", f"{ALICE}/events", {"events": [sent], "snapshot": None})
    (found,) = api.call("GET", f"{ALICE}/events").json["events"]
    assert found == {**sent, "seqNr": 1, "occurredAt": "2013-01-01T10:15:00.1234567+00:00"}


@pytest.mark.parametrize("number", ["1.10", "-0.0", "1E+400", "123456789012345678901234567890"])
def test_a_number_comes_back_to_the_digit(api: Api, number: str) -> None:
    body = f'{{"events":[{{"type":"N","data":[{number}]}}],"snapshot":{{"n":{number}}}}}'.encode()
    assert api.call("POST", f"{ALICE}/events", body).status == 201
    assert f'"snapshot":{{"n":{number}}}' in api.call("GET", ALICE).text
    assert f'"data":[{number}]' in api.call("GET", f"{ALICE}/events").text


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_any_json_is_a_snapshot_and_null_is_not_an_absent_one(api: Api, value: object) -> None:
    assert append(api, "Created", snapshot=value).status == 201
    assert api.call("GET", ALICE).json["snapshot"] == value


@pytest.mark.parametrize("read", [False, True], ids=["of an append", "of a read"])
def test_an_etag_makes_the_next_append_one_request(*, read: bool) -> None:
    count = Counting()
    api = Api(around=count)
    appended = begun(api)
    etag = api.call("GET", ALICE).etag if read else appended.etag
    count.requests = 0
    assert append(api, "Renamed", headers={"If-Match": etag}).status == 201
    assert count.requests == 1


def test_a_read_is_two_requests_and_one_that_the_caller_has_already_is_one() -> None:
    count = Counting()
    api = Api(around=count)
    begun(api)
    append(api, "Renamed")
    count.requests = 0
    answer = api.call("GET", ALICE)
    assert count.requests == 2
    again = api.call("GET", ALICE, headers={"If-None-Match": answer.etag})
    assert (again.status, again.text, again.etag) == (304, "", answer.etag)
    assert count.requests == 3
    append(api, "Moved")
    assert api.call("GET", ALICE, headers={"If-None-Match": answer.etag}).status == 200


@pytest.mark.parametrize(
    ("expected", "status"),
    [("any", 201), ("stream_exists", 201), ("no_stream", 409), (1, 201), (0, 409), (2, 409)],
)
def test_what_the_body_expects_fails_with_409_and_the_version(
    api: Api, expected: object, status: int
) -> None:
    begun(api)
    before = api.stored
    answer = append(api, "Renamed", snapshot={}, expected=expected)
    assert answer.status == status
    if status == 409:
        assert answer.problem == "version-conflict"
        assert (answer.json["aggregate"], answer.json["version"]) == ("user-account-alice", 1)
        assert answer.etag == '"1.1"'
        assert api.stored == before


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("If-Match", '"1.1"', 201),
        ("If-Match", '"1"', 201),
        ("If-Match", '"2.2"', 412),
        ("If-Match", '"0"', 412),
        ("If-Match", "*", 201),
        ("If-None-Match", "*", 412),
    ],
)
def test_what_a_header_expects_fails_with_412(api: Api, header: str, value: str, status: int) -> None:
    begun(api)
    before = api.stored
    answer = append(api, "Renamed", snapshot={}, headers={header: value})
    assert answer.status == status
    if status == 412:
        assert answer.problem == "precondition-failed"
        assert answer.etag == '"1.1"', "with which the next append is one request"
        assert api.stored == before


@pytest.mark.parametrize(("header", "status"), [("If-Match", 412), ("If-None-Match", 201)])
def test_a_star_tells_an_aggregate_that_does_not_exist(api: Api, header: str, status: int) -> None:
    assert append(api, "Created", snapshot={}, headers={header: "*"}).status == status


def test_the_token_of_an_answer_is_its_etag_and_is_what_the_next_append_expects(api: Api) -> None:
    first = begun(api)
    assert f'"{first.json["token"]}"' == first.etag
    second = append(api, "Renamed", expected=first.json["token"])
    assert (second.status, f'"{second.json["token"]}"') == (201, second.etag)
    assert api.call("GET", ALICE).json["token"] == second.json["token"]
    stale = append(api, "Moved", expected=first.json["token"])
    assert (stale.status, stale.problem) == (409, "version-conflict")
    bad = append(api, "Moved", expected="1.")
    assert (bad.status, bad.json["field"]) == (400, "expected")


def test_of_two_writers_with_one_etag_one_is_refused(api: Api) -> None:
    etag = begun(api).etag
    assert append(api, "Renamed", headers={"If-Match": etag}).status == 201
    assert append(api, "Moved", headers={"If-Match": etag}).status == 412
    assert types(api) == ["Created", "Renamed"]


def test_an_append_whose_response_was_lost_is_made_once() -> None:
    lost: list[Op] = []
    api = Api(around=losing_one_answer(lost))
    assert begun(api).json["lastSeqNr"] == 1
    assert lost
    assert types(api) == ["Created"]


@pytest.mark.slow
def test_pages_join_without_a_gap_whatever_their_limit(api: Api) -> None:
    begun(api)
    for _ in range(3):
        append(api, *["E"] * 80)
    for limit in (1000, 241, 100, 7):
        found, start = [], 1
        while start is not None:
            answer = api.call("GET", f"{ALICE}/events", query=f"from={start}&limit={limit}")
            page = answer.json
            assert 0 < len(page["events"]) <= limit
            assert (page["version"], page["lastSeqNr"]) == (4, 241)
            found += page["events"]
            start = page["next"]
        assert [event["seqNr"] for event in found] == list(range(1, 242))


def test_a_page_beyond_the_last_event_is_empty(api: Api) -> None:
    begun(api)
    page = api.call("GET", f"{ALICE}/events", query="from=2").json
    assert (page["events"], page["next"]) == ([], None)


@pytest.mark.slow
def test_a_page_and_an_aggregate_end_at_four_megabytes_and_say_where(api: Api) -> None:
    begun(api)
    large = {"events": [{"type": "Large", "data": "x" * 300_000}]}
    for _ in range(20):
        assert api.call("POST", f"{ALICE}/events", large).status == 201
    whole, page = api.call("GET", ALICE), api.call("GET", f"{ALICE}/events")
    for answer, first in ((whole, 2), (page, 1)):
        numbers = [event["seqNr"] for event in answer.json["events"]]
        assert len(json.dumps(answer.text)) < RESPONSE_BYTES + 10_000
        assert numbers == list(range(first, answer.json["next"]))
    rest = api.call("GET", f"{ALICE}/events", query=f"from={whole.json['next']}").json
    assert [event["seqNr"] for event in rest["events"]] == list(range(whole.json["next"], 22))
    assert rest["next"] is None


@pytest.mark.slow
def test_quotes_count_twice_where_an_answer_is_measured(api: Api) -> None:
    begun(api)
    for _ in range(16):
        api.call("POST", f"{ALICE}/events", {"events": [{"type": "Q", "data": '"' * 150_000}]})
    answer = api.call("GET", f"{ALICE}/events")
    assert answer.json["next"] is not None
    assert len(json.dumps(answer.text)) < RESPONSE_BYTES + 10_000


@pytest.mark.parametrize("path", [ALICE, f"{ALICE}/events"])
def test_an_aggregate_that_does_not_exist_is_404(api: Api, path: str) -> None:
    answer = api.call("GET", path)
    assert (answer.status, answer.problem) == (404, "aggregate-not-found")
    assert answer.json["aggregate"] == "user-account-alice"


def test_what_another_library_wrote_is_read_and_appended_to(api: Api) -> None:
    """It raises the version, knows none of our attributes, and stores a number for the time."""
    begun(api)
    _write_as_another_library(api)
    answer = api.call("GET", ALICE)
    assert (answer.json["snapshot"], answer.json["snapshotSeqNr"]) == ({"seq_nr": 2}, 2)
    assert answer.etag == '"2.2"'
    page = api.call("GET", f"{ALICE}/events").json
    assert page["events"][1] == {"seqNr": 2, "type": "Foreign", "occurredAt": "123", "data": {"by": "js"}}
    assert append(api, "Renamed", headers={"If-Match": answer.etag}).etag == '"3.3"'
    assert types(api) == ["Created", "Foreign", "Renamed"]


class Counting:
    """Counts the requests that reach the tables."""

    def __init__(self) -> None:
        self.requests = 0

    def __call__(self, execute: Execute) -> Execute:
        def counted(op: Op) -> Reply:
            self.requests += 1
            return execute(op)

        return counted


def _write_as_another_library(api: Api) -> None:
    store = api.aggregates
    keys = store.site.keys
    alice = aggregate_id("user-account", "alice")
    (head,) = api.tables.items(SNAPSHOT.kind)
    payload = {"type": "user-account", "data": {"seq_nr": 2}}
    foreign = {**head, "version": {"N": "2"}, "payload": {"B": json.dumps(payload).encode()}}
    event = {
        **keys.key(alice, 2),
        "aid": {"S": str(alice)},
        "seq_nr": {"N": "2"},
        "payload": {"B": json.dumps({"type": "Foreign", "data": {"by": "js"}}).encode()},
        "occurred_at": {"N": "123"},
    }
    api.tables.execute(Put(table=SNAPSHOT.kind, item=foreign))
    api.tables.execute(Put(table=JOURNAL.kind, item=event))


def test_a_byte_order_mark_before_a_request_is_refused(api: Api) -> None:
    body = {"events": [{"type": "Created", "data": {"n": 1}}], "snapshot": {"name": "Alice"}}
    answer = api.call("POST", f"{ALICE}/events", b"\xef\xbb\xbf" + json.dumps(body).encode())
    assert answer.status == 400
    assert "must be JSON without a byte order mark before it" in answer.text
    assert list(api.tables.items(JOURNAL.kind)) == []
