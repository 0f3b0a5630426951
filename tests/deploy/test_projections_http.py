"""States of projections as deployed: through the gateway, with the functions' own permissions."""

from __future__ import annotations

import base64
import gzip
import os
from itertools import count

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.sekiban.http.operations import MOST_SHOWN
from epochal.contrib.sekiban.projections import ProjectionStates, states_of
from epochal.deployment import Deployment
from epochal.dynamo.interpreter import S3Bucket, interpreter
from epochal.store.driver import Driver, Meter
from tests.deploy.test_http_api import Caller, send

_numbers = count()
LAST = "063934128000000000000000000001"


@pytest.fixture
def call(deployment: LocalDeployment) -> Caller:
    return Caller(deployment)


@pytest.fixture
def name() -> str:
    """A projection that no other test has."""
    return f"Courses{next(_numbers)}"


@pytest.fixture
def states(deployment: LocalDeployment) -> ProjectionStates:
    """The same states, past the API."""
    driver = Driver(execute=interpreter(deployment.endpoint.client("dynamodb")), meter=Meter())
    bucket = S3Bucket(s3=deployment.endpoint.client("s3"), name=deployment.settings.bucket)
    return states_of(Deployment(settings=deployment.settings, driver=driver, bucket=bucket))


def test_a_state_goes_up_comes_back_is_listed_and_deleted(call: Caller, name: str) -> None:
    path = f"/projections/{name}"
    body = {"eventsProcessed": 2, "lastSortableId": LAST, "state": {"text": "Zürich", "n": 1.5}}
    assert call("PUT", f"{path}/v1", body).status == 200
    behind = call("PUT", f"{path}/v1", {**body, "eventsProcessed": 1})
    assert (behind.status, behind.json["eventsProcessed"]) == (409, 2)
    found = call("GET", f"{path}/v1")
    assert found.json["state"] == body["state"]
    assert call("GET", f"{path}/v1", If_None_Match=found.headers["ETag"]).status == 304
    assert [each["version"] for each in call("GET", path).json["versions"]] == ["v1"]
    assert call("DELETE", f"{path}/v1").status == 200
    assert call("GET", f"{path}/v1").status == 404


def test_a_large_state_goes_to_the_bucket_and_comes_from_there(
    call: Caller, name: str, states: ProjectionStates
) -> None:
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
    call: Caller, name: str, states: ProjectionStates
) -> None:
    for version, size in (("v1", 500_000), ("v2", MOST_SHOWN + 1)):
        states.save(name, version, [os.urandom(size)], events_processed=1, last_sortable_id=LAST)
        stored = states.find(name, version)
        assert stored is not None
        states.objects.delete(stored.offload_key or "")
        answer = call("GET", f"/projections/{name}/{version}")
        assert (answer.status, answer.json["type"]) == (500, "urn:epochal:problem:missing-body")


def test_an_unsigned_request_is_refused_by_every_route(call: Caller) -> None:
    for method, path in (
        ("GET", "/projections/P"),
        ("GET", "/projections/P/v1"),
        ("PUT", "/projections/P/v1"),
        ("DELETE", "/projections/P/v1"),
    ):
        assert call(method, path, {} if method == "PUT" else None, signed=False).status == 403, path
