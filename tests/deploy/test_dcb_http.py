"""Tagged events and states of projections as deployed: through the gateway, with the functions' own permissions."""

from __future__ import annotations

import base64
import gzip
import os
import uuid
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.objects import S3Objects
from epochal.http.projections.representation import MOST_SHOWN
from epochal.local.deploy import LocalDeployment
from epochal.store.driver import Driver, Meter
from epochal.store.projections import ProjectionStates, states_of
from tests.deploy.test_http_api import Answer, Caller, send

_numbers = count()
LAST = "063934128000000000000000000001"


@pytest.fixture
def call(deployment: LocalDeployment) -> Caller:
    return Caller(deployment)


@pytest.fixture
def course() -> str:
    """A tag that no other test uses, of a group of its own."""
    return f"course{next(_numbers)}:1"


@pytest.fixture
def states(deployment: LocalDeployment) -> ProjectionStates:
    """The same states, past the API."""
    driver = Driver(execute=interpreter(deployment.endpoint.client("dynamodb")), meter=Meter())
    objects = S3Objects(deployment.endpoint.client("s3"), deployment.settings.bucket)
    return states_of(deployment.settings, driver, objects)


def append(call: Caller, *tags: str, **body: Any) -> Answer:
    events = [{"type": "Subscribed", "data": {"n": 1.5}, "tags": list(tags), **body.pop("event", {})}]
    return call("POST", "/dcb/events", {"events": events, **body})


def asked(*tags: str) -> dict[str, Any]:
    return {"items": [{"tags": [tag]} for tag in tags]}


def test_a_read_decides_an_append_and_the_second_is_refused_with_what_came_between(
    call: Caller, course: str
) -> None:
    student, other = f"{course}-7", f"{course}-8"
    query = asked(course, student)
    read = call("POST", "/dcb/query", {"query": query})
    assert (read.status, read.json["events"]) == (200, []), read.content
    position = read.json["position"]
    first = append(call, course, student, failIf=query, after=position)
    assert first.status == 201, first.content
    second = append(call, course, other, failIf=query, after=position)
    assert (second.status, second.json["type"]) == (409, "urn:epochal:problem:condition-failed")
    assert [event["tags"] for event in second.json["events"]] == [[course, student]]
    third = append(call, course, other, failIf=query, after=second.json["position"])
    assert third.status == 201, third.content
    events, start = [], {}
    while True:
        page = call("POST", "/dcb/query", {"query": query, "limit": 1, **start}).json
        events += page["events"]
        if page["next"] is None:
            break
        start = {"from": page["next"]}
    assert [event["tags"] for event in events] == [[course, student], [course, other]]
    assert page["position"] is not None


def test_heads_that_an_append_does_not_move_are_checked_and_unrelated_ones_read(
    call: Caller, course: str
) -> None:
    """A condition on one tag, events of another: the transaction only checks the first."""
    answer = append(call, f"{course}-x", failIf=asked(course))
    assert answer.status == 201, answer.content
    assert append(call, course, failIf=asked(course), after=answer.json["position"]).status == 201
    stale = append(call, f"{course}-x", failIf=asked(course), after=answer.json["position"])
    assert (stale.status, stale.json["more"]) == (409, False)


def test_an_event_is_found_by_its_id_and_a_repeat_of_its_append_is_harmless(
    call: Caller, course: str
) -> None:
    own = {"id": str(uuid.uuid4())}
    made = append(call, course, event=own, failIf=asked(course))
    again = append(call, course, event=own, failIf=asked(course))
    assert (made.json["replayed"], again.status, again.json["replayed"]) == (False, 201, True)
    found = call("GET", f"/dcb/events/{own['id']}").json
    assert (found["data"], found["tags"]) == ({"n": 1.5}, [course])
    assert call("GET", f"/dcb/events/{uuid.uuid4()}").status == 404


def test_tags_are_listed_by_group_by_name_and_all(call: Caller, course: str) -> None:
    group = course.partition(":")[0]
    second = f"{group}:ä b/2%"
    for tag in (course, course, second):
        assert append(call, tag).status == 201
    listed = call("GET", f"/dcb/tags?group={group}&limit=1").json
    rest = call("GET", f"/dcb/tags?group={group}&from={quote(listed['next'], safe='')}").json
    assert [*listed["tags"], *rest["tags"]] == [{"tag": course, "events": 2}, {"tag": second, "events": 1}]
    assert call("GET", f"/dcb/tags/{quote(course, safe='')}").json["events"] == 2
    assert call("GET", f"/dcb/tags?tag={quote(second, safe='')}").json["tags"] == rest["tags"]
    assert call("GET", f"/dcb/tags/{group}:none").status == 404
    everything = call("GET", "/dcb/tags").json
    assert everything["next"] is None
    assert {course, second} <= {each["tag"] for each in everything["tags"]}


def test_what_needs_type_heads_is_refused_where_the_stage_has_none(call: Caller) -> None:
    answer = call("POST", "/dcb/query", {"query": {"items": [{"types": ["Subscribed"]}]}})
    assert (answer.status, answer.json["field"]) == (400, "query.items")


def test_a_state_goes_up_comes_back_is_listed_and_deleted(call: Caller, course: str) -> None:
    name = f"/projections/{course.partition(':')[0]}"
    body = {"eventsProcessed": 2, "lastSortableId": LAST, "state": {"text": "Zürich", "n": 1.5}}
    assert call("PUT", f"{name}/v1", body).status == 200
    behind = call("PUT", f"{name}/v1", {**body, "eventsProcessed": 1})
    assert (behind.status, behind.json["eventsProcessed"]) == (409, 2)
    found = call("GET", f"{name}/v1")
    assert found.json["state"] == body["state"]
    assert call("GET", f"{name}/v1", If_None_Match=found.headers["ETag"]).status == 304
    assert [each["version"] for each in call("GET", name).json["versions"]] == ["v1"]
    assert call("DELETE", f"{name}/v1").status == 200
    assert call("GET", f"{name}/v1").status == 404


def test_a_large_state_goes_to_the_bucket_and_comes_from_there(
    call: Caller, course: str, states: ProjectionStates
) -> None:
    name = course.partition(":")[0]
    state = os.urandom(1_000_000)
    sent = {"eventsProcessed": 1, "lastSortableId": LAST, "state64": base64.b64encode(state).decode()}
    put = call("PUT", f"/projections/{name}/v1", sent)
    assert put.status == 200, put.content
    assert base64.b64decode(call("GET", f"/projections/{name}/v1").json["state64"]) == state
    huge = os.urandom(MOST_SHOWN + 1)
    states.save(name, "v1", [huge], events_processed=2, last_sortable_id=LAST)
    link = call("GET", f"/projections/{name}/v1").json["stateUrl"]
    assert gzip.decompress(send("GET", link["url"], b"", {}).content) == huge


def test_a_state_whose_object_is_gone_is_a_named_error(
    call: Caller, course: str, states: ProjectionStates
) -> None:
    name = course.partition(":")[0]
    for version, size in (("v1", 500_000), ("v2", MOST_SHOWN + 1)):
        states.save(name, version, [os.urandom(size)], events_processed=1, last_sortable_id=LAST)
        stored = states.find(name, version)
        assert stored is not None
        states.objects.delete(stored.offload_key or "")
        answer = call("GET", f"/projections/{name}/{version}")
        assert (answer.status, answer.json["type"]) == (500, "urn:epochal:problem:missing-body")


def test_an_unsigned_request_is_refused_by_every_route(call: Caller, course: str) -> None:
    for method, path in (
        ("POST", "/dcb/events"),
        ("POST", "/dcb/query"),
        ("GET", f"/dcb/events/{uuid.uuid4()}"),
        ("GET", "/dcb/tags"),
        ("GET", f"/dcb/tags/{course}"),
        ("GET", "/projections/P"),
        ("GET", "/projections/P/v1"),
        ("PUT", "/projections/P/v1"),
        ("DELETE", "/projections/P/v1"),
    ):
        body = {} if method in ("POST", "PUT") else None
        assert call(method, path, body, signed=False).status == 403, path
