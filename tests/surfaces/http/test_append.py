"""`POST /streams/{stream}/events`: what is written, what is answered, and what stands in the way."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from random import Random

import pytest

from epochal.model.events import MAX_ID_BYTES
from epochal.plan.ops import Execute, Get, Op, Reply
from tests.support.api import Api, gateway_event


@pytest.fixture(params=["streams", "tips"])
def api(request: pytest.FixtureRequest) -> Api:
    return Api(store=request.param)


def events(api: Api, stream: str = "Cat-1") -> list[dict[str, object]]:
    shown: list[dict[str, object]] = api.call("GET", f"/streams/{stream}/events").json["events"]
    return shown


def test_an_append_answers_where_its_events_stand_and_what_it_cost(api: Api) -> None:
    api.append("Cat-1", "A", "B")
    answer = api.append("Cat-1", "C", "D", "E")
    assert answer.status == 201
    assert answer.json["stream"] == "Cat-1"
    assert (answer.json["first"], answer.json["version"]) == (2, 5)
    assert answer.json["replayed"] is False
    assert answer.json["capacity"] == {"read": 1.0, "write": 1.0}
    assert [event["type"] for event in events(api)] == ["A", "B", "C", "D", "E"]


def test_everything_that_an_event_was_sent_with_comes_back(api: Api) -> None:
    sent = {
        "type": "Moved",
        "data": {"to": "Zürich ✈", "none": None, "list": [1, {"a": []}]},
        "meta": {"by": "ops"},
        "timestamp": "2013-01-01T05:15:00.1234567-05:00",
        "correlationId": "c-1",
        "causationId": "e-7",
    }
    api.call("POST", "/streams/Cat-1/events", {"events": [sent]})
    normal = "2013-01-01T10:15:00.1234567+00:00"
    assert events(api) == [{**sent, "stream": "Cat-1", "index": 0, "timestamp": normal}]


ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"


def test_a_batch_of_ids_that_is_sent_again_is_answered_as_it_was_or_refused_where_none_are_kept(
    api: Api,
) -> None:
    sent = {"events": [{"type": "Moved", "id": ID.upper()}], "expected": "no_stream"}
    first, again = (api.call("POST", "/streams/Cat-1/events", sent) for _ in range(2))
    if api.store == "tips":
        assert (first.status, first.json["field"]) == (400, "events[0].id")
        return
    assert (first.status, again.status) == (201, 201)
    assert again.json == {**first.json, "replayed": True, "capacity": again.json["capacity"]}
    assert again.headers["ETag"] == first.headers["ETag"]
    (shown,) = events(api)
    assert (shown["id"], "tags" in shown) == (ID, False)


def test_a_part_of_an_append_is_answered_with_the_version_that_it_ends_at() -> None:
    api = Api()
    both = [{"type": "A", "id": ID}, {"type": "B", "id": ID[:-1] + "2"}]
    api.call("POST", "/streams/Cat-1/events", {"events": both})
    part = api.call("POST", "/streams/Cat-1/events", {"events": both[:1]})
    assert part.json["version"] == 1
    on_it = api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "C"}]}, headers={"If-Match": part.etag}
    )
    assert on_it.status == 412


@pytest.mark.parametrize(
    "number",
    ["1.10", "0.1", "-0.0", "1E+400", "123456789012345678901234567890", "3.141592653589793238462643"],
)
def test_a_number_comes_back_to_the_digit(api: Api, number: str) -> None:
    body = f'{{"events":[{{"type":"N","data":{{"n":{number}}}}}]}}'.encode()
    assert api.call("POST", "/streams/Cat-1/events", body).status == 201
    assert f'"data":{{"n":{number}}}' in api.call("GET", "/streams/Cat-1/events").text


@pytest.mark.parametrize("data", [None, False, 0, "", [], {}, "text", [None]])
def test_any_json_is_data_and_none_is_not_the_same_as_null(api: Api, data: object) -> None:
    api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "With", "data": data}, {"type": "Without"}]}
    )
    given, absent = events(api)
    assert given["data"] == data
    assert "data" not in absent


def test_bytes_that_are_not_json_come_back_as_they_were_sent(api: Api) -> None:
    content = base64.b64encode(bytes(range(256))).decode()
    api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "B", "data64": content, "meta64": content}]}
    )
    (event,) = events(api)
    assert (event["data64"], event["meta64"]) == (content, content)


def test_json_that_was_sent_as_bytes_is_shown_as_json_to_the_byte(api: Api) -> None:
    content = b'{ "a" : 1.50, "b": 2 }'
    api.call(
        "POST",
        "/streams/Cat-1/events",
        {"events": [{"type": "B", "data64": base64.b64encode(content).decode()}]},
    )
    assert f'"data":{content.decode()}' in api.call("GET", "/streams/Cat-1/events").text


def test_the_etag_of_an_append_makes_the_next_one_a_single_request() -> None:
    seen: list[Op] = []

    def noting(execute: Execute) -> Execute:
        def perform(op: Op) -> Reply:
            seen.append(op)
            return execute(op)

        return perform

    api = Api(around=noting)
    first = api.append("Cat-1", "A")
    seen.clear()
    second = api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "B"}]}, headers={"If-Match": first.etag}
    )
    assert second.status == 201
    assert len(seen) == 1
    assert not isinstance(seen[0], Get)
    assert second.etag != first.etag


def test_the_token_of_an_answer_is_its_etag_without_the_quotes(api: Api) -> None:
    made = api.append("Cat-1", "A")
    read = api.call("GET", "/streams/Cat-1")
    in_body = api.call("POST", "/streams/Cat-1/events", {"events": [{"type": "B"}], "expected": 7})
    in_header = api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "B"}]}, headers={"If-Match": '"7"'}
    )
    assert (in_body.status, in_header.status) == (409, 412)
    for answer in (made, read, in_body, in_header):
        assert f'"{answer.json["token"]}"' == answer.etag


def test_a_token_in_the_body_is_expected_like_the_etag_in_a_header(api: Api) -> None:
    token = api.append("Cat-1", "A").json["token"]
    sent = {"events": [{"type": "B"}], "expected": token}
    second = api.call("POST", "/streams/Cat-1/events", sent)
    assert (second.status, second.json["version"]) == (201, 2)
    assert second.json["capacity"] == {"read": 0.0, "write": 1.0}
    stale = api.call("POST", "/streams/Cat-1/events", sent)
    assert (stale.status, stale.json["version"], stale.json["token"]) == (409, 2, second.json["token"])


def test_a_token_in_the_body_notices_that_only_unfolds_were_replaced(api: Api) -> None:
    token = api.append("Cat-1", "A").json["token"]
    api.call("POST", "/streams/Cat-1/events", {"unfolds": [{"type": "S", "data": 1}]})
    stale = api.call("POST", "/streams/Cat-1/events", {"events": [{"type": "B"}], "expected": token})
    assert (stale.status, stale.problem) == (409, "version-conflict")


def test_a_stale_etag_is_412_with_the_version_and_the_etag_to_go_on_from(api: Api) -> None:
    stale = api.append("Cat-1", "A")
    current = api.append("Cat-1", "B")
    refused = api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "C"}]}, headers={"If-Match": stale.etag}
    )
    assert refused.status == 412
    assert refused.problem == "precondition-failed"
    assert refused.json["version"] == 2
    assert refused.etag == current.etag
    assert len(events(api)) == 2


def test_an_etag_also_notices_that_only_unfolds_were_replaced(api: Api) -> None:
    stale = api.append("Cat-1", "A")
    api.call("POST", "/streams/Cat-1/events", {"unfolds": [{"type": "S", "data": 1}], "expected": 1})
    refused = api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "B"}]}, headers={"If-Match": stale.etag}
    )
    assert refused.status == 412


@pytest.mark.parametrize(
    ("expected", "status"),
    [(2, 201), (1, 409), (3, 409), (0, 409), ("any", 201), ("stream_exists", 201), ("no_stream", 409)],
)
def test_expected_in_the_body_is_met_or_answered_with_409(api: Api, expected: object, status: int) -> None:
    current = api.append("Cat-1", "A", "B")
    answer = api.append("Cat-1", "C", expected=expected)
    assert answer.status == status
    if status == 409:
        assert answer.problem == "version-conflict"
        assert answer.json["version"] == 2
        assert answer.etag == current.etag
        assert len(events(api)) == 2


@pytest.mark.parametrize(
    ("expected", "status"), [(0, 201), (1, 409), ("any", 201), ("no_stream", 201), ("stream_exists", 409)]
)
def test_expected_of_a_stream_that_does_not_exist(api: Api, expected: object, status: int) -> None:
    answer = api.append("Cat-1", "A", expected=expected)
    assert answer.status == status
    if status == 409:
        assert answer.json["version"] == 0
        assert "ETag" not in answer.headers
        assert api.stored == []


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("If-Match", '"2"', 201),
        ("If-Match", '"1"', 412),
        ("If-Match", "*", 201),
        ("If-None-Match", "*", 412),
    ],
)
def test_headers_can_expect_a_version_any_stream_or_none(
    api: Api, header: str, value: str, status: int
) -> None:
    api.append("Cat-1", "A", "B")
    body = {"events": [{"type": "C"}]}
    assert api.call("POST", "/streams/Cat-1/events", body, headers={header: value}).status == status


@pytest.mark.parametrize(("header", "status"), [("If-Match", 412), ("If-None-Match", 201)])
def test_a_star_tells_a_stream_that_does_not_exist(api: Api, header: str, status: int) -> None:
    body = {"events": [{"type": "A"}]}
    assert api.call("POST", "/streams/Cat-1/events", body, headers={header: "*"}).status == status


@pytest.mark.parametrize("expected", ["any", "stream_exists", 1])
def test_a_repeated_idempotency_key_is_answered_like_the_first(api: Api, expected: object) -> None:
    api.append("Cat-1", "A")
    body = {"events": [{"type": "B", "data": 1}], "expected": expected}
    first = api.call("POST", "/streams/Cat-1/events", body, headers={"Idempotency-Key": "k-1"})
    api.append("Cat-1", "C")
    again = api.call("POST", "/streams/Cat-1/events", body, headers={"Idempotency-Key": "k-1"})
    assert (again.status, again.json["replayed"]) == (201, True)
    assert (again.json["first"], again.json["version"]) == (first.json["first"], first.json["version"])
    assert [event["type"] for event in events(api)] == ["A", "B", "C"]


def test_a_repeat_that_expects_the_reloaded_state_is_answered_like_the_first(api: Api) -> None:
    api.append("Cat-1", "A")
    body, key = {"events": [{"type": "B"}]}, {"Idempotency-Key": "k-1"}
    for number in range(3):
        etag = api.call("GET", "/streams/Cat-1").headers["ETag"]
        answer = api.call("POST", "/streams/Cat-1/events", body, headers={**key, "If-Match": etag})
        assert (answer.status, answer.json["replayed"], answer.json["first"]) == (201, number > 0, 1)
    assert [event["type"] for event in events(api)] == ["A", "B"]


def test_the_etag_of_a_replayed_append_does_not_replace_what_has_been_unfolded_since(api: Api) -> None:
    body, key = {"events": [{"type": "A"}]}, {"Idempotency-Key": "k-1"}
    api.call("POST", "/streams/Cat-1/events", body, headers=key)
    api.call("POST", "/streams/Cat-1/events", {"unfolds": [{"type": "S", "data": 1}]})
    etag = api.call("POST", "/streams/Cat-1/events", body, headers=key).headers["ETag"]
    blind = api.call(
        "POST", "/streams/Cat-1/events", {"unfolds": [{"type": "S", "data": 2}]}, headers={"If-Match": etag}
    )
    assert blind.status == 412
    assert [each["data"] for each in api.call("GET", "/streams/Cat-1").json["unfolds"]] == [1]


def test_unfolds_alone_under_a_key_are_not_written_again(api: Api) -> None:
    body, key = {"unfolds": [{"type": "S", "data": 1}]}, {"Idempotency-Key": "k-1"}
    api.call("POST", "/streams/Cat-1/events", body, headers=key)
    api.call("POST", "/streams/Cat-1/events", {"unfolds": [{"type": "S", "data": 2}]})
    assert api.call("POST", "/streams/Cat-1/events", body, headers=key).json["replayed"] is True
    other = {"unfolds": [{"type": "S", "data": 3}]}
    assert api.call("POST", "/streams/Cat-1/events", other, headers=key).status == 400
    assert [each["data"] for each in api.call("GET", "/streams/Cat-1").json["unfolds"]] == [2]


def test_an_idempotency_key_used_for_other_events_is_refused(api: Api) -> None:
    key = {"Idempotency-Key": "k-1"}
    api.call("POST", "/streams/Cat-1/events", {"events": [{"type": "A"}]}, headers=key)
    answer = api.call("POST", "/streams/Cat-1/events", {"events": [{"type": "B"}]}, headers=key)
    assert (answer.status, answer.json["field"]) == (400, "Idempotency-Key")
    assert answer.json["detail"] == "Idempotency-Key: was already used for an append with other contents"
    assert len(events(api)) == 1


def test_equal_appends_without_a_key_are_two_appends(api: Api) -> None:
    api.append("Cat-1", "A")
    assert api.append("Cat-1", "A").json["version"] == 2


def test_unfolds_replace_those_stored_and_stay_where_none_are_sent(api: Api) -> None:
    def unfolds() -> list[tuple[str, object, int]]:
        shown = api.call("GET", "/streams/Cat-1").json["unfolds"]
        return [(each["type"], each["data"], each["version"]) for each in shown]

    api.append("Cat-1", "A", unfolds=[{"type": "S", "data": 1}, {"type": "T", "data": 2}])
    api.append("Cat-1", "B")
    assert unfolds() == [("S", 1, 1), ("T", 2, 1)]
    assert api.call("POST", "/streams/Cat-1/events", {"unfolds": [{"type": "U", "data": 3}]}).status == 201
    assert unfolds() == [("U", 3, 2)]
    api.append("Cat-1", "C", unfolds=[])
    assert unfolds() == []


def test_a_deleted_stream_takes_no_more_events(api: Api) -> None:
    api.append("Cat-1", "A")
    api.call("DELETE", "/streams/Cat-1")
    before = api.stored
    answer = api.append("Cat-1", "B")
    assert (answer.status, answer.problem, answer.json["version"]) == (410, "stream-deleted", 1)
    assert api.stored == before


def test_a_body_in_the_bucket_is_claimed_and_one_that_is_not_there_is_refused(api: Api) -> None:
    content = b"x" * 1000
    digest = hashlib.sha256(content).hexdigest()
    claim = {"key": f"bodies/{digest}", "sha256": digest, "bytes": len(content)}
    body = {"events": [{"type": "Big", "claim": claim}]}
    refused = api.call("POST", "/streams/Cat-1/events", body)
    assert (refused.status, refused.problem) == (400, "invalid-input")
    assert api.stored == []
    api.bodies.objects[claim["key"]] = content  # type: ignore[index]
    assert api.call("POST", "/streams/Cat-1/events", body).status == 201
    (event,) = events(api)
    assert event["dataUrl"] == {
        "url": f"https://bucket.example/bodies/{digest}?expires=900",
        "expiresIn": 900,
        "sha256": digest,
        "bytes": 1000,
        "encoding": "identity",
    }


def test_ids_are_as_long_as_those_of_the_library(api: Api) -> None:
    ids = dict.fromkeys(("correlationId", "causationId"), "x" * MAX_ID_BYTES)
    assert api.call("POST", "/streams/Cat-1/events", {"events": [{"type": "T", **ids}]}).status == 201
    (event,) = events(api)
    assert {name: event[name] for name in ids} == ids


def test_events_that_do_not_fit_an_item_are_413_with_sizes_and_nothing_is_written(api: Api) -> None:
    dice = Random(1)
    ids = [
        {each: dice.randbytes(256).hex() for each in ("correlationId", "causationId")} for _ in range(1000)
    ]
    answer = api.call(
        "POST", "/streams/Cat-1/events", {"events": [{"type": "T" * 512, **each} for each in ids]}
    )
    assert (answer.status, answer.problem) == (413, "too-large")
    assert answer.json["size"] > answer.json["limit"]
    assert api.stored == []


@pytest.mark.parametrize(
    "spell", [str, str.upper, str.title], ids=["as API Gateway does", "upper case", "title case"]
)
def test_header_names_are_found_in_any_case(api: Api, spell: Callable[[str], str]) -> None:
    api.append("Cat-1", "A")
    event = gateway_event("POST", f"/{api.store}/Cat-1/events", b'{"events":[{"type":"B"}]}')
    event["headers"][spell("if-none-match")] = "*"
    assert api.send(event).status == 412
