"""`GET /groups/{group}` and `POST /groups/{group}`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.index.live_members import Sign, write_sign
from epochal.index.parking_causes import Cause
from epochal.index.series import register
from epochal.index.wire_batch import Ids
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from tests.support.api import Answer, Api
from tests.support.failed_runs import block
from tests.support.inline import Inline

HANDLED: list[str] = []


@pytest.fixture
def api() -> Api:
    """The group `board` has handled three entries of the index."""
    api = Api(store="tips")
    for stream in ("Cat-1", "Dog-1", "Cat-1"):
        api.append(stream, "A")
        api.index()
    run(api)
    HANDLED.clear()
    return api


def run(api: Api) -> None:
    def handle(delivery: Delivery) -> None:
        HANDLED.append(delivery.stream)

    reader = api.deployment.feed
    Reactor(
        member=Member(reaction=Reaction(name="board", handler=handle), reader=reader), executor=Inline
    ).run(0, seconds=60)


def steer(api: Api, **body: object) -> Answer:
    answer = api.call("POST", "/groups/board", body)
    assert answer.status == 200, answer.text
    return answer


def test_a_group_is_shown_with_who_runs_it(api: Api) -> None:
    driver = api.deployment.driver
    driver.run(write_sign("index", "board", Sign(owner="laptop-7", until=2**50)))
    api.append("Cat-2", "A", "B")
    api.index()
    found = api.call("GET", "/groups/board").json
    (shown,) = found["partitions"]
    assert shown.pop("seconds") >= 0
    assert shown == {
        "partition": 0,
        "checkpoint": "0@3",
        "tail": "0@4",
        "events": 2,
        "ofAllEvents": True,
        "parked": 0,
        "paused": None,
        "indexerFailure": None,
        "lastFailure": None,
        "blocked": [],
    }
    assert found["processes"] == [{"owner": "laptop-7", "partitions": [0]}]


def test_a_group_that_is_blocked_is_shown_with_the_last_failed_run(api: Api) -> None:
    api.append("Cat-2", "A")
    api.index()
    block(api.deployment.driver, "index", "Cat-2")
    (shown,) = api.call("GET", "/groups/board").json["partitions"]
    (run_,) = shown["blocked"]
    assert (run_["stream"], run_["index"], run_["cause"], run_["runs"]) == ("Cat-2", 0, "ValueError", 1)


def test_a_reset_says_what_it_does_and_a_dry_run_changes_nothing(api: Api) -> None:
    expected = {"partition": 0, "before": "0@3", "after": "0@1", "again": 2, "skipped": 0, "parked": 0}
    asked = {"act": "reset", "to": "0@1", "partition": 0}
    assert steer(api, **asked, dryRun=True).json == {"partitions": [0], "resets": [expected]}
    run(api)
    assert HANDLED == []
    assert steer(api, **asked).json["resets"] == [expected]
    run(api)
    assert HANDLED == ["Dog-1", "Cat-1"]


def test_a_group_pauses_goes_on_and_is_deleted(api: Api) -> None:
    assert steer(api, act="pause").json == {"partitions": [0], "resets": []}
    api.append("Cat-2", "A")
    api.index()
    run(api)
    assert HANDLED == []
    assert api.call("GET", "/groups/board").json["partitions"][0]["paused"]
    steer(api, act="resume")
    run(api)
    assert HANDLED == ["Cat-2"]
    steer(api, act="delete")
    assert api.call("GET", "/groups/board").status == 404


def test_a_group_begins_where_another_is(api: Api) -> None:
    answer = api.call("POST", "/groups/panel", body={"act": "begin", "like": "board"})
    assert (answer.status, answer.json["partitions"]) == (200, [0])
    assert api.call("GET", "/groups/panel").json["partitions"][0]["checkpoint"] == "0@3"


@pytest.mark.parametrize("name", ["bord", "-", "a_b", "x" * 65, "$board"])
def test_a_group_that_has_not_begun_is_not_found(api: Api, name: str) -> None:
    for answer in (
        api.call("GET", f"/groups/{name}"),
        api.call("POST", f"/groups/{name}", body={"act": "pause"}),
    ):
        assert (answer.status, answer.json["type"]) == (404, "urn:epochal:problem:group-not-found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "act"),
        ({"act": "stop"}, "act"),
        ({"act": "reset"}, "to"),
        ({"act": "reset", "to": "0@1"}, "partition"),
        ({"act": "reset", "to": "soon"}, "to"),
        ({"act": "reset", "to": "0@1", "partition": 7}, "partition"),
        ({"act": "reset", "to": "9@9", "partition": 0}, "to"),
        ({"act": "begin"}, "like"),
        ({"act": "begin", "like": "a board"}, "like"),
        ({"act": "begin", "like": "board"}, "group"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_field(api: Api, body: dict[str, object], field: str) -> None:
    answer = api.call("POST", "/groups/board", body)
    assert (answer.status, answer.json["type"]) == (400, "urn:epochal:problem:invalid-input")
    assert answer.json["field"] == field


def test_a_group_is_shown_with_why_the_indexer_does_not_start(api: Api) -> None:
    ids = Ids.drawn(0, bytes)
    api.deployment.driver.run(register("index", {"tips": 4}, ids))
    (shown,) = api.call("GET", "/groups/board").json["partitions"]
    assert shown["indexerFailure"].startswith(
        f"the indexer has failed since {ids.timestamp}: it is deployed for 4"
    )


def test_a_group_is_shown_with_the_failure_of_the_stream_that_was_parked_last(api: Api) -> None:
    member = Parking.of("board", api.deployment.feed).reactor.member
    held = member.load(0)
    assert held.state is not None
    member.save(held, replace(held.state, parked={"Cat-1": 0, "Cat-2": 3}))
    for stream, moment in (("Cat-1", "2026-02-01T00:00:00Z"), ("Cat-2", "2026-01-01T00:00:00Z")):
        cause = Cause(stream=stream, index=0, text="ValueError: no", attempts=5, timestamp=moment)
        member.record(0, cause)
    (shown,) = api.call("GET", "/groups/board").json["partitions"]
    assert shown["lastFailure"] == {
        "stream": "Cat-1",
        "index": 0,
        "cause": "ValueError: no",
        "attempts": 5,
        "since": "2026-02-01T00:00:00Z",
    }
