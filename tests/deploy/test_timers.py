"""Timers as deployed: from an append to the feed, the reaction that arms, the queue or a schedule, and back to the
stream, each with no more permissions than it is given.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.timers.protocol import BEGINNING, Wake, read_wake_up
from epochal.layout.tables import READ_MODELS, TIMERS
from epochal.model.events import Event
from epochal.model.moments import Ticks
from epochal.model.tags import Query, QueryItem
from epochal.scheduling import after, cancel, later
from epochal.store.streams import Streams
from tests.deploy.test_permissions import allowed, allowed_on_tables, expected_on_tables, role_of
from tests.support.permissions import on
from tests.surfaces.stacks.test_timers import FIRING

NAME = "epochal-dev-timers"
SECONDS = 120.0


@pytest.fixture
def streams(furnished: LocalDeployment) -> Streams:
    return furnished.open().streams


def types(streams: Streams, stream: str) -> list[str]:
    return [each.type for each in streams.read(stream)]


def until(holds: Callable[[], Any]) -> Any:
    """What `holds` returns once it is true."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        if found := holds():
            return found
        time.sleep(0.3)
    pytest.fail("it did not come to hold")


def items(furnished: LocalDeployment) -> list[str]:
    found = furnished.endpoint.client("dynamodb").scan(TableName=NAME)["Items"]
    return [each["s"]["S"] for each in found]


def test_a_timer_fires_in_its_stream_a_few_seconds_later_and_one_that_is_called_off_does_not(
    furnished: LocalDeployment, streams: Streams
) -> None:
    soon = later("reminder", [Event.json("Reminded", {"again": False})], at=after(seconds=3))
    never = later("other", [Event.json("Never", {})], at=after(seconds=3))
    streams.append("Loan-1", [Event.json("Lent", {}), soon, never])
    streams.append("Loan-1", [cancel("other")])
    set_at = streams.load("Loan-1").events[1]  # type: ignore[union-attr]
    until(lambda: types(streams, "Loan-1")[-1:] == ["$timer-fired"])
    assert types(streams, "Loan-1") == [
        *("Lent", "$timer-set", "$timer-set", "$timer-cancelled"),
        *("Reminded", "$timer-fired"),
    ]
    came = next(each for each in streams.read("Loan-1") if each.type == "Reminded")
    assert came.causation_id == "Loan-1@1"
    due = datetime.fromisoformat(set_at.timestamp) + timedelta(seconds=3)
    assert datetime.fromisoformat(came.timestamp) >= due, "never early"
    until(lambda: not [each for each in items(furnished) if "#Loan-1#" in each])


def test_a_timer_of_tags_fires_too(furnished: LocalDeployment) -> None:
    tagged = furnished.open().tagged
    came = Event.json("SeatReleased", {}, tags=("seat:12A",))
    tagged.append([later("release", [came], at=after(seconds=1), tags=("seat:12A", "flight:LX38"))])
    released = furnished.open().tagged

    def there() -> bool:
        query = Query(items=(QueryItem(tags=frozenset({"seat:12A"}), types=frozenset({"SeatReleased"})),))
        return len(released.read(query).events) == 1

    until(there)


def test_what_is_far_off_is_a_schedule_that_wakes_the_function_and_is_gone(
    furnished: LocalDeployment, streams: Streams
) -> None:
    scheduler = furnished.endpoint.client("scheduler")

    def there() -> set[str]:
        return {each["Name"] for each in scheduler.list_schedules(GroupName=NAME)["Schedules"]}

    before = there()
    reminders = [later(name, [Event.json("Reminded", {})], at=after(days=14)) for name in ("a", "b")]
    streams.append("Loan-2", reminders)
    until(lambda: len([each for each in items(furnished) if "#Loan-2#" in each]) == 2)
    (name,) = until(lambda: there() - before)
    found = scheduler.get_schedule(Name=name, GroupName=NAME)
    slot = read_wake_up(found["Target"]["Input"])
    assert (slot.timer, slot.name) == (None, name)
    # The embedded AWS waits for no fortnight: its schedule is brought forward, its timers are not.
    moment = (datetime.now(UTC) + timedelta(seconds=1)).strftime("at(%Y-%m-%dT%H:%M:%S)")
    again = {name: found[name] for name in ("FlexibleTimeWindow", "Target", "ActionAfterCompletion")}
    scheduler.update_schedule(Name=slot.name, GroupName=NAME, ScheduleExpression=moment, **again)
    until(lambda: name not in there())
    # The function has found its timers early, and sends a message for each, which the queue keeps back.
    sqs = furnished.endpoint.client("sqs")
    url = sqs.get_queue_url(QueueName=NAME)["QueueUrl"]
    kept = "ApproximateNumberOfMessagesDelayed"
    until(lambda: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[kept])["Attributes"][kept] == "2")
    assert types(streams, "Loan-2") == ["$timer-set", "$timer-set"]


def test_a_tick_fires_what_no_wake_up_came_for(furnished: LocalDeployment, streams: Streams) -> None:
    """Its wake-up is taken out of the queue before it comes; those of other timers stay there."""
    sqs, functions = furnished.endpoint.clients("sqs", "lambda")
    mapping = functions.list_event_source_mappings(FunctionName=NAME)["EventSourceMappings"][0]["UUID"]
    with _disabled(functions, mapping):
        past = datetime.now(UTC) - timedelta(minutes=30)
        streams.append("Loan-3", [later("reminder", [Event.json("Reminded", {})], at=past)])
        until(lambda: [each for each in items(furnished) if "#Loan-3#" in each])
        until(lambda: _take_wake_up(sqs, "Loan-3"))
    answer = functions.invoke(FunctionName=NAME, Payload=b"{}")
    assert "FunctionError" not in answer
    assert json.loads(answer["Payload"].read())["fired"] >= 1
    assert types(streams, "Loan-3") == ["$timer-set", "Reminded", "$timer-fired"]


def _take_wake_up(sqs: Any, stream: str) -> bool:
    """Delete the wake-up of a stream's timer from the queue that all timers share, if it is there."""
    url = sqs.get_queue_url(QueueName=NAME)["QueueUrl"]
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1)
    for message in messages.get("Messages", []):
        timer = read_wake_up(message["Body"]).timer
        if timer is not None and timer.stream == stream:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return True
    return False


@contextmanager
def _disabled(functions: Any, mapping: str) -> Iterator[None]:
    functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    time.sleep(1)
    try:
        yield
    finally:
        functions.update_event_source_mapping(UUID=mapping, Enabled=True)


@pytest.mark.parametrize("name", ["timers", "reaction-timers"])
def test_under_its_role_a_function_can_do_what_the_templates_say_and_nothing_else(
    furnished: LocalDeployment, name: str
) -> None:
    wearing = role_of(furnished, name)
    of_reaction = {pair for pair in expected_on_tables("reaction") if pair[1] != READ_MODELS.kind}
    arming = of_reaction | on(TIMERS.kind, "PutItem")
    assert allowed_on_tables(wearing) == (FIRING if name == "timers" else arming)
    sqs, queues = wearing.client("sqs"), furnished.endpoint.client("sqs")
    urls = {each: queues.get_queue_url(QueueName=each)["QueueUrl"] for each in (NAME, f"{NAME}-failed")}
    # A wake-up that finds nothing: whatever else is sent there fails in the function that other tests use.
    none_due = Wake(shard=0, since=BEGINNING, until=Ticks(1)).body
    can = {each: allowed(sqs.send_message, QueueUrl=url, MessageBody=none_due) for each, url in urls.items()}
    assert can == {NAME: True, f"{NAME}-failed": False}
    asked = {"FlexibleTimeWindow": {"Mode": "OFF"}, "ScheduleExpression": "at(2030-01-01T00:00:00)"}
    target = {"Arn": "arn:aws:sqs:us-east-1:000000000000:q", "RoleArn": "arn:aws:iam::000000000000:role/r"}
    schedule = partial(wearing.client("scheduler").create_schedule, Name=f"by-{name}", Target=target, **asked)
    assert allowed(schedule, GroupName=NAME) is (name == "reaction-timers")
    assert not allowed(wearing.client("scheduler").delete_schedule, Name="by-reaction-timers", GroupName=NAME)
    if name == "reaction-timers":
        furnished.endpoint.client("scheduler").delete_schedule(Name=f"by-{name}", GroupName=NAME)
