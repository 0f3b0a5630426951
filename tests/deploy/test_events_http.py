"""Tagged events in pages as deployed: through the gateway, with the functions' own permissions."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

import pytest

from epochal.local.deploy import LocalDeployment
from tests.deploy.test_http_api import Answer, Caller


@pytest.fixture
def call(deployment: LocalDeployment) -> Caller:
    return Caller(deployment)


@pytest.fixture
def course() -> str:
    """A tag that no other test uses, of a group of its own."""
    return f"course{uuid.uuid4().hex}:1"


def append(call: Caller, *tags: str, **body: Any) -> Answer:
    event = {"type": "Subscribed", "data": {"n": 1.5}, "tags": list(tags), **body.pop("event", {})}
    return call("POST", "/events", {"events": [event], **body})


def asked(*tags: str) -> dict[str, Any]:
    return {"items": [{"tags": [tag]} for tag in tags]}


def test_a_read_decides_an_append_and_the_second_is_refused_with_what_came_between(
    call: Caller, course: str
) -> None:
    student, other = f"{course}-7", f"{course}-8"
    query = asked(course, student)
    read = call("POST", "/events/query", {"query": query})
    assert (read.status, read.json["events"]) == (200, [])
    first = append(call, course, student, failIf=query, after=read.json["position"])
    assert first.status == 201, first
    second = append(call, course, other, failIf=query, after=read.json["position"])
    assert second.status == 409
    assert [each["tags"] for each in second.json["events"]] == [[course, student]]
    # The other tag is none of the event's: it is a fence that a check of its own holds.
    third = append(call, f"{course}-9", failIf=query, after=second.json["position"])
    assert third.status == 201, third


def test_an_event_that_a_tag_only_refers_to_is_read_found_by_its_id_and_replayed(
    call: Caller, course: str
) -> None:
    student, own = f"{course}-7", str(uuid.uuid4())
    event = {
        "id": own,
        "data": {"text": uuid.uuid4().hex * 100, "more": [uuid.uuid4().hex for _ in range(60)]},
    }
    assert append(call, course, student, event=event).status == 201
    assert append(call, course, student, event=event).json["replayed"]
    (found,) = call("POST", "/events/query", {"query": asked(student)}).json["events"]
    assert found["data"] == event["data"]
    assert call("GET", f"/events/{own}").json == found
    assert call("GET", f"/events?tag={quote(student, safe='')}").json == {"events": [found], "next": None}
    assert call("GET", f"/events/{uuid.uuid4()}").status == 404


def test_a_body_that_fits_no_item_is_in_the_bucket_and_comes_as_a_link(call: Caller, course: str) -> None:
    event = {"data": [uuid.uuid4().hex for _ in range(30_000)]}
    assert append(call, course, event=event).status == 201
    (found,) = call("POST", "/events/query", {"query": asked(course)}).json["events"]
    assert "data" not in found
    assert found["dataUrl"]["bytes"] > 400_000


def test_tags_are_listed_and_counted_and_all_events_are_not(call: Caller, course: str) -> None:
    group = course.partition(":")[0]
    for tag in (course, course, f"{group}:2"):
        assert append(call, tag).status == 201
    counts = {each["tag"]: each["events"] for each in call("GET", f"/tags?group={group}").json["tags"]}
    assert counts == {course: 2, f"{group}:2": 1}
    assert call("GET", f"/tags/{quote(course, safe='')}").json["events"] == 2
    assert call("GET", f"/tags/{group}:none").status == 404
    assert call("GET", "/events/count").status == call("GET", "/events").status == 400
