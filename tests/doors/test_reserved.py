"""What begins with `$` is the system's: no route reads it, writes it, or tells whether it is there."""

from __future__ import annotations

from typing import Any, Final

import pytest

from epochal.contrib.sekiban.items import TAGS
from epochal.layout.tables import INDEX
from epochal.pages.items import STREAMS
from tests.support.api import Api

SYSTEM: Final = "$AppendsEpoch-0_0"
TAG: Final = "$type:A"
EVENTS: Final = {"events": [{"type": "A", "data": 1}]}

REQUESTS: Final[tuple[tuple[str, str, Any, str], ...]] = (
    ("POST", f"/streams/{SYSTEM}/events", EVENTS, "stream"),
    ("GET", f"/streams/{SYSTEM}/events", None, "stream"),
    ("GET", f"/streams/{SYSTEM}", None, "stream"),
    ("POST", f"/streams/{SYSTEM}/prune", {"before": 1}, "stream"),
    ("DELETE", f"/streams/{SYSTEM}", None, "stream"),
    ("POST", f"/aggregates/order/{SYSTEM}/events", {**EVENTS, "snapshot": 1}, "id"),
    ("GET", f"/aggregates/order/{SYSTEM}", None, "id"),
    ("GET", f"/aggregates/order/{SYSTEM}/events", None, "id"),
    ("POST", f"/aggregates/{SYSTEM}/1/events", {**EVENTS, "snapshot": 1}, "type"),
    ("POST", "/events", {"events": [{"type": "A", "data": 1, "tags": [TAG]}]}, "events[0].tags[0]"),
    ("POST", "/events", {**EVENTS, "failIf": {"items": [{"tags": [TAG]}]}}, "failIf.items[0].tags[0]"),
    ("POST", "/events/query", {"query": {"items": [{"tags": [TAG]}]}}, "query.items[0].tags[0]"),
    ("GET", f"/tags/{TAG}", None, "tag"),
    ("POST", "/dcb/events", {"events": [{"type": "A", "data": 1, "tags": [TAG]}]}, "events[0].tags[0]"),
    ("POST", "/dcb/events", {**EVENTS, "failIf": {"items": [{"tags": [TAG]}]}}, "failIf.items[0].tags[0]"),
    ("POST", "/dcb/query", {"query": {"items": [{"tags": [TAG]}]}}, "query.items[0].tags[0]"),
    ("GET", f"/dcb/tags/{TAG}", None, "tag"),
)


@pytest.fixture(scope="module")
def api() -> Api:
    """A deployment whose system streams and tags are all there."""
    made = Api(type_heads=True)
    for store in ("streams", "tips"):
        assert made.call("POST", f"/{store}/Order-1/events", EVENTS).status == 201
    tagged = {"events": [{"type": "A", "data": 1, "tags": ["order:1"]}]}
    for path in ("/events", "/dcb/events"):
        assert made.call("POST", path, tagged).status == 201
    made.index()
    return made


def test_the_system_has_what_is_being_asked_for(api: Api) -> None:
    """Or its absence, and no rule, would be what keeps it shut."""
    assert any(SYSTEM in str(item) for item in api.tables.items(INDEX.kind))
    assert any(TAG in str(item) for item in api.tables.items(TAGS.kind))
    assert any(TAG in str(item) for item in api.tables.items(STREAMS.kind))


@pytest.mark.parametrize(("method", "path", "body", "field"), REQUESTS)
def test_no_route_takes_a_reserved_name(api: Api, method: str, path: str, body: Any, field: str) -> None:
    before = api.stored
    answer = api.call(method, path, body)
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", field)
    assert api.stored == before


@pytest.mark.parametrize(
    "query", [f"category={SYSTEM}", "category=$AppendsEpoch", "category=%24AppendsEpoch"]
)
def test_the_feed_has_no_reserved_category(api: Api, query: str) -> None:
    assert api.call("GET", "/feed/0", query=query).json["field"] == "category"


def test_what_is_reserved_is_in_no_listing_and_in_no_feed(api: Api) -> None:
    for path in ("/tags", "/dcb/tags", "/feed/0", "/feed/30000", "/feed"):
        answer = api.call("GET", path)
        assert answer.status == 200
        # The user's own tag is a stream of the feed.
        assert "$" not in answer.text.replace("$tag-order:1", ""), path
