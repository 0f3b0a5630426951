"""`POST /appends`: several appends of one request, each made and answered as if it had come by itself."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Op, Put, Reply
from tests.support.api import Answer, Api

A, B, C = "Seat-1", "Seat-2", "Seat-3"
ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"


@pytest.fixture
def api() -> Api:
    return Api()


def post(api: Api, *appends: Any, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.call("POST", "/appends", {"appends": appends}, headers=sent)


def to(stream: str, *types: str, **more: Any) -> dict[str, Any]:
    return {"stream": stream, "events": [{"type": each} for each in types or ("Taken",)], **more}


def types(api: Api, stream: str) -> list[str]:
    answer = api.call("GET", f"/streams/{stream}/events")
    return [each["type"] for each in answer.json["events"]] if answer.status == 200 else []


def statuses(answer: Answer) -> list[int]:
    assert answer.status == 200, answer.json
    return [each["status"] for each in answer.json["results"]]


def test_what_is_refused_keeps_nobody_else_and_each_is_answered_in_its_place(api: Api) -> None:
    api.append(B, "Taken")
    answer = post(api, to(A, expected="no_stream"), to(B, expected="no_stream"), to(C, "Held", "Taken"))
    assert statuses(answer) == [201, 409, 201]
    made, refused, other = answer.json["results"]
    assert made == {
        "stream": A,
        "status": 201,
        "first": 0,
        "version": 1,
        "token": made["token"],
        "replayed": False,
    }
    assert (refused["type"], refused["detail"]) == (
        "urn:epochal:problem:version-conflict",
        f"{B} is at version 1",
    )
    assert (refused["stream"], refused["version"]) == (B, 1)
    assert (other["first"], other["version"]) == (0, 2)
    assert [types(api, each) for each in (A, B, C)] == [["Taken"], ["Taken"], ["Held", "Taken"]]
    assert answer.json["capacity"]["write"] == 3.0, "a refusal costs a unit, too, and no transaction is made"


def test_those_to_one_stream_are_one_write_and_each_has_its_own_answer(api: Api) -> None:
    answer = post(api, to(A, "One"), to(A, "Two", expected="no_stream"), to(A, "Three", "Four", expected=1))
    assert statuses(answer) == [201, 409, 201]
    assert [(each.get("first"), each["version"]) for each in answer.json["results"]] == [
        (0, 1),
        (None, 1),
        (1, 3),
    ]
    assert answer.json["capacity"] == {"read": 1.0, "write": 1.0}
    assert types(api, A) == ["One", "Three", "Four"]


def test_a_condition_is_each_ones_own_and_brings_what_is_in_the_way(api: Api) -> None:
    post(api, {"stream": B, "events": [{"type": "Taken", "data": 7, "tags": ["seat:2"]}]})
    tagged = {"stream": A, "events": [{"type": "Held", "tags": ["seat:1"]}]}
    answer = post(
        api,
        {**tagged, "failIf": {"items": [{"tags": ["seat:2"]}]}},
        {**tagged, "failIf": {"items": [{"tags": ["seat:1"]}]}},
        to(C),
    )
    assert statuses(answer) == [409, 201, 201]
    refused, made, _ = answer.json["results"]
    assert refused["type"] == "urn:epochal:problem:condition-failed"
    assert [(each["data"], each["tags"]) for each in refused["events"]] == [(7, ["seat:2"])]
    again = {"failIf": {"items": [{"tags": ["seat:2"]}]}, "after": refused["position"]}
    also = {"failIf": {"items": [{"tags": ["seat:1"]}]}, "after": made["position"]}
    assert statuses(post(api, {**tagged, **again}, {**tagged, **also})) == [201, 409]
    both = [{**tagged, "failIf": {"items": [{"tags": ["seat:9"]}]}}] * 101
    assert post(api, *both).status == 413


def test_a_token_of_an_answer_is_what_the_next_append_expects(api: Api) -> None:
    api.append(B, "Taken")
    answer = post(api, to(A), to(B, expected="no_stream"))
    tokens = {each["stream"]: each["token"] for each in answer.json["results"]}
    again = post(api, *(to(stream, "Freed", expected=token) for stream, token in tokens.items()))
    assert statuses(again) == [201, 201]
    assert statuses(post(api, *(to(stream, expected=token) for stream, token in tokens.items()))) == [
        409,
        409,
    ]


def test_appends_to_one_stream_are_made_in_their_order_and_the_second_may_expect_the_first(api: Api) -> None:
    answer = post(
        api, to(A, "One", expected="no_stream"), to(B), to(A, "Two", expected=1), to(A, "Three", expected=1)
    )
    assert statuses(answer) == [201, 201, 201, 409]
    assert types(api, A) == ["One", "Two"]


def test_a_key_is_each_ones_own_and_is_the_key_of_an_append_to_that_stream(api: Api) -> None:
    first = post(api, to(A, idempotencyKey="k"), to(B, idempotencyKey="k"))
    again = post(api, to(A, idempotencyKey="k"), to(B, "Other", idempotencyKey="k"))
    alone = api.call(
        "POST", f"/streams/{A}/events", {"events": [{"type": "Taken"}]}, headers={"Idempotency-Key": "k"}
    )
    assert statuses(first) == [201, 201]
    assert statuses(again) == [201, 400]
    replayed, misused = again.json["results"]
    assert replayed["replayed"]
    assert misused["field"] == "appends[1].idempotencyKey"
    assert alone.json["replayed"]


def test_the_token_of_a_batch_of_ids_that_is_sent_again_in_part_is_in_conflict(api: Api) -> None:
    both = [{"type": "A", "id": ID}, {"type": "B", "id": ID[:-1] + "2"}]
    post(api, {"stream": A, "events": both})
    (part,) = post(api, {"stream": A, "events": both[:1]}).json["results"]
    assert (part["replayed"], part["version"]) == (True, 1)
    assert statuses(post(api, to(A, expected=part["token"]))) == [409]


@pytest.mark.parametrize(
    ("appends", "field"),
    [
        ([], "appends"),
        ([to(A), {"stream": A}], "appends[1].events"),
        ([to(A), to("no such!")], "appends[1].stream"),
        ([to(A), to("..")], "appends[1].stream"),
        ([to(A), to(B, expected="7.x")], "appends[1].expected"),
        ([to(A), to(B, idempotencyKey="ü")], "appends[1].idempotencyKey"),
        ([to(A), to(B, failIf={"items": []})], "appends[1].failIf.items"),
        ([to(A), to(B, after="AQ")], "appends[1].after"),
    ],
)
def test_what_is_malformed_is_refused_before_anything_is_written(
    api: Api, appends: list[Any], field: str
) -> None:
    answer = post(api, *appends)
    assert (answer.status, answer.json["field"]) == (400, field)
    assert types(api, A) == []


@pytest.mark.parametrize("header", ["If_Match", "If_None_Match", "Idempotency_Key"])
def test_headers_of_one_append_are_refused(api: Api, header: str) -> None:
    answer = post(api, to(A), **{header: "*"})
    assert (answer.status, answer.json["field"]) == (400, header.replace("_", "-"))


@pytest.mark.slow
def test_there_are_at_most_five_hundred(api: Api) -> None:
    assert post(api, *(to(f"Seat-{number}") for number in range(501))).status == 413
    assert statuses(post(api, *(to(f"Seat-{number}") for number in range(500)))) == [201] * 500


def test_what_the_store_refuses_and_what_is_deleted_is_each_ones_own_problem(api: Api) -> None:
    api.append(B, "Taken")
    api.call("DELETE", f"/streams/{B}")
    answer = post(api, to(A), to(B), {"stream": C, "events": [{"type": "T", "id": ID, "tags": ["a"]}]})
    assert statuses(answer) == [201, 410, 400]
    assert answer.json["results"][2]["field"] == "appends[2].events[0].id"


def test_where_the_store_does_not_answer_for_one_the_others_are_made() -> None:
    heard = list[Op]()

    def deaf(execute: Execute) -> Execute:
        def lost(op: Op) -> Reply:
            reply = execute(op)
            if isinstance(op, Put) and op.item["p"]["S"] == B and op not in heard:
                heard.append(op)
                raise Lost("reset")
            return reply

        return lost

    answer = post(Api(around=deaf), to(A), to(B, expected="no_stream"), to(C))
    assert statuses(answer) == [201, 201, 201], "a lost answer is asked for again"


def test_where_time_is_over_each_says_that_it_may_have_been_made() -> None:
    def silent(execute: Execute) -> Execute:
        def lost(op: Op) -> Reply:
            if isinstance(op, Put) and op.item["p"]["S"] == B:
                raise Lost("reset")
            return execute(op)

        return lost

    api = Api(around=silent)
    answer = post(api, to(A), to(B, expected="no_stream"))
    made, unknown = answer.json["results"]
    assert (made["status"], unknown["status"]) == (201, 503)
    assert unknown["type"] == "urn:epochal:problem:unavailable"
    assert "may have been applied" in unknown["detail"]


def test_what_had_no_turn_before_the_time_was_over_says_that_it_was_not_tried() -> None:
    def slow(execute: Execute) -> Execute:
        def late(op: Op) -> Reply:
            if isinstance(op, Put):
                served.clock.sleep(30)
            return execute(op)

        return late

    served = Api(around=slow)
    answer = post(served, to(A, expected="no_stream"), to(A, unfolds=[{"type": "U"}]), to(A))
    assert statuses(answer) == [201, 503, 503]
    assert [each.get("tried") for each in answer.json["results"]] == [None, False, False]
    assert types(served, A) == ["Taken"]
