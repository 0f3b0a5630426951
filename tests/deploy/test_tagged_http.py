"""Tagged events as deployed, Sekiban's and those in pages: through the gateway, with the functions' own permissions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from tests.deploy.test_http_api import Answer, Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Where a store of tagged events is in the API."""

    events: str
    query: str
    tags: str


SEKIBAN = Paths(events="/dcb/events", query="/dcb/query", tags="/dcb/tags")
PAGES = Paths(events="/events", query="/events/query", tags="/tags")


@dataclass(frozen=True, slots=True)
class Client:
    call: Caller
    at: Paths

    def append(self, *tags: str, event: dict[str, Any] | None = None, **body: Any) -> Answer:
        whole = {"type": "Subscribed", "data": {"n": 1.5}, "tags": list(tags), **(event or {})}
        return self.call("POST", self.at.events, {"events": [whole], **body})

    def query(self, query: dict[str, Any], **body: Any) -> Answer:
        return self.call("POST", self.at.query, {"query": query, **body})

    def event(self, event_id: object) -> Answer:
        return self.call("GET", f"{self.at.events}/{event_id}")

    def tag(self, tag: str) -> Answer:
        return self.call("GET", f"{self.at.tags}/{quote(tag, safe='')}")

    def tags(self, *asked: str) -> list[tuple[str, int]]:
        """All pages of a listing."""
        found, more = [], list(asked)
        while True:
            page = self.call("GET", f"{self.at.tags}?{'&'.join(more)}").json
            found += [(each["tag"], each["events"]) for each in page["tags"]]
            if page["next"] is None:
                return found
            more = [*asked, f"from={quote(page['next'], safe='')}"]


@pytest.fixture(params=[SEKIBAN, PAGES], ids=["Sekiban's", "in pages"])
def client(request: pytest.FixtureRequest, deployment: LocalDeployment) -> Client:
    return Client(Caller(deployment), request.param)


@pytest.fixture
def sekiban(deployment: LocalDeployment) -> Client:
    return Client(Caller(deployment), SEKIBAN)


@pytest.fixture
def pages(deployment: LocalDeployment) -> Client:
    return Client(Caller(deployment), PAGES)


@pytest.fixture
def course() -> str:
    """A tag that no other test uses, of a group of its own."""
    return f"course{uuid.uuid4().hex}:1"


def asked(*tags: str) -> dict[str, Any]:
    return {"items": [{"tags": [tag]} for tag in tags]}


def test_a_read_decides_an_append_and_the_second_is_refused_with_what_came_between(
    client: Client, course: str
) -> None:
    student, other = f"{course}-7", f"{course}-8"
    query = asked(course, student)
    read = client.query(query)
    assert (read.status, read.json["events"]) == (200, []), read.content
    position = read.json["position"]
    first = client.append(course, student, failIf=query, after=position)
    assert first.status == 201, first.content
    second = client.append(course, other, failIf=query, after=position)
    assert (second.status, second.json["type"]) == (409, "urn:epochal:problem:condition-failed")
    assert [event["tags"] for event in second.json["events"]] == [[course, student]]
    third = client.append(course, other, failIf=query, after=second.json["position"])
    assert third.status == 201, third.content
    events, start = [], {}
    while True:
        page = client.query(query, limit=1, **start).json
        events += page["events"]
        if page["next"] is None:
            break
        start = {"from": page["next"]}
    assert [event["tags"] for event in events] == [[course, student], [course, other]]
    assert page["position"] is not None


def test_heads_that_an_append_does_not_move_are_checked_and_unrelated_ones_read(
    client: Client, course: str
) -> None:
    """A condition on one tag, events of another: the transaction only checks the first."""
    answer = client.append(f"{course}-x", failIf=asked(course))
    assert answer.status == 201, answer.content
    assert client.append(course, failIf=asked(course), after=answer.json["position"]).status == 201
    stale = client.append(f"{course}-x", failIf=asked(course), after=answer.json["position"])
    assert (stale.status, stale.json["more"]) == (409, False)


def test_an_event_of_two_tags_is_found_by_its_id_and_a_repeat_of_its_append_is_harmless(
    client: Client, course: str
) -> None:
    """In pages, it is too large to be in both: the second refers to the first."""
    student, own = f"{course}-7", str(uuid.uuid4())
    event = {"id": own, "data": {"text": "x" * 3200, "more": [uuid.uuid4().hex for _ in range(60)]}}
    made = client.append(course, student, event=event, failIf=asked(course))
    again = client.append(course, student, event=event, failIf=asked(course))
    assert (made.json["replayed"], again.status, again.json["replayed"]) == (False, 201, True)
    (found,) = client.query(asked(student)).json["events"]
    assert (found["data"], found["tags"]) == (event["data"], [course, student])
    by_id = client.event(own).json
    assert {**found, **by_id} == by_id, "and where it is known, its position"
    assert client.event(uuid.uuid4()).status == 404
    listed = client.call("GET", f"{client.at.events}?tag={quote(student, safe='')}").json
    (event_listed,) = listed["events"]
    assert ({**found, **event_listed}, listed["next"]) == (event_listed, None)


def test_tags_are_listed_by_group_by_name_and_all(client: Client, course: str) -> None:
    group = course.partition(":")[0]
    second = f"{group}:ä b/2%"
    for tag in (course, course, second):
        assert client.append(tag).status == 201
    assert sorted(client.tags(f"group={group}")) == [(course, 2), (second, 1)]
    assert client.tag(course).json["events"] == 2
    assert client.tags(f"tag={quote(second, safe='')}") == [(second, 1)]
    assert client.tag(f"{group}:none").status == 404
    assert {(course, 2), (second, 1)} <= set(client.tags())


def test_an_index_lists_the_tags_of_a_group_in_order_however_few_a_page_has(
    sekiban: Client, course: str
) -> None:
    group = course.partition(":")[0]
    second = f"{group}:ä b/2%"
    for tag in (second, course):
        assert sekiban.append(tag).status == 201
    assert sekiban.tags(f"group={group}", "limit=1") == [(course, 1), (second, 1)]


def test_what_needs_type_heads_is_refused_where_the_stage_has_none(client: Client) -> None:
    answer = client.query({"items": [{"types": ["Subscribed"]}]})
    assert (answer.status, answer.json["field"]) == (400, "query.items")


def test_a_body_that_fits_no_item_is_in_the_bucket_and_comes_as_a_link(pages: Client, course: str) -> None:
    event = {"data": [uuid.uuid4().hex for _ in range(30_000)]}
    assert pages.append(course, event=event).status == 201
    (found,) = pages.query(asked(course)).json["events"]
    assert "data" not in found
    assert found["dataUrl"]["bytes"] > 400_000


def test_without_a_stream_of_everything_all_events_are_neither_listed_nor_counted(pages: Client) -> None:
    assert pages.call("GET", "/events/count").status == pages.call("GET", "/events").status == 400


def test_an_unsigned_request_is_refused_by_every_route(client: Client, course: str) -> None:
    at = client.at
    for method, path in (
        ("POST", at.events),
        ("POST", at.query),
        ("GET", f"{at.events}/{uuid.uuid4()}"),
        ("GET", at.tags),
        ("GET", f"{at.tags}/{course}"),
    ):
        body = {} if method == "POST" else None
        assert client.call(method, path, body, signed=False).status == 403, path
