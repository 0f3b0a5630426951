"""Appends to streams whose events carry tags, or that a query may forbid, over HTTP."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.support.api import Answer, Api

COURSE = {"items": [{"tags": ["course:1"]}]}


@pytest.fixture
def api() -> Api:
    return Api()


def enrolled(student: str, *tags: str) -> dict[str, Any]:
    return {"type": "Enrolled", "data": {"student": student}, "tags": list(tags or ("course:1",))}


def append(api: Api, stream: str, *events: Any, **more: Any) -> Answer:
    return api.call("POST", f"/streams/{stream}/events", {"events": events, **more})


def found(api: Api, query: Any = COURSE) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = api.call("POST", "/events/query", {"query": query}).json["events"]
    return shown


def test_an_event_of_a_stream_is_found_by_its_tags_with_its_stream_and_index(api: Api) -> None:
    made = append(api, "Student-1", {"type": "Registered"}, enrolled("1", "course:1", "term:1"))
    assert (made.status, made.json["first"], made.json["version"]) == (201, 0, 2)

    (event,) = found(api)
    assert (event["stream"], event["index"], event["tags"]) == ("Student-1", 1, ["course:1", "term:1"])
    registered, shown = api.call("GET", "/streams/Student-1/events").json["events"]
    assert (shown["tags"], shown["id"], shown["data"]) == (event["tags"], event["id"], event["data"])
    assert registered.keys().isdisjoint({"tags", "id"})
    alone = api.call("POST", "/events", {"events": [{"type": "Opened", "tags": ["course:1"]}]})
    assert alone.status == 201
    assert "stream" not in found(api)[1]


def test_a_condition_refuses_what_matches_and_is_answered_with_it_and_where_to_go_on(api: Api) -> None:
    made = append(api, "Student-1", enrolled("1"), failIf=COURSE, expected="no_stream")
    refused = append(api, "Student-2", enrolled("2"), failIf=COURSE)
    assert (refused.status, refused.problem) == (409, "condition-failed")
    assert [(each["stream"], each["index"]) for each in refused.json["events"]] == [("Student-1", 0)]
    assert refused.json["more"] is False
    for number, position in enumerate((made.json["position"], refused.json["position"]), start=2):
        again = append(api, f"Student-{number}", enrolled("n"), failIf=COURSE, after=position)
        assert again.status == (201 if number == 2 else 409)
    seen = api.call("POST", "/events/query", {"query": COURSE}).json["position"]
    stale = append(api, "Student-1", enrolled("1"), failIf=COURSE, after=seen, expected="no_stream")
    assert (stale.status, stale.problem) == (409, "version-conflict")


def test_several_streams_are_one_append_under_one_condition_and_key(api: Api) -> None:
    both = {
        "appends": [{"stream": f"Student-{n}", "events": [enrolled(str(n))]} for n in (1, 2)],
        "failIf": COURSE,
    }
    made = [api.call("POST", "/streams", both, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [(each.status, each.json["replayed"]) for each in made] == [(201, False), (201, True)]
    assert [each["stream"] for each in found(api)] == ["Student-1", "Student-2"]
    refused = api.call("POST", "/streams", both)
    assert (refused.status, refused.problem, len(refused.json["events"])) == (409, "condition-failed", 2)
    after = {**both, "after": made[0].json["position"]}
    assert api.call("POST", "/streams", after).status == 201


@pytest.mark.slow
def test_what_is_in_the_way_is_as_much_as_an_answer_holds(api: Api) -> None:
    large = Random(1).randbytes(150_000).hex()
    for number in range(30):
        append(api, f"Student-{number}", {**enrolled("n"), "data": large})
    refused = append(api, "Student-x", enrolled("x"), failIf=COURSE)
    assert refused.status == 409
    assert 0 < len(refused.json["events"]) < 30
    assert refused.json["more"] is True


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/streams/S-1/events", {"events": [enrolled("1", "$all")]}, "events[0].tags[0]"),
        ("/streams/S-1/events", {"events": [{"type": "E"}], "after": "x"}, "after"),
        ("/streams/S-1/events", {"events": [{"type": "E"}], "failIf": {"items": []}}, "failIf.items"),
        ("/streams/S-1/events", {"events": [enrolled("1", *(f"t:{n}" for n in range(100)))]}, "events"),
        (
            "/streams",
            {"appends": [{"stream": "S-1", "events": [enrolled("1", "")]}]},
            "appends[0].events[0].tags[0]",
        ),
        ("/streams", {"appends": [{"stream": "S-1", "events": [{"type": "E"}]}], "after": "x"}, "after"),
        ("/tips/S-1/events", {"events": [enrolled("1")]}, "events[0].tags"),
        ("/tips/S-1/events", {"events": [{"type": "E"}], "failIf": COURSE}, "failIf"),
    ],
)
def test_what_cannot_be_is_refused_by_name(api: Api, path: str, body: Any, field: str) -> None:
    refused = api.call("POST", path, body)
    assert (refused.status in (400, 413), refused.json["field"]) == (True, field)
