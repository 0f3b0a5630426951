"""`POST /streams`: several streams get their events together, or none of them does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from epochal.http.routes import operations
from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Op, Reply, Transact
from tests.support.api import Answer, Api

A, B = "Account-a", "Account-b"
EVENT = {"type": "Moved", "data": {"n": 1}}


@pytest.fixture
def api() -> Api:
    return Api()


def post(api: Api, *appends: Any, key: str | None = None, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    sent |= {} if key is None else {"Idempotency-Key": key}
    return api.call("POST", "/streams", {"appends": appends}, headers=sent)


def to(stream: str, *types: str, **more: Any) -> dict[str, Any]:
    return {"stream": stream, "events": [{"type": each} for each in types or ("Moved",)], **more}


def types(api: Api, stream: str) -> list[str]:
    answer = api.call("GET", f"/streams/{stream}/events")
    return [each["type"] for each in answer.json["events"]] if answer.status == 200 else []


def test_every_stream_gets_its_events_and_is_answered_in_the_order_of_the_request(api: Api) -> None:
    api.append(A, "Opened")
    answer = post(api, to(B, "In", "Told"), to(A, "Out", expected=1))
    assert answer.status == 201
    shown = [(each["stream"], each["first"], each["version"]) for each in answer.json["streams"]]
    assert shown == [(B, 0, 2), (A, 1, 2)]
    assert answer.json["replayed"] is False
    assert answer.json["capacity"]["write"] == 4.0
    assert (types(api, A), types(api, B)) == (["Opened", "Out"], ["In", "Told"])


def test_a_token_is_the_etag_without_quotes_and_is_expected_by_the_next_append(api: Api) -> None:
    tokens = [each["token"] for each in post(api, to(A), to(B)).json["streams"]]
    assert [api.call("GET", f"/streams/{each}").etag for each in (A, B)] == [f'"{each}"' for each in tokens]
    assert post(api, to(A, expected=tokens[0]), to(B, expected=tokens[1])).status == 201
    stale = post(api, to(A, expected=tokens[0]), to(B))
    assert (stale.status, stale.json["streams"][0]["stream"]) == (409, A)


def test_unfolds_are_replaced_removed_or_left_for_each_stream_by_itself(api: Api) -> None:
    state = [{"type": "Balance", "data": 7}]
    post(api, to(A, unfolds=state), {"stream": B, "unfolds": state})
    post(api, to(A), to(B, unfolds=[]))
    kept = [
        [each["data"] for each in api.call("GET", f"/streams/{stream}").json["unfolds"]] for stream in (A, B)
    ]
    assert kept == [[7], []]


def test_a_conflict_in_one_stream_keeps_all_from_it_and_says_where_to_go_on(api: Api) -> None:
    api.append(A, "Opened")
    etag = api.append(A, "Taken").etag
    before = api.stored
    answer = post(api, to(B), to(A, expected=1))
    assert (answer.status, answer.problem) == (409, "version-conflict")
    (found,) = answer.json["streams"]
    assert found == {"stream": A, "version": 2, "token": etag.strip('"'), "deleted": False}
    assert answer.json["detail"] == f"{A} is at version 2"
    assert api.stored == before
    assert post(api, to(B), to(A, expected=found["token"])).status == 201


def test_all_streams_that_are_found_in_the_way_are_listed(api: Api) -> None:
    tokens = [each["token"] for each in post(api, to(A), to(B)).json["streams"]]
    post(api, to(A), to(B))
    answer = post(api, *(to(name, expected=token) for name, token in zip((A, B), tokens, strict=True)))
    assert answer.status == 409
    assert [(each["stream"], each["version"]) for each in answer.json["streams"]] == [(A, 2), (B, 2)]
    assert answer.json["detail"] == f"{A} is at version 2, with 1 more stream in conflict"


def test_a_stream_that_does_not_exist_is_in_the_way_without_a_token(api: Api) -> None:
    answer = post(api, to(A, expected="stream_exists"), to(B))
    assert answer.json["streams"] == [{"stream": A, "version": 0, "deleted": False}]
    assert api.stored == []


def test_a_deleted_stream_is_410_whatever_else_is_in_the_way(api: Api) -> None:
    api.append(A, "Opened")
    api.call("DELETE", f"/streams/{A}")
    answer = post(api, to(A), to(B))
    assert (answer.status, answer.problem) == (410, "stream-deleted")
    assert answer.json["streams"] == [{"stream": A, "version": 1, "deleted": True}]
    assert answer.json["detail"] == f"{A} was deleted at version 1"
    assert types(api, B) == []


def test_of_several_in_the_way_a_deleted_one_decides_and_is_told_first(api: Api) -> None:
    tokens = [each["token"] for each in post(api, to(A), to(B)).json["streams"]]
    api.append(A, "Later")
    api.call("DELETE", f"/streams/{B}")
    answer = post(api, *(to(name, expected=token) for name, token in zip((A, B), tokens, strict=True)))
    assert (answer.status, answer.problem) == (410, "stream-deleted")
    assert [(each["stream"], each["deleted"]) for each in answer.json["streams"]] == [(A, False), (B, True)]
    assert answer.json["detail"] == f"{B} was deleted at version 1, with 1 more stream in conflict"


def test_a_repeat_is_not_counted_as_an_append(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        post(api, to(A), to(B), key="k")
    first, again = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["Appends"], first["Events"]) == (2, 2)
    assert again.keys().isdisjoint(("Appends", "Events"))


def test_a_repeated_key_is_answered_like_the_first_in_whatever_order_streams_are_named(api: Api) -> None:
    first = post(api, to(A), to(B, expected=0), key="k")
    api.append(A, "Later")
    again = post(api, to(B, expected=0), to(A), key="k")
    assert (again.status, again.json["replayed"]) == (201, True)
    assert [each["first"] for each in again.json["streams"]] == [0, 0]
    assert again.json["streams"][0] == first.json["streams"][1]
    assert types(api, A) == ["Moved", "Later"]


def test_a_key_that_was_used_for_other_contents_is_refused_by_its_header(api: Api) -> None:
    post(api, to(A), to(B), key="k")
    answer = post(api, to(A, "Other"), to(B), key="k")
    assert (answer.status, answer.json["field"]) == (400, "Idempotency-Key")
    assert types(api, A) == ["Moved"]


def test_where_nobody_can_tell_any_more_each_stream_is_named_with_its_index() -> None:
    lost: list[Op] = []
    api = Api()

    def losing(execute: Execute) -> Execute:
        def perform(op: Op) -> Reply:
            reply = execute(op)
            if isinstance(op, Transact) and not lost:
                lost.append(op)
                for stream in (A, B):
                    Api(tables=api.tables).call("POST", f"/streams/{stream}/prune", {"before": 1})
                raise Lost("reset")
            return reply

        return perform

    answer = post(Api(tables=api.tables, around=losing), to(A), to(B))
    assert (answer.status, answer.problem) == (409, "undetermined")
    assert answer.json["streams"] == [{"stream": A, "index": 0}, {"stream": B, "index": 0}]


BAD: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "appends"),
    "text": (["x"], "appends[0]"),
    "no stream": ([to(B), {"events": [EVENT]}], "appends[1].stream"),
    "a stream of the system's": ([to(B), to("$x-1")], "appends[1].stream"),
    "a stream that is a number": ([{"stream": 1, "events": [EVENT]}], "appends[0].stream"),
    "a stream twice": ([to(A), to(B), to(A)], "appends"),
    "no contents": ([to(B), {"stream": A}], "appends[1].events"),
    "no events": ([{"stream": A, "events": []}], "appends[0].events"),
    "an event without a type": ([to(B), {"stream": A, "events": [{"data": 1}]}], "appends[1].events[0].type"),
    "an unfold with a typo": ([to(A, unfolds=[{"type": "S", "dat": 1}])], "appends[0].unfolds[0].dat"),
    "an unknown field": ([to(A, version=1)], "appends[0].version"),
    "a version that is text": ([to(B), to(A, expected="1")], "appends[1].expected"),
    "a token that is none": ([to(B), to(A, expected="1.x")], "appends[1].expected"),
    "a claim of nothing stored": (
        [
            to(B),
            {
                "stream": A,
                "events": [
                    {"type": "E", "claim": {"key": f"bodies/{'0' * 64}", "sha256": "0" * 64, "bytes": 1}}
                ],
            },
        ],
        "appends[1].events.claim",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_breaks_a_rule_is_named_with_its_place_and_changes_nothing(api: Api, name: str) -> None:
    appends, field = BAD[name]
    answer = api.call("POST", "/streams", json.dumps({"appends": appends}).encode())
    assert (answer.status, answer.json["field"]) == (400, field)
    assert answer.json["detail"] == f"{field}: {answer.json['rule']}"
    assert api.stored == []


def test_what_does_not_fit_an_item_is_413_with_sizes_and_nothing_is_written(api: Api) -> None:
    dice = Random(1)
    ids = ("correlationId", "causationId")
    large = [{"type": "T" * 512, **{each: dice.randbytes(256).hex() for each in ids}} for _ in range(1000)]
    answer = post(api, to(B), {"stream": A, "events": large})
    assert (answer.status, answer.problem, answer.json["field"]) == (413, "too-large", "appends")
    assert answer.json["size"] > answer.json["limit"]
    assert api.stored == []


@pytest.mark.parametrize(("key", "most"), [(None, 100), ("k", 99)])
def test_as_many_streams_as_a_transaction_takes_and_not_one_more(
    api: Api, key: str | None, most: int
) -> None:
    appends = [to(f"Account-{n}") for n in range(most + 1)]
    refused = post(api, *appends, key=key)
    assert (refused.status, refused.problem, refused.json["field"]) == (413, "too-large", "appends")
    assert (refused.json["size"], refused.json["limit"]) == (most + 1, most)
    assert api.stored == []
    assert post(api, *appends[1:], key=key).status == 201


@pytest.mark.parametrize("header", ["If_Match", "If_None_Match"])
def test_headers_that_name_one_streams_state_are_refused_not_overlooked(api: Api, header: str) -> None:
    answer = post(api, to(A), to(B), **{header: "*"})
    assert (answer.status, answer.json["field"]) == (400, header.replace("_", "-"))
    assert api.stored == []


def test_one_stream_alone_is_appended_to_likewise(api: Api) -> None:
    assert [each["version"] for each in post(api, to(A)).json["streams"]] == [1]
    answer = post(api, to(A, expected=0))
    assert (answer.status, answer.json["streams"][0]["version"]) == (409, 1)


def test_tips_have_no_such_route(api: Api) -> None:
    assert [each.key for each in operations() if each.perform.__name__ == "append_all"] == ["POST /streams"]
    assert api.call("POST", "/tips", {"appends": [to(A), to(B)]}).problem == "route-not-found"
