"""Answers open the bodies that they have room for: megabytes of spaces are stored in a few bytes, by any writer."""

from __future__ import annotations

from base64 import b64encode
from uuid import UUID

import pytest

from epochal.codec.bodies import MAX_DECODED, Encoded, decode
from epochal.errors import CorruptData
from epochal.model.bodies import Claim
from epochal.model.events import Event, Unfold
from epochal.pages.tags import entries
from epochal.settings import RESPONSE_BYTES
from epochal.store import encoding
from tests.support.api import Answer, Api

STREAM = "Order-1"
ALL = 8
MOST = 2 * RESPONSE_BYTES
"""Bytes of bodies that one answer opens at most, beside the one that shows that there is no more room."""

SPACES = b" " * 3_000_000 + b"1"
HUGE = b" " * 20_000_000 + b"1"
NO_JSON = b"\xff" * 5_000_000
"""Too large in base64, which is known only once it is opened."""

pytestmark = pytest.mark.slow


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes that bodies were opened to."""
    sizes: list[int] = []

    def counted(body: Encoded, limit: int = MAX_DECODED) -> bytes | Claim:
        try:
            content = decode(body, limit)
        except CorruptData:
            sizes.append(limit)
            raise
        sizes.append(len(content) if isinstance(content, bytes) else 0)
        return content

    monkeypatch.setattr(encoding, "decode", counted)
    monkeypatch.setattr(entries, "decode", counted)
    return sizes


def api_with(*bodies: bytes) -> Api:
    """One entry of the feed with these events of one stream."""
    api = Api()
    for body in bodies:
        api.streams.append(STREAM, [Event(type="Placed", data=body)])
    api.index()
    return api


def get(api: Api, path: str, query: str) -> Answer:
    answer = api.call("GET", path, query=query)
    assert answer.status == 200, answer.text
    return answer


FEEDS = {
    "forward": ("/feed/30000", "data=true"),
    "backward": ("/feed/30000", "data=true&direction=backward"),
    "newest": ("/feed/newest", "data=true"),
}


@pytest.mark.parametrize("body", [SPACES, HUGE, NO_JSON], ids=["spaces", "huge", "no JSON"])
@pytest.mark.parametrize("feed", FEEDS)
def test_a_page_of_the_feed_opens_bodies_until_it_has_no_room(
    opened: list[int], feed: str, body: bytes
) -> None:
    answer = get(api_with(*[body] * ALL), *FEEDS[feed])
    assert sum(opened) < MOST + 5_500_000
    assert sorted(item["index"] for item in answer.json["items"]) == [*range(ALL)]
    assert [item for item in answer.json["items"] if "omitted" not in item] == [
        item for item in answer.json["items"] if "data" in item
    ]


def test_every_event_is_reached_by_the_feed_and_by_its_stream(opened: list[int]) -> None:
    bodies = [SPACES, b"1", HUGE, b"2", SPACES, b"3"]
    api, place, found = Api(), "beginning", list[int]()
    for number, body in enumerate(bodies * 2):
        api.streams.append(f"Order-{number}", [Event(type="Placed", data=body)])
        api.index()
    for _ in bodies * 2:
        opened.clear()
        page = get(api, "/feed/30000", f"data=true&from={place}").json
        assert sum(opened) < MOST + 5_500_000
        found += [int(item["stream"].partition("-")[2]) for item in page["items"]]
        omitted = {item["stream"] for item in page["items"] if "omitted" in item}
        assert omitted <= {"Order-2", "Order-8"}
        place = page["next"]
        if page["atTail"]:
            break
    assert found == [*range(len(bodies) * 2)]


@pytest.mark.parametrize("body", [HUGE, NO_JSON], ids=["huge", "no JSON"])
def test_the_state_of_a_stream_opens_what_its_answer_has_room_for(opened: list[int], body: bytes) -> None:
    answer = get(api_with(*[body] * ALL), f"/streams/{STREAM}", "events=true")
    assert sum(opened) < MOST + 5_500_000
    assert [event["index"] for event in answer.json["events"]] == [*range(ALL)]
    assert all(event["omitted"] for event in answer.json["events"])


def test_the_state_of_a_stream_shows_small_events_beside_large_ones(opened: list[int]) -> None:
    answer = get(api_with(b"1", HUGE, b"2", SPACES, b"3"), f"/streams/{STREAM}", "events=true")
    assert [event.get("data") for event in answer.json["events"]] == [1, None, 2, 1, 3]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_page_of_a_stream_stops_opening_a_body_that_no_answer_holds(
    opened: list[int], direction: str
) -> None:
    api, place, found = api_with(HUGE, b"1", HUGE), "", list[int]()
    for _ in range(3):
        opened.clear()
        page = get(api, f"/streams/{STREAM}/events", f"direction={direction}{place}").json
        assert sum(opened) < 2 * MOST
        found += [event["index"] for event in page["events"]]
        assert ["omitted" in event for event in page["events"]] == [
            event["index"] != 1 for event in page["events"]
        ]
        if page["next"] is None:
            break
        place = f"&from={page['next']}"
    assert found == ([0, 1, 2] if direction == "forward" else [2, 1, 0])


def test_a_page_in_order_ends_after_events_that_no_answer_holds() -> None:
    api, asked, found = api_with(*[NO_JSON] * ALL), {"within": 0}, list[list[int]]()
    for _ in range(ALL):
        page = api.call("POST", "/feed/ordered", asked).json
        assert all(item["omitted"] for item in page["items"])
        found.append([item["index"] for item in page["items"]])
        if page["atTail"]:
            break
        asked = {"within": 0, "from": page["next"]}
    assert [index for page in found for index in page] == [*range(ALL)]
    assert max(map(len, found)) == 2


@pytest.mark.parametrize("streams", [1, ALL])
@pytest.mark.parametrize("body", [SPACES, HUGE, NO_JSON], ids=["spaces", "huge", "no JSON"])
def test_a_page_in_order_opens_bodies_until_it_has_no_room(
    opened: list[int], body: bytes, streams: int
) -> None:
    api, asked, found = Api(), {"within": 0}, list[int]()
    for number in range(ALL):
        event = Event(type="Placed", data=body, correlation_id=str(number), causation_id=f"Cause-{number}")
        api.streams.append(f"Order-{number % streams}", [event])
    api.index()
    for _ in range(ALL):
        opened.clear()
        page = api.call("POST", "/feed/ordered", asked).json
        assert sum(opened) < MOST + 5_500_000
        for item in page["items"]:
            assert ("data" in item) == (body is SPACES)
            assert ("omitted" in item) == (body is not SPACES)
        found += [int(item["stream"].partition("-")[2]) + item["index"] for item in page["items"]]
        if page["atTail"]:
            break
        asked = {"within": 0, "from": page["next"]}
    assert sorted(found) == [*range(ALL)]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("body", [SPACES, HUGE, NO_JSON], ids=["spaces", "huge", "no JSON"])
def test_the_state_of_a_stream_opens_unfolds_until_it_has_no_room(
    opened: list[int], body: bytes, together: bool
) -> None:
    api = Api()
    unfolds = [Unfold(type=f"State{number}", data=body) for number in range(ALL)]
    for number in [ALL] if together else range(1, ALL + 1):
        api.streams.append(STREAM, [Event(type="Placed")], unfolds=unfolds[:number])
    answer = get(api, f"/streams/{STREAM}", "events=true")
    assert sum(opened) < MOST + 5_500_000
    shown = answer.json["unfolds"]
    assert [unfold["type"] for unfold in shown] == [unfold.type for unfold in unfolds]
    assert [unfold.get("omitted", False) for unfold in shown] == [
        body is not SPACES or number > 0 for number in range(ALL)
    ]


TAGGED = {
    "query": ("POST", "/events/query", {"query": {"items": [{"tags": ["order:1"]}]}}),
    "backward": (
        "POST",
        "/events/query",
        {"query": {"items": [{"tags": ["order:1"]}]}, "direction": "backward"},
    ),
    "list": ("GET", "/events", None),
}


@pytest.mark.parametrize("body", [SPACES, HUGE, NO_JSON], ids=["spaces", "huge", "no JSON"])
@pytest.mark.parametrize("asked", TAGGED)
def test_a_page_of_tagged_events_opens_bodies_until_it_has_no_room(
    opened: list[int], asked: str, body: bytes
) -> None:
    api = Api(pages=True)
    for _ in range(ALL):
        api.deployment.tagged.append([Event(type="Placed", data=body, tags=("order:1",))])
    method, path, sent = TAGGED[asked]
    answer = api.call(method, path, sent, query="" if sent else "tag=order:1")
    assert answer.status == 200, answer.text
    assert len(list(filter(None, opened))) == 2
    (event,) = answer.json["events"]
    assert ("data" in event) == (body is SPACES)
    assert ("omitted" in event) == (body is not SPACES)


VAST = b" " * 100_000_000 + b"1"
"""More than twice what an answer has room for, in one event."""


@pytest.mark.parametrize("asked", [*TAGGED, "conflict", "single", "feed"])
def test_one_tagged_event_is_opened_no_further_than_an_answer_has_room(opened: list[int], asked: str) -> None:
    api = Api(pages=True)
    chosen = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"
    api.deployment.tagged.append([Event(type="Placed", data=VAST, tags=("order:1", "shop:1"), id=chosen)])
    api.index()
    opened.clear()
    if asked == "conflict":
        body = {"events": [{"type": "Paid"}], "failIf": {"items": [{"tags": ["shop:1"]}]}}
        answer = api.call("POST", "/events", body)
        assert answer.status == 409, answer.text
        (event,) = answer.json["events"]
    elif asked == "single":
        answer = api.call("GET", f"/events/{chosen}")
        event = answer.json
    elif asked == "feed":
        answer = api.call("GET", "/feed/30000", query="data=true")
        assert len(answer.json["items"]) == 2
        event = answer.json["items"][0]
    else:
        method, path, sent = TAGGED[asked]
        answer = api.call(method, path, sent, query="" if sent else "tag=order:1")
        (event,) = answer.json["events"]
    assert event["omitted"]
    assert event["type"] == "Placed"
    assert sum(opened) < 2 * MOST


def test_large_tagged_events_are_read_whole_where_there_is_room(opened: list[int]) -> None:
    api = Api(pages=True)
    api.deployment.tagged.append([Event(type="Placed", data=SPACES, tags=("order:1",))])
    api.index()
    for query in ("data=true", "data=true&direction=backward"):
        (item,) = api.call("GET", "/feed/30000", query=query).json["items"]
        assert item["data"] == 1
    (item,) = api.deployment.feed.page(30_000, data=True).items
    assert item.event is not None
    assert item.event.content == SPACES
    (item,) = api.deployment.feed.newest(data=True).items
    assert item.event is not None
    assert item.event.content == SPACES
    (item,) = (item for page in api.deployment.feed.ordered(within=0) for item in page.items)
    assert item.event is not None
    assert item.event.content == SPACES


def test_a_repeat_of_a_vast_tagged_event_is_known_again() -> None:
    api = Api(pages=True)
    event = Event(type="Placed", data=b" " * 5_000_000 + b"1", tags=("order:1",), id=f"{1:032x}")
    api.deployment.tagged.append([event])
    sent = {
        "type": "Placed",
        "data64": b64encode(event.content).decode(),
        "tags": ["order:1"],
        "id": event.id,
    }
    answer = api.call("POST", "/events", {"events": [{**sent, "id": str(UUID(event.id))}]})
    assert (answer.status, answer.json["replayed"]) == (201, True), answer.text
