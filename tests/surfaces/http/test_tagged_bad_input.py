"""Bad input to the routes of tagged events is refused with the field and the rule, and nothing is written."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from epochal.contrib.sekiban.store import DcbEvents
from epochal.http.event_fields import MAX_NAMED
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position, Reached
from epochal.model.tag_answers import Rest
from epochal.store.tagged import MAX_EVENTS
from tests.support.api import Answer, Api

ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"
EVENT: dict[str, Any] = {"type": "A", "data": 1, "tags": ["a"]}
ASKED: dict[str, Any] = {"items": [{"tags": ["a"]}]}


@pytest.fixture(params=["pages", "dcb"])
def api(request: pytest.FixtureRequest) -> Api:
    """A store that holds two events, so that there is something to spoil."""
    api = Api(pages=request.param == "pages")
    assert append(api, {**EVENT, "id": ID}).status == 201
    assert append(api, EVENT).status == 201
    return api


def append(api: Api, *events: dict[str, Any], **body: Any) -> Answer:
    return api.call("POST", "/dcb/events", {"events": list(events), **body})


def refused(api: Api, answer: Answer, field: str, status: int = 400) -> None:
    assert (answer.status, answer.json.get("field")) == (status, field), answer.text
    assert answer.json["detail"] == f"{field}: {answer.json['rule']}"
    assert len(api.stored) == (2 if api.pages else 5)


BODIES: dict[str, tuple[object, str]] = {
    "nothing": ({}, "events"),
    "an array": ([], "body"),
    "no events": ({"events": []}, "events"),
    "events that are null": ({"events": None}, "events"),
    "events that are an object": ({"events": EVENT}, "events"),
    "an event that is null": ({"events": [EVENT, None]}, "events[1]"),
    "no type": ({"events": [{"data": 1}]}, "events[0].type"),
    "an empty type": ({"events": [{**EVENT, "type": ""}]}, "events[0].type"),
    "a type too long": ({"events": [{**EVENT, "type": "x" * 513}]}, "events[0].type"),
    "a tag too long": ({"events": [{**EVENT, "tags": ["ä" * 257]}]}, "events[0].tags[0]"),
    "a type with a line break": ({"events": [{**EVENT, "type": "a\nb"}]}, "events[0].type"),
    "metadata with half a surrogate pair": ({"events": [{**EVENT, "meta": "\ud800"}]}, "events[0].meta"),
    "data with half a surrogate pair": ({"events": [{**EVENT, "data": "\ud800"}]}, "events[0].data"),
    "base64 that is none": ({"events": [{"type": "A", "data64": "="}]}, "events[0].data64"),
    "bytes and JSON": ({"events": [{"type": "A", "data": 1, "data64": ""}]}, "events[0].data64"),
    "metadata twice": ({"events": [{"type": "A", "meta": 1, "meta64": ""}]}, "events[0].meta64"),
    "tags that are text": ({"events": [{**EVENT, "tags": "a"}]}, "events[0].tags"),
    "tags that are null": ({"events": [{**EVENT, "tags": None}]}, "events[0].tags"),
    "a tag that is a number": ({"events": [{**EVENT, "tags": ["a", 1]}]}, "events[0].tags[1]"),
    "an empty tag": ({"events": [{**EVENT, "tags": [""]}]}, "events[0].tags[0]"),
    "a reserved tag": ({"events": [{**EVENT, "tags": ["$all"]}]}, "events[0].tags[0]"),
    "a tag of an empty group": ({"events": [{**EVENT, "tags": [":a"]}]}, "events[0].tags[0]"),
    "a tag with a control character": ({"events": [{**EVENT, "tags": ["a\x00"]}]}, "events[0].tags[0]"),
    "a tag with half a surrogate pair": ({"events": [{**EVENT, "tags": ["\udfff"]}]}, "events[0].tags[0]"),
    "an id that is no UUID": ({"events": [{**EVENT, "id": "1"}]}, "events[0].id"),
    "an id that is a number": ({"events": [{**EVENT, "id": 1}]}, "events[0].id"),
    "an id twice": ({"events": [{**EVENT, "id": ID}] * 2}, "events"),
    "an id with other contents": ({"events": [{**EVENT, "id": ID, "data": 2}]}, "events"),
    "ids of which only some exist": ({"events": [{**EVENT, "id": ID}, EVENT]}, "events"),
    "an expiry that is negative": ({"events": [{**EVENT, "expires": -1}]}, "events[0].expires"),
    "an expiry in milliseconds": ({"events": [{**EVENT, "expires": 1_800_000_000_000}]}, "events[0].expires"),
    "a cause that is null": ({"events": [{**EVENT, "causationId": None}]}, "events[0].causationId"),
    "an unknown field": ({"events": [EVENT], "expected": 1}, "expected"),
    "an unknown field of an event": ({"events": [{**EVENT, "place": 2}]}, "events[0].place"),
    "a position without a condition": ({"events": [EVENT], "after": "eyJzIjp7fSwiaCI6e319"}, "after"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_malformed_append_is_refused_by_its_field(api: Api, name: str) -> None:
    body, field = BODIES[name]
    # By the standard library, which writes half a surrogate pair as it is.
    refused(api, api.call("POST", "/dcb/events", json.dumps(body).encode()), field)


QUERIES: dict[str, tuple[object, str]] = {
    "null": (None, ""),
    "an array": ([], ""),
    "nothing": ({}, ".items"),
    "no items": ({"items": []}, ".items"),
    "items that are null": ({"items": None}, ".items"),
    "an item that is text": ({"items": ["a"]}, ".items[0]"),
    "an item of an unknown field": ({"items": [{"tag": "a"}]}, ".items[0].tag"),
    "tags that are text": ({"items": [{"tags": "a"}]}, ".items[0].tags"),
    "an empty tag": ({"items": [{"tags": [""]}]}, ".items[0].tags[0]"),
    "a reserved tag": ({"items": [{"tags": ["a"]}, {"tags": ["$type:A"]}]}, ".items[1].tags[0]"),
    "a type that is null": ({"items": [{"types": [None], "tags": ["a"]}]}, ".items[0].types[0]"),
    "types alone while type heads are off": ({"items": [{"types": ["A"]}]}, ".items"),
    "everything while type heads are off": ({"items": [{}]}, ".items"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_a_malformed_query_is_refused_by_its_field_in_a_read_and_in_a_condition(api: Api, name: str) -> None:
    asked, field = QUERIES[name]
    refused(api, api.call("POST", "/dcb/query", {"query": asked}), f"query{field}")
    refused(api, append(api, EVENT, failIf=asked), f"failIf{field}")


def test_what_asks_by_type_alone_is_told_what_the_store_lacks(api: Api) -> None:
    answer = api.call("POST", "/dcb/query", {"query": {"items": [{"types": ["A"]}]}})
    assert answer.json["rule"] == "each item must name a tag, unless the store was opened with its types"


def position(**seen: Reached) -> str:
    return write_position(Position(seen=seen))


POSITIONS: dict[str, object] = {
    "null": None,
    "a number": 5,
    "empty": "",
    "text": "here",
    "beyond ASCII": "é",
    "JSON of another shape": base64.urlsafe_b64encode(b"[1]").decode(),
    "nesting without end": base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    "of a read of another tag": position(b=Reached()),
    "ahead of the store": position(a=Reached(9, "9" * 30)),
    "altered": position(a=Reached(1, "0" * 30)),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_that_no_read_of_this_store_returned_is_refused(api: Api, name: str) -> None:
    sent = POSITIONS[name]
    refused(api, append(api, EVENT, failIf=ASKED, after=sent), "after")
    refused(api, api.call("POST", "/dcb/query", {"query": ASKED, "after": sent}), "after")


@pytest.mark.slow
@pytest.mark.parametrize("name", POSITIONS)
def test_a_continuation_that_no_page_of_this_read_returned_is_refused(api: Api, name: str) -> None:
    honest = api.call("POST", "/dcb/query", {"query": ASKED}).json["position"]
    sent = POSITIONS[name]
    texts = [f"{sent}.{honest}", f"{position(a=Reached())}.{sent}"] if isinstance(sent, str) else [sent]
    for text in texts:
        refused(api, api.call("POST", "/dcb/query", {"query": ASKED, "from": text}), "from")


def test_a_continuation_is_no_way_past_the_end_of_a_read(api: Api) -> None:
    """Its two parts are held to what is stored, not to each other; the wrong order is seen too."""
    end = read_position(api.call("POST", "/dcb/query", {"query": ASKED}).json["position"])
    rest = Rest(at=end.seen, position=Position(seen={"a": Reached()}))
    refused(api, api.call("POST", "/dcb/query", {"query": ASKED, "from": rest.text()}), "from")


@pytest.mark.parametrize("limit", [0, -1, 10_001, 1.5, "1", True, None])
def test_a_malformed_limit_is_refused(api: Api, limit: object) -> None:
    refused(api, api.call("POST", "/dcb/query", {"query": ASKED, "limit": limit}), "limit")


LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "tags by number": ({"events": [{**EVENT, "tags": ["a"] * 101}]}, "events[0].tags"),
    "items of a query": ({"events": [EVENT], "failIf": {"items": [{"tags": ["a"]}] * 101}}, "failIf.items"),
    "types of an item": (
        {"events": [EVENT], "failIf": {"items": [{"types": ["A"] * 101, "tags": ["a"]}]}},
        "failIf.items[0].types",
    ),
}
LARGE_OF_DCB: dict[str, tuple[dict[str, Any], str]] = {
    "an event": ({"events": [EVENT, {**EVENT, "data": "x" * 390_000}]}, "events[1].data"),
    "events by number": ({"events": [EVENT] * (DcbEvents.most_events + 1)}, "events"),
    "events and their tags": ({"events": [{**EVENT, "tags": ["a", "b"]}] * 40}, "transaction"),
    "events by their sum": ({"events": [{**EVENT, "data": "x" * 300_000}] * 15}, "transaction"),
    "events and heads to watch": (
        {"events": [EVENT], "failIf": {"items": [{"tags": [f"t:{n}"]} for n in range(98)]}},
        "transaction",
    ),
}
LARGE_OF_PAGES: dict[str, tuple[dict[str, Any], str]] = {
    "events by number": ({"events": [EVENT] * (MAX_EVENTS + 1)}, "events"),
    "tags and fences": (
        {"events": [EVENT], "failIf": {"items": [{"tags": [f"t:{n}"]} for n in range(100)]}},
        "transaction",
    ),
}


@pytest.mark.parametrize(
    ("api", "name"),
    [
        *(("pages", name) for name in (*LARGE, *LARGE_OF_PAGES)),
        *(("dcb", name) for name in (*LARGE, *LARGE_OF_DCB)),
    ],
    indirect=["api"],
)
def test_what_is_too_large_is_413_with_sizes(api: Api, name: str) -> None:
    body, field = (LARGE | (LARGE_OF_PAGES if api.pages else LARGE_OF_DCB))[name]
    answer = api.call("POST", "/dcb/events", body)
    refused(api, answer, field, status=413)
    assert answer.json["size"] > answer.json["limit"]


def test_a_query_may_watch_no_more_heads_than_a_transaction_could_hold() -> None:
    api = Api(type_heads=True)
    items = [{"types": [f"{n}.{k}" for k in range(51)]} for n in range(2)]
    answer = api.call("POST", "/dcb/query", {"query": {"items": items}})
    assert (answer.status, answer.json["field"], answer.json["size"]) == (413, "query.items", 102)
    assert answer.json["limit"] == MAX_NAMED


@pytest.mark.slow
def test_as_many_events_as_a_transaction_holds_are_taken(api: Api) -> None:
    most = MAX_EVENTS if api.pages else DcbEvents.most_events
    assert append(api, *[EVENT] * most).status == 201


@pytest.mark.parametrize("event_id", ["", "1", f"{ID}0", "EVENT#1", "ä"])
def test_an_event_id_that_is_none_is_refused(api: Api, event_id: str) -> None:
    refused(api, api.call("GET", f"/dcb/events/{event_id}"), "id")


def test_pages_take_no_expiry() -> None:
    api = Api(pages=True)
    answer = append(api, {**EVENT, "expires": 4_000_000_000})
    assert (answer.status, answer.json["field"]) == (400, "events[0].expires")
    assert api.stored == []


def test_without_a_stream_of_everything_a_listing_of_pages_names_a_tag() -> None:
    api = Api(pages=True)
    for path in ("/events", "/events/count"):
        answer = api.call("GET", path)
        assert (answer.status, answer.json["field"]) == (400, "tag")
        assert "or read the feed" in answer.json["rule"]


def test_an_idempotency_key_is_visible_text_and_goes_with_no_ids(api: Api) -> None:
    answer = api.call("POST", "/dcb/events", {"events": [EVENT]}, headers={"Idempotency-Key": "k l"})
    refused(api, answer, "Idempotency-Key")
    answer = api.call(
        "POST", "/dcb/events", {"events": [{**EVENT, "id": ID}]}, headers={"Idempotency-Key": "k"}
    )
    refused(api, answer, "events[0].id")


def test_parameters_and_bodies_where_none_have_a_meaning_are_refused(api: Api) -> None:
    refused(api, api.call("POST", "/dcb/events", {"events": [EVENT]}, query="dry=1"), "dry")
    refused(api, api.call("POST", "/dcb/query", {"query": ASKED}, query="limit=1"), "limit")
    refused(api, api.call("GET", f"/dcb/events/{ID}", {}), "body")


def test_another_media_type_is_415(api: Api) -> None:
    for path in ("/dcb/events", "/dcb/query"):
        answer = api.call("POST", path, b"a=1", headers={"Content-Type": "application/x-www-form-urlencoded"})
        refused(api, answer, "Content-Type", status=415)
