"""`POST /streams/{stream}/prune` and `DELETE /streams/{stream}`."""

from __future__ import annotations

from random import Random

import pytest

from epochal.contrib.equinox.pruning import DELETES
from epochal.model.events import Event
from tests.support.api import Answer, Api


@pytest.fixture(params=["streams", "tips"])
def api(request: pytest.FixtureRequest) -> Api:
    api = Api(store=request.param)
    api.append("Cat-1", *"ABCDE", unfolds=[{"type": "S", "data": 1}])
    return api


def indices(api: Api) -> list[int]:
    return [event["index"] for event in api.call("GET", "/streams/Cat-1/events").json["events"]]


def outcome(answer: Answer) -> tuple[int, int, bool]:
    return answer.status, answer.json["lowWater"], answer.json["done"]


def test_pruned_events_are_gone_and_the_rest_stays(api: Api) -> None:
    assert outcome(api.call("POST", "/streams/Cat-1/prune", {"before": 3})) == (200, 3, True)
    assert indices(api) == [3, 4]
    assert api.append("Cat-1", "F").json["first"] == 5


def test_pruning_again_or_beyond_the_end_is_no_error(api: Api) -> None:
    for before, mark in ((2, 2), (1, 2), (0, 2), (99, 5)):
        assert outcome(api.call("POST", "/streams/Cat-1/prune", {"before": before})) == (200, mark, True)
    assert indices(api) == []


@pytest.mark.slow
@pytest.mark.parametrize("store", ["streams", "tips"])
def test_a_stream_of_many_items_is_removed_a_part_at_a_time_and_says_so(store: str) -> None:
    api = Api(store=store)
    for n in range(DELETES + 20):
        # Events so large that each append calves the one before, or begins a page.
        api.streams.append("Cat-1", [Event(type="A", data=Random(n).randbytes(8_000))])
    first = api.call("DELETE", "/streams/Cat-1")
    assert outcome(first) == (200, DELETES + 20, False)
    assert first.json["deletedItems"] == DELETES
    again = api.call("DELETE", "/streams/Cat-1")
    assert outcome(again) == (200, DELETES + 20, True)
    assert not any("f" in item for item in api.stored)
    assert len(api.stored) == 1 or store == "streams"


def test_a_deleted_stream_leaves_nothing_but_its_tombstone(api: Api) -> None:
    assert outcome(api.call("DELETE", "/streams/Cat-1")) == (200, 5, True)
    assert api.call("GET", "/streams/Cat-1").status == 410
    assert api.append("Cat-1", "F").status == 410
    assert outcome(api.call("DELETE", "/streams/Cat-1")) == (200, 5, True)


def test_a_stream_left_open_goes_on_at_its_next_index(api: Api) -> None:
    assert api.call("DELETE", "/streams/Cat-1", query="leaveOpen=true").status == 200
    assert indices(api) == []
    assert api.append("Cat-1", "F").json["first"] == 5
    assert indices(api) == [5]


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("If-Match", '"5"', 200),
        ("If-Match", '"4"', 412),
        ("If-Match", "*", 200),
        ("If-None-Match", "*", 412),
    ],
)
def test_a_deletion_can_expect_a_state(api: Api, header: str, value: str, status: int) -> None:
    answer = api.call("DELETE", "/streams/Cat-1", headers={header: value})
    assert answer.status == status
    assert api.call("GET", "/streams/Cat-1").status == (410 if status == 200 else 200)
    if status == 412:
        assert indices(api) == [0, 1, 2, 3, 4]
        assert (answer.problem, answer.json["version"]) == ("precondition-failed", 5)
        assert answer.etag == api.call("GET", "/streams/Cat-1").etag


def test_a_deletion_on_a_stale_etag_deletes_nothing(api: Api) -> None:
    stale = api.call("GET", "/streams/Cat-1").etag
    api.append("Cat-1", "F")
    assert api.call("DELETE", "/streams/Cat-1", headers={"If-Match": stale}).status == 412
    assert len(indices(api)) == 6


def test_a_stream_that_does_not_exist_is_not_pruned(api: Api) -> None:
    before = api.stored
    assert api.call("POST", "/streams/Cat-2/prune", {"before": 1}).problem == "stream-not-found"
    assert api.stored == before


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 404), ({"If-None-Match": "*"}, 404), ({"If-Match": "*"}, 412)]
)
def test_a_stream_that_does_not_exist_is_not_deleted(api: Api, headers: dict[str, str], status: int) -> None:
    before = api.stored
    assert api.call("DELETE", "/streams/Cat-2", headers=headers).status == status
    assert api.stored == before
