"""Aggregates as they are deployed: through the gateway, with the functions' own permissions."""

from __future__ import annotations

from itertools import count

import pytest

from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.items import HEAD, site_of
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.local.deploy import LocalDeployment
from epochal.dynamo.interpreter import interpreter
from epochal.plan.ops import Set, Update
from epochal.plan.values import number
from epochal.store.driver import Driver, Meter
from tests.deploy.test_http_api import Caller

_numbers = count()


@pytest.fixture
def call(deployment: LocalDeployment) -> Caller:
    return Caller(deployment)


@pytest.fixture
def order() -> AggregateId:
    """One that no other test uses."""
    return aggregate_id("order", f"http-{next(_numbers)}")


@pytest.fixture
def tables(deployment: LocalDeployment) -> AggregateStore:
    """The same aggregates, past the API."""
    driver = Driver(execute=interpreter(deployment.endpoint.client("dynamodb")), meter=Meter())
    return AggregateStore(driver=driver, site=site_of(deployment.settings))


def path(order: AggregateId) -> str:
    return f"/aggregates/{order.type}/{order.value}"


def test_what_is_appended_is_read_back_also_past_the_api(
    call: Caller, order: AggregateId, tables: AggregateStore
) -> None:
    first = {"events": [{"type": "Placed", "data": {"n": 1.5}}], "snapshot": {"text": "Zürich"}}
    placed = call("POST", f"{path(order)}/events", first, If_None_Match="*")
    assert placed.status == 201, placed.content
    paid = call(
        "POST",
        f"{path(order)}/events",
        {"events": [{"type": "Paid", "data": 2}]},
        If_Match=placed.headers["ETag"],
    )
    assert (paid.status, paid.json["version"], paid.json["lastSeqNr"]) == (201, 2, 2)
    whole = call("GET", path(order))
    assert (whole.json["snapshot"], whole.json["snapshotSeqNr"]) == ({"text": "Zürich"}, 1)
    assert [event["type"] for event in whole.json["events"]] == ["Paid"]
    assert call("GET", path(order), If_None_Match=whole.headers["ETag"]).status == 304
    page = call("GET", f"{path(order)}/events?from=1&limit=1").json
    assert ([event["data"] for event in page["events"]], page["next"]) == ([{"n": 1.5}], 2)
    assert [event.type for event in tables.events_after(order)] == ["Placed", "Paid"]


def test_a_stale_etag_is_refused_and_nothing_is_written(call: Caller, order: AggregateId) -> None:
    body = {"events": [{"type": "A", "data": 1}], "snapshot": {}}
    stale = call("POST", f"{path(order)}/events", body).headers["ETag"]
    assert call("POST", f"{path(order)}/events", body, If_Match=stale).status == 201
    assert call("POST", f"{path(order)}/events", body, If_Match=stale).status == 412
    assert call("GET", path(order)).json["lastSeqNr"] == 2


def test_after_another_library_the_last_number_is_looked_up_in_the_journal(
    call: Caller, order: AggregateId, tables: AggregateStore
) -> None:
    """It leaves our attributes stale, so both functions need to read the journal by key."""
    body = {"events": [{"type": "A", "data": 1}], "snapshot": {"seq_nr": 1}}
    call("POST", f"{path(order)}/events", body)
    _raise_version(tables, order)
    found = call("GET", path(order))
    assert (found.status, found.headers["ETag"]) == (200, '"2.1"')
    assert (
        call("POST", f"{path(order)}/events", {"events": [{"type": "B", "data": 2}]}).json["lastSeqNr"] == 2
    )


def test_types_that_the_stage_does_not_register_are_refused(call: Caller) -> None:
    answer = call("GET", "/aggregates/invoice/1")
    assert (answer.status, answer.json["field"]) == (400, "type")


def test_an_unsigned_request_is_refused(call: Caller, order: AggregateId) -> None:
    assert call("GET", path(order), signed=False).status == 403


def _raise_version(tables: AggregateStore, order: AggregateId) -> None:
    head = Update(
        table=tables.site.snapshot,
        key=tables.site.keys.key(order, HEAD),
        sets=(Set("version", number(2)),),
    )
    tables.driver.execute(head)
