"""Half a minute of `make load` against the session's deployment, and the same judge where something is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.load.reporting import report
from bench.load.run import Load
from epochal.local.deploy import LocalDeployment

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

SECONDS = 20


@pytest.fixture(scope="module")
def load(deployment: LocalDeployment) -> Load:
    load = Load(deployment=deployment, tell=lambda line: sys.stdout.write(f"{line}\n"))
    load.put_on(SECONDS)
    for table in report(load):
        table.print()
    return load


def test_under_load_nothing_is_lost_doubled_or_out_of_order_in_any_layout_or_in_the_feed(load: Load) -> None:
    assert list(load.differences()) == []


def test_the_load_was_mixed_and_contended(load: Load) -> None:
    assert {"stream: append", "aggregate: append", "tagged: append", "feed: page"} <= set(
        load.measures.operations
    )
    assert (
        min(sum(name.startswith(kind) for name in load.stored) for kind in ("Load-", "order-", "course:"))
        >= 3
    )
    for operation in ("stream: append", "aggregate: append"):
        assert load.measures.operations[operation].statuses[412] > 0
    assert load.measures.operations["tagged: append"].statuses[409] > 0
    assert load.ledger.events > 200
    assert len(load.lag.seconds) > 50


def test_no_answer_was_a_fault(load: Load) -> None:
    statuses = {status for each in load.measures.operations.values() for status in each.statuses}
    assert statuses <= {200, 201, 404, 409, 412}


def test_an_event_taken_out_of_a_tip_is_missed(load: Load, deployment: LocalDeployment) -> None:
    stream = max(
        (name for name in load.stored if name.startswith("Load-")), key=lambda name: len(load.stored[name])
    )
    count = len(load.stored[stream])

    with last_event_taken_out(deployment, stream):
        found = list(load.differences())

    assert any(each.startswith(f"{stream}: an event of ") and each.endswith("is missing") for each in found)
    assert f"{stream}: a follower met {count} of {count - 1} events" in found
    assert f"{stream}: the feed has {count} events, the store {count - 1}" in found


@contextmanager
def last_event_taken_out(deployment: LocalDeployment, stream: str) -> Iterator[None]:
    """A stream's Tip without its last event, counted down as if it had never been appended, for a while."""
    client = deployment.endpoint.client("dynamodb")
    key = {"p": {"S": stream}, "i": {"N": "2147483647"}}
    whole = client.get_item(TableName=deployment.settings.table("tips"), Key=key, ConsistentRead=True)["Item"]
    short = {"n": {"N": str(int(whole["n"]["N"]) - 1)}, "a": {"N": "0"}}
    short |= {name: {"L": whole[name]["L"][:-1]} for name in "ec"}
    client.put_item(TableName=deployment.settings.table("tips"), Item=whole | short)
    yield
    client.put_item(TableName=deployment.settings.table("tips"), Item=whole)
