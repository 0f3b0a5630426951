"""`GET /streams/{stream}`, `GET /streams/{stream}/events`, `GET /health`."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from typing import Any

import brotli
import pytest

from epochal.index.checkpoints import tip_key
from epochal.model.events import Event, Unfold
from epochal.model.stream_names import StreamName
from epochal.plan.ops import Put
from epochal.settings import RESPONSE_BYTES
from tests.support.api import Api


@pytest.fixture(params=["streams", "tips"])
def api(request: pytest.FixtureRequest) -> Api:
    return Api(store=request.param)


def filled(api: Api, count: int, size: int = 10, stream: str = "Cat-1") -> None:
    """Events written past the API, whose data is their index and padding."""
    for start in range(0, count, 100):
        batch = [
            Event(type="A", data=json.dumps([n, "x" * size]).encode())
            for n in range(start, min(count, start + 100))
        ]
        api.streams.append(stream, batch)


def pages(api: Api, query: str, stream: str = "Cat-1") -> list[list[int]]:
    """Indices page by page, following `next`."""
    found, start = [], ""
    while True:
        page = api.call("GET", f"/streams/{stream}/events", query=query + start).json
        found.append([event["index"] for event in page["events"]])
        if page["next"] is None:
            return found
        start = f"&from={page['next']}"


def test_the_state_is_the_tip(api: Api) -> None:
    api.append("Cat-1", "A", "B")
    written = api.append("Cat-1", "C", unfolds=[{"type": "S", "data": {"n": 3}, "meta": {"by": "me"}}])
    answer = api.call("GET", "/streams/Cat-1")
    assert answer.status == 200
    state = answer.json
    (unfold,) = state["unfolds"]
    del unfold["timestamp"]
    assert unfold == {"version": 3, "type": "S", "data": {"n": 3}, "meta": {"by": "me"}}
    assert (state["stream"], state["version"], state["lowWater"], state["headEvents"]) == ("Cat-1", 3, 0, 3)
    assert "events" not in state
    assert answer.etag == written.etag


def test_the_state_shows_the_tips_events_where_asked(api: Api) -> None:
    api.append("Cat-1", "A", "B")
    shown = api.call("GET", "/streams/Cat-1", query="events=true").json["events"]
    assert shown == api.call("GET", "/streams/Cat-1/events").json["events"]


@pytest.mark.parametrize("shape", ["{}", "W/{}", '"0", {}', '"0" ,{},', "*", ' "x",W/{} '])
def test_a_state_that_the_caller_has_is_304_without_a_body(api: Api, shape: str) -> None:
    etag = api.append("Cat-1", "A").etag
    answer = api.call("GET", "/streams/Cat-1", headers={"If-None-Match": shape.format(etag)})
    assert (answer.status, answer.text, answer.etag) == (304, "", etag)


@pytest.mark.parametrize("shape", ['"0"', 'W/"0", "1"', '""'])
def test_another_state_than_the_callers_is_sent(api: Api, shape: str) -> None:
    api.append("Cat-1", "A")
    assert api.call("GET", "/streams/Cat-1", headers={"If-None-Match": shape}).status == 200


@pytest.mark.parametrize("value", ["", "1", "W/1", '"1" "2"', '"1', "*, *"])
def test_a_malformed_list_of_etags_is_refused(api: Api, value: str) -> None:
    api.append("Cat-1", "A")
    answer = api.call("GET", "/streams/Cat-1", headers={"If-None-Match": value})
    assert (answer.status, answer.json["field"]) == (400, "If-None-Match")


@pytest.mark.parametrize("path", ["/streams/Cat-1", "/streams/Cat-1/events"])
def test_a_stream_that_does_not_exist_is_404(api: Api, path: str) -> None:
    answer = api.call("GET", path)
    assert (answer.status, answer.problem, answer.json["stream"]) == (404, "stream-not-found", "Cat-1")


@pytest.mark.parametrize("path", ["/streams/Cat-1", "/streams/Cat-1/events"])
def test_a_deleted_stream_is_410_with_the_version_that_it_was_deleted_at(api: Api, path: str) -> None:
    api.append("Cat-1", "A", "B", "C")
    api.call("DELETE", "/streams/Cat-1")
    answer = api.call("GET", path)
    assert (answer.status, answer.problem, answer.json["version"]) == (410, "stream-deleted", 3)


@pytest.mark.parametrize("query", ["from=7", "direction=backward", "limit=1"])
def test_whatever_is_asked_of_a_deleted_stream_it_is_410(api: Api, query: str) -> None:
    api.append("Cat-1", "A", "B", "C")
    api.call("DELETE", "/streams/Cat-1")
    assert api.call("GET", "/streams/Cat-1/events", query=query).status == 410


@pytest.mark.parametrize(
    ("query", "indices"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("from=3", [3, 4]),
        ("from=5", []),
        ("from=99", []),
        ("from=1&limit=2", [1, 2]),
        ("direction=backward", [4, 3, 2, 1, 0]),
        ("direction=backward&from=2", [2, 1, 0]),
        ("direction=backward&from=99&limit=1", [4]),
        ("direction=forward&limit=1", [0]),
    ],
)
def test_a_page_begins_where_it_is_told_and_ends_at_its_limit(
    api: Api, query: str, indices: list[int]
) -> None:
    api.append("Cat-1", *"ABCDE")
    page = api.call("GET", "/streams/Cat-1/events", query=query).json
    assert [event["index"] for event in page["events"]] == indices
    assert (page["stream"], page["version"], page["lowWater"]) == ("Cat-1", 5, 0)


@pytest.mark.parametrize(("direction", "order"), [("forward", 1), ("backward", -1)])
def test_following_next_reads_every_event_once(api: Api, direction: str, order: int) -> None:
    filled(api, 250)
    found = pages(api, f"direction={direction}&limit=60")
    assert [len(page) for page in found] == [60, 60, 60, 60, 10]
    assert [index for page in found for index in page] == list(range(250))[::order]


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "order"), [("forward", 1), ("backward", -1)])
def test_a_page_ends_before_it_is_too_large_and_says_where(api: Api, direction: str, order: int) -> None:
    filled(api, 300, size=20_000)
    found = pages(api, f"direction={direction}")
    assert [index for page in found for index in page] == list(range(300))[::order]
    assert len(found) == 2
    assert 180 < len(found[0]) < 210


@pytest.mark.slow
def test_a_page_is_measured_as_a_lambda_function_sends_it(api: Api) -> None:
    """Quotes and backslashes are escaped once more inside the answer, where they count twice."""
    quotes = json.dumps('"' * 10_000).encode()
    for _ in range(30):
        api.streams.append("Cat-1", [Event(type="A", data=quotes) for _ in range(10)])
    found = pages(api, "")
    assert [index for page in found for index in page] == list(range(300))
    answer = api.call("GET", "/streams/Cat-1/events")
    assert RESPONSE_BYTES * 0.9 < len(json.dumps(answer.text)) < RESPONSE_BYTES * 1.01


def test_one_event_larger_than_a_page_is_sent_alone(api: Api) -> None:
    filled(api, 1)
    api.streams.append("Cat-1", [Event(type="B", data=json.dumps("x" * 5_000_000).encode())])
    filled(api, 1)
    found = [api.call("GET", "/streams/Cat-1/events", query=f"from={n}").json for n in range(3)]
    assert [len(page["events"]) for page in found] == [1, 1, 1]
    assert found[1]["events"][0]["data"] == "x" * 5_000_000


def test_an_event_that_no_answer_can_hold_is_marked_and_what_follows_is_read(api: Api) -> None:
    api.streams.append(
        "Cat-1", [Event(type="B", data=json.dumps("x" * 6_000_000).encode(), correlation_id="c")]
    )
    filled(api, 1)
    page = api.call("GET", "/streams/Cat-1/events").json
    (large,) = page["events"]
    (small,) = api.call("GET", "/streams/Cat-1/events", query=f"from={page['next']}").json["events"]
    assert (large["omitted"], large["type"], large["correlationId"]) == (True, "B", "c")
    assert "data" not in large
    assert small["data"] == [0, "x" * 10]


def test_unfolds_that_no_answer_can_hold_are_marked(api: Api) -> None:
    large = json.dumps("x" * 3_000_000).encode()
    unfolds = [Unfold(type="S", data=large), Unfold(type="T", data=large), Unfold(type="U", data=b"1")]
    api.streams.append("Cat-1", [Event(type="A")], unfolds=unfolds)
    first, second, third = api.call("GET", "/streams/Cat-1").json["unfolds"]
    assert len(first["data"]) == 3_000_000
    assert (second["type"], second["omitted"]) == ("T", True)
    assert third["data"] == 1


def test_a_body_in_the_bucket_is_linked_with_its_hash_size_and_coding(api: Api) -> None:
    body = json.dumps(random.Random(1).randbytes(500_000).hex()).encode()
    api.streams.append("Cat-1", [Event(type="B", data=body)])
    (event,) = api.call("GET", "/streams/Cat-1/events").json["events"]
    ((key, content),) = api.bodies.objects.items()
    assert event["dataUrl"] == {
        "url": f"https://bucket.example/{key}?expires=900",
        "expiresIn": 900,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "encoding": "br",
    }
    assert brotli.decompress(content) == body


def test_a_states_bodies_in_the_bucket_are_linked_and_not_fetched(api: Api) -> None:
    large = random.Random(1).randbytes(500_000)
    api.streams.append("Cat-1", [Event(type="A", data=large)], unfolds=[Unfold(type="S", data=large)])
    api.bodies.objects.clear()
    state = api.call("GET", "/streams/Cat-1", query="events=true").json
    assert [shown["dataUrl"]["bytes"] for shown in (*state["events"], *state["unfolds"])] == [500_000] * 2


@pytest.mark.parametrize(
    "body",
    [b"NaN", b'{"a":Infinity}', b"{", b"\xff", b"1 2", b"[" * 50_000, b"9" * 5000, b"\xef\xbb\xbf1"],
    ids=[
        "NaN",
        "Infinity",
        "cut off",
        "not UTF-8",
        "two values",
        "too deep",
        "too long",
        "a byte order mark",
    ],
)
def test_what_other_libraries_wrote_is_shown_as_bytes_where_it_is_not_json(api: Api, body: bytes) -> None:
    api.streams.append("Cat-1", [Event(type="A", data=body, meta=body)])
    (event,) = api.call("GET", "/streams/Cat-1/events").json["events"]
    assert base64.b64decode(event["data64"]) == base64.b64decode(event["meta64"]) == body


def test_a_pruned_stream_begins_at_its_low_water_mark(api: Api) -> None:
    api.append("Cat-1", *"ABCDE")
    api.call("POST", "/streams/Cat-1/prune", {"before": 3})
    page = api.call("GET", "/streams/Cat-1/events").json
    assert page["lowWater"] == 3
    assert [event["index"] for event in page["events"]] == [3, 4]
    assert page["hole"] == {"first": 0, "end": 3}
    for query, hole in (
        ("from=3", None),
        ("direction=backward", page["hole"]),
        ("direction=backward&limit=1", None),
    ):
        answer = api.call("GET", "/streams/Cat-1/events", query=query)
        assert (answer.status, answer.json.get("hole")) == (200, hole)


def test_a_stream_that_equinox_pruned_begins_with_the_first_event_there_is() -> None:
    api = Api(store="tips")
    api.append("Cat-1", *"ABCDE")
    key = tip_key(StreamName("Cat-1"))
    (tip,) = (item for item in api.tables.items("tips") if item["i"] == key["i"])
    kept = {name: {"L": tip[name]["L"][3:]} for name in "ec"}
    api.tables.execute(Put(table="tips", item={**tip, **kept}))

    page = api.call("GET", "/streams/Cat-1/events").json

    assert (page["lowWater"], page["hole"]) == (3, {"first": 0, "end": 3})
    assert [event["index"] for event in page["events"]] == [3, 4]


def test_health_reads_the_table(api: Api) -> None:
    answer = api.call("GET", "/health")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_health_fails_where_there_is_no_table(api: Api) -> None:
    api.tables._tables.clear()  # noqa: SLF001  a deployment that lost its tables
    answer = api.call("GET", "/health")
    assert (answer.status, answer.problem) == (503, "not-deployed")


def test_cost_is_measured_for_each_request_alone(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.append("Cat-1", "A")
    capsys.readouterr()
    costs: list[Any] = []
    for _ in range(2):
        api.call("GET", "/streams/Cat-1")
        costs.append(json.loads(capsys.readouterr().out)["ReadUnits"])
    assert costs == [1.0, 1.0]
