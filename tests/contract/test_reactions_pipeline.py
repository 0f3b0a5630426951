"""From appends of every layout to a handler: G6 to G9 over AWS's own DynamoDB, under the rules of what lies between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from epochal.hosting.wakeups import CAREFUL_FROM
from epochal.reactions.reactor import DIED
from tests.simulation.reaction_pipeline import Pipeline
from tests.support.tables import Tables

pytestmark = pytest.mark.ddbl

PARTITIONS = {0, 1, 10_000, 20_000, 20_001}


@pytest.fixture
def streams_client(ddbl_tables: Tables) -> Iterator[Any]:
    endpoint = ddbl_tables.endpoint
    client = boto3.client("dynamodbstreams", endpoint_url=endpoint.url, region_name=endpoint.region)
    yield client
    client.close()


@pytest.fixture
def pipeline(ddbl_tables: Tables, streams_client: Any) -> Pipeline:
    return Pipeline(tables=ddbl_tables, table_streams=streams_client)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.proof)])
def test_every_event_of_every_layout_is_handled_in_order_whatever_fails_or_comes_twice(
    ddbl_tables: Tables, streams_client: Any, seed: int
) -> None:
    pipeline = Pipeline(tables=ddbl_tables, table_streams=streams_client, seed=seed, faults=0.1)
    for _ in range(2):
        pipeline.append(8)
        pipeline.flow()
    assert pipeline.given_up == []
    assert pipeline.missing() == []
    assert pipeline.parked() == {}
    assert pipeline.queue.dead == []


def test_a_stream_whose_event_cannot_be_handled_is_parked_and_the_others_go_on(pipeline: Pipeline) -> None:
    pipeline.append(8)
    stream = max(pipeline.truth, key=lambda name: (name.startswith("account"), pipeline.truth[name]))
    pipeline.handler.poison = {(stream, 1)}
    pipeline.flow()
    assert {name for name, _ in pipeline.missing()} == {stream}
    assert [index for _, index in pipeline.missing()] == list(range(1, pipeline.truth[stream]))
    partition, index, cause = pipeline.parked()[stream]
    assert (index, cause) == (1, "ValueError: poison")
    pipeline.append(4)
    pipeline.flow()
    assert {name for name, _ in pipeline.missing()} == {stream}
    pipeline.handler.poison.clear()
    replayed = pipeline.invoke({"command": "replay", "partition": partition, "stream": stream})
    assert replayed["unparked"]
    assert pipeline.missing() == []
    assert pipeline.parked() == {}
    assert pipeline.queue.dead == []


@pytest.mark.proof
def test_an_event_that_processes_die_of_is_found_out_parked_and_replayed(pipeline: Pipeline) -> None:
    pipeline.append(6)
    pipeline.handler.deadly = {("Order-1", 0)}
    pipeline.truth["Order-1"] = max(1, pipeline.truth["Order-1"])
    pipeline.flow()
    assert {name for name, _ in pipeline.missing()} == {"Order-1"}
    partition, index, cause = pipeline.parked()["Order-1"]
    assert (index, cause) == (0, DIED)
    died_before_it_was_looked_for = CAREFUL_FROM - 1
    assert pipeline.handler.deaths == died_before_it_was_looked_for + pipeline.reaction["attempts"]
    assert pipeline.queue.dead == []
    pipeline.handler.deadly.clear()
    assert pipeline.invoke({"command": "replay", "partition": partition, "stream": "Order-1"})["unparked"]
    assert pipeline.missing() == []


@pytest.mark.proof
def test_what_may_not_be_parked_ends_in_the_dead_letter_queue_and_goes_on_once_it_is_mended(
    pipeline: Pipeline,
) -> None:
    pipeline.reaction["on_failure"] = "block"
    pipeline.append(6)
    pipeline.handler.poison = {("course:1", 0)}
    pipeline.truth["course:1"] = max(1, pipeline.truth["course:1"])
    pipeline.flow()
    assert {message.receives for message in pipeline.queue.dead} == {pipeline.max_receives}
    (blocked,) = {message.group for message in pipeline.queue.dead}
    assert {partition for partition, _, _ in pipeline.handler.handled} >= PARTITIONS - {int(blocked)}
    pipeline.handler.poison.clear()
    pipeline.clock.sleep(60)
    assert pipeline.invoke({})["woken"] == len(PARTITIONS)
    pipeline.react()
    assert pipeline.missing() == []


def test_wake_ups_that_never_arrive_are_made_up_for_by_the_schedule(pipeline: Pipeline) -> None:
    pipeline.append(6)
    pipeline.topic.deaf = True
    pipeline.flow()
    assert pipeline.handler.handled == set()
    assert pipeline.invoke({}) == {"woken": len(PARTITIONS)}
    pipeline.react()
    assert pipeline.missing() == []


@pytest.mark.proof
def test_a_long_catch_up_goes_on_by_wake_ups_of_its_own_and_no_message_fails(pipeline: Pipeline) -> None:
    pipeline.append(10)
    pipeline.reaction["parallel"] = 1  # simulated time passes for one after the other
    pipeline.function_seconds, pipeline.handler.seconds = 12.0, 1.0
    pipeline.index()
    told = pipeline.queue.sent
    pipeline.react(pollers=1)  # two would use up each other's simulated time
    assert pipeline.missing() == []
    assert pipeline.queue.sent > told
    assert pipeline.queue.raised == []
    assert pipeline.queue.most_receives == 1
    assert pipeline.queue.dead == []
