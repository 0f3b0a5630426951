"""Timers as functions fire them: what they answer their queue, what they send, and what they count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import boto3
import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from epochal.contrib.timers.hosting import TimerQueue, TimersFunction, sent_or_swept
from epochal.contrib.timers.protocol import GRACE, NEAR, Armed, Sent, Wake
from epochal.errors import InvalidRequest, Refused, Unavailable
from epochal.hosting.leases import Leases
from epochal.hosting.metrics import Metrics
from epochal.layout.tables import TIMERS
from epochal.model.events import Event
from epochal.model.moments import PER_SECOND, Ticks
from epochal.plan.ops import Delete, Op, Put, Query
from epochal.scheduling import cancel
from epochal.settings import Settings
from tests.contrib.timers.world import BEGIN, World
from tests.support.leases import Visibility, once
from tests.surfaces.hosting.test_wakeups import Context

MINUTE = 60
SCHEDULES = (
    "epochal-prod-timers",
    "arn:aws:sqs:eu-west-1:123456789012:epochal-prod-timers",
    "arn:aws:iam::123456789012:role/timers",
)
GROUP = SCHEDULES[0]
SETTINGS = Settings.of(timers_queue="queue", timers_schedules=SCHEDULES)


def record(id_: str, body: str) -> dict[str, Any]:
    """A message, as Lambda hands it on the first time."""
    attributes = {"ApproximateReceiveCount": "1"}
    return {"messageId": id_, "receiptHandle": f"receipt {id_}", "body": body, "attributes": attributes}


@dataclass
class Queue(Visibility):
    """A client of SQS that takes messages, or refuses them."""

    messages: list[tuple[str, int]] = field(default_factory=list)
    refuses: str = ""
    hidden: list[dict[str, int]] = field(default_factory=list)

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "queue"
        assert 0 < len(Entries) <= 10
        if self.refuses:
            return {"Failed": [{"Id": each["Id"], "Code": self.refuses} for each in Entries]}
        assert len({each["Id"] for each in Entries}) == len(Entries)
        self.messages += [(each["MessageBody"], each["DelaySeconds"]) for each in Entries]
        return {}

    def records(self, *, by: int) -> list[dict[str, Any]]:
        """What is not kept back for longer than `by`, as Lambda hands it on; taken."""
        came = [body for body, seconds in self.messages if seconds <= by]
        self.messages = [each for each in self.messages if each[1] > by]
        return [record(f"m{number}", body) for number, body in enumerate(came)]


@pytest.fixture
def scheduler() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client(
            "scheduler", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.create_schedule_group(Name=GROUP)
        yield client


@pytest.fixture
def world() -> World:
    return World()


def armed(due: Ticks, number: int = 0) -> Armed:
    return Armed(due=due, layout="pages", stream=f"Loan-{number}", place=0)


def function(world: World, queue: Queue, scheduler: Any = None) -> TimersFunction:
    send = TimerQueue(sqs=queue, scheduler=scheduler, settings=SETTINGS)  # type: ignore[arg-type]
    logger = Logger(service="timers")
    return TimersFunction(
        engine=replace(world.engine, send=send),
        logger=logger,
        metrics=Metrics("timers"),
        leases=Leases(client=queue, url="queue", logger=logger, beats=once),
    )


def counted(printed: str) -> dict[str, float]:
    """What the lines of metrics have."""
    lines = [json.loads(line) for line in printed.splitlines() if "CloudWatchMetrics" in line]
    return {name: value for line in lines for name, value in line.items() if name.startswith("Timers.")}


def test_wake_ups_soon_are_messages_that_are_kept_back_ten_in_a_request(world: World) -> None:
    queue = Queue()
    timers = [armed(world.after(10 * MINUTE), number) for number in range(25)]
    TimerQueue(sqs=queue, scheduler=None, settings=SETTINGS)(Sent.arming(timers, world.now))  # type: ignore[arg-type]
    assert [seconds for _, seconds in queue.messages] == [600] * 25
    assert {body for body, _ in queue.messages} == {Wake.of(each).body for each in timers}


def test_no_message_is_kept_back_for_longer_than_a_queue_does(world: World) -> None:
    queue = Queue()
    farthest = Ticks(world.now + NEAR + 60 * PER_SECOND - 1)
    sent = Sent(near=Sent.arming([armed(farthest)], world.now).near or ((Wake.of(armed(farthest)), 780),))
    TimerQueue(sqs=queue, scheduler=None, settings=SETTINGS)(sent)  # type: ignore[arg-type]
    assert all(seconds <= 900 for _, seconds in queue.messages)


def test_a_slot_that_is_far_off_is_one_schedule_which_goes_once_it_has_sent_its_wake_up(
    world: World, scheduler: Any
) -> None:
    queue = Queue()
    due = world.after(14 * 86_400)
    for _ in range(2):  # the second process finds that there is one
        send = TimerQueue(sqs=queue, scheduler=scheduler, settings=SETTINGS)  # type: ignore[arg-type]
        send(Sent.arming([armed(due), armed(Ticks(due + 1))], world.now))
    assert queue.messages == []
    slot = Wake.of_slot(armed(due))
    (listed,) = scheduler.list_schedules(GroupName=GROUP)["Schedules"]
    found = scheduler.get_schedule(Name=listed["Name"], GroupName=GROUP)
    assert found["Name"] == slot.name
    assert (found["ScheduleExpression"], found["ScheduleExpressionTimezone"]) == (
        "at(2026-10-05T14:13:00)",
        "UTC",
    )
    assert (found["ActionAfterCompletion"], found["FlexibleTimeWindow"]) == ("DELETE", {"Mode": "OFF"})
    assert (found["Target"]["Arn"], found["Target"]["RoleArn"]) == SCHEDULES[1:]
    assert found["Target"]["Input"] == slot.body


def test_a_process_asks_once_for_the_schedule_of_a_slot_however_many_timers_it_has(world: World) -> None:
    made = list[str]()

    class Scheduler:
        def create_schedule(self, Name: str, **_: Any) -> None:  # noqa: N803  as boto3 names it
            made.append(Name)
            if len(made) == 1:
                raise EndpointConnectionError(endpoint_url="https://scheduler")

    send = TimerQueue(sqs=Queue(), scheduler=Scheduler(), settings=SETTINGS)  # type: ignore[arg-type]
    sent = Sent.arming([armed(world.after(86_400))], world.now)
    with pytest.raises(Unavailable):
        send(sent)
    for _ in range(50):
        send(sent)
    assert made == [sent.far[0].name] * 2, "once more, since the first was not made"


def test_a_message_that_the_queue_does_not_take_is_said(world: World) -> None:
    send = TimerQueue(sqs=Queue(refuses="ServiceUnavailable"), scheduler=None, settings=SETTINGS)  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="ServiceUnavailable"):
        send(Sent.arming([armed(world.now)], world.now))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "raised"), [("AccessDeniedException", Refused), ("ResourceNotFoundException", InvalidRequest)]
)
def test_a_schedule_that_cannot_be_made_is_said(
    world: World, scheduler: Any, code: str, raised: type[Exception]
) -> None:
    """No permission, no group: whoever arms has to hear of it, or the timer would be late."""

    class Denied:
        def create_schedule(self, **_: Any) -> None:
            refused = {"Error": {"Code": code, "Message": "no"}}
            raise scheduler.exceptions.ClientError(refused, "CreateSchedule")

    send = TimerQueue(sqs=Queue(), scheduler=Denied(), settings=SETTINGS)  # type: ignore[arg-type]
    with pytest.raises(raised):
        send(Sent.arming([armed(world.after(86_400))], world.now))


def test_a_wake_up_fires_what_is_due_and_counts_how_late_it_is(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = Queue()
    deployed = function(world, queue)
    world.engine = deployed.engine
    world.set("Loan-1", "reminder", 5)
    world.arm()
    world.time = BEGIN + 7 * 10**9
    answer = deployed.handle({"Records": queue.records(by=5)}, Context())  # type: ignore[arg-type]
    assert answer == {"batchItemFailures": []}
    assert world.types("Loan-1") == ["$timer-set", "reminder came", "$timer-fired"]
    figures = counted(capsys.readouterr().out)
    assert figures["Timers.fired"] == 1
    assert figures["Timers.late"] == [pytest.approx(2_000, abs=100)]
    assert not figures.keys() & {"Timers.swept", "Timers.stuck"}


def test_a_wake_up_that_comes_too_early_is_sent_again_and_done(world: World) -> None:
    """By a clock that is behind, or where a queue kept it back for less."""
    queue = Queue()
    deployed = function(world, queue)
    world.engine = deployed.engine
    world.set("Loan-1", "reminder", 5)
    world.arm()
    answer = deployed.handle({"Records": queue.records(by=5)}, Context())  # type: ignore[arg-type]
    assert answer == {"batchItemFailures": []}
    assert world.types("Loan-1") == ["$timer-set"]
    assert [seconds for _, seconds in queue.messages] == [5]


def test_what_fails_of_a_batch_comes_again_and_the_rest_is_done(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue()
    deployed = function(world, queue)
    world.engine = deployed.engine
    for number in (1, 2):
        world.set(f"Loan-{number}", "reminder", 5)
    world.arm()
    world.time += 10 * 10**9
    records = [*queue.records(by=5), record("strange", "{}")]

    broken = [each["messageId"] for each in records if "Loan-1#" in each["body"]]
    world.fails = _failing("Loan-1")
    answer = deployed.handle({"Records": records}, Context())  # type: ignore[arg-type]
    failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
    assert failed == {"strange", *broken}
    assert world.types("Loan-2")[-1] == "$timer-fired"
    printed = capsys.readouterr().out
    assert counted(printed)["Timers.stuck"] == 1
    (told,) = [each for each in caplog.records if each.message == "timers cannot be fired"]
    assert vars(told)["error"].startswith("Unavailable")
    assert vars(told)["stream"] == "Loan-1"


def test_what_was_fired_before_the_table_of_timers_is_out_is_counted_and_comes_again(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = Queue()
    deployed = function(world, queue)
    world.engine = deployed.engine
    world.set("Loan-1", "reminder", 5)
    world.arm()
    world.time += 10 * 10**9

    def out(op: Op) -> None:
        if isinstance(op, Delete):
            raise Unavailable("out")

    world.fails = out
    records = queue.records(by=5)
    answer = deployed.handle({"Records": records}, Context())  # type: ignore[arg-type]
    assert len(answer["batchItemFailures"]) == 1
    figures = counted(capsys.readouterr().out)
    assert (figures["Timers.fired"], figures["Timers.stuck"]) == (1, 1)
    world.fails = lambda _: None
    assert deployed.handle({"Records": records}, Context()) == {"batchItemFailures": []}  # type: ignore[arg-type]
    assert "Timers.fired" not in counted(capsys.readouterr().out)
    assert (world.types("Loan-1").count("reminder came"), world.items()) == (1, [])


@pytest.mark.parametrize("swept", [False, True], ids=["woken", "by a tick"])
def test_what_was_fired_before_an_outage_ends_all_is_counted(
    world: World, capsys: pytest.CaptureFixture[str], swept: bool
) -> None:
    deployed = function(world, Queue())
    world.engine = deployed.engine
    for number in range(20):
        world.set(f"Loan-{number}", "reminder", 5)
    world.arm()
    world.time += 5 * 10**9 + GRACE * 100 + 10**9
    asked = 0

    def out(op: Op) -> None:
        nonlocal asked
        if isinstance(op, Query) and op.table == TIMERS.kind:
            asked += 1
            if asked > 8:
                raise Unavailable("out")

    world.fails = out
    slots = [record(str(each.shard), Wake.of_slot(each).body) for each in world.items()]
    event = {} if swept else {"Records": [*{str(each["body"]): each for each in slots}.values()]}
    with pytest.raises(Unavailable):
        deployed.handle(event, Context())  # type: ignore[arg-type]
    figures = counted(capsys.readouterr().out)
    fired = sum(world.types(f"Loan-{number}")[-1] == "$timer-fired" for number in range(20))
    assert 0 < figures["Timers.fired"] == fired < 20
    assert ("Timers.swept" in figures) == swept


def _failing(stream: str) -> Any:
    def fails(op: Op) -> None:
        if not isinstance(op, Put) and f"'{stream}'" in repr(op):
            raise Unavailable("out")

    return fails


def test_a_timer_is_in_the_table_though_its_wake_up_cannot_be_sent_and_a_tick_fires_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Its stream is not parked, or later timers of the stream would not be armed."""
    queue = Queue(refuses="ServiceUnavailable")
    send = TimerQueue(sqs=queue, scheduler=None, settings=SETTINGS)  # type: ignore[arg-type]
    fires, world.engine = (
        function(world, Queue()),
        replace(world.engine, send=partial(sent_or_swept, send, Logger(service="timers"))),
    )
    for name in ("first", "second"):
        world.set("Loan-1", name, 5)
        world.arm()
    assert len(world.items()) == 2
    assert [each.message for each in caplog.records if "not sent" in each.message]
    world.time += 5 * 10**9 + GRACE * 100 + 10**9
    assert fires.handle({}, Context()) == {"fired": 2}  # type: ignore[arg-type]


def test_a_tick_fires_what_no_wake_up_came_for_and_counts_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = Queue()
    deployed = function(world, queue)
    world.engine = deployed.engine
    for number in range(20):
        world.set(f"Loan-{number}", "reminder", 5)
    world.arm()
    queue.messages.clear()
    world.time += 5 * 10**9 + GRACE * 100 + 10**9
    assert deployed.handle({}, Context()) == {"fired": 20}  # type: ignore[arg-type]
    assert world.items() == []
    assert counted(capsys.readouterr().out)["Timers.swept"] == 20


def test_a_tick_leaves_to_its_wake_up_what_has_just_come_due(world: World) -> None:
    deployed = function(world, Queue())
    world.engine = deployed.engine
    world.set("Loan-1", "reminder", 5)
    world.set("Loan-2", "reminder", 5)
    world.streams.append("Loan-2", [cancel("reminder")])
    world.arm()
    world.time += 60 * 10**9
    assert deployed.handle({}, Context()) == {"fired": 0}  # type: ignore[arg-type]
    assert len(world.items()) == 2


def test_a_tick_where_there_is_no_timer_asks_each_shard_once_and_counts_nothing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed = function(world, Queue())
    world.asked.clear()
    deployed.handle({}, Context())  # type: ignore[arg-type]
    assert len(world.asked) == 16
    assert counted(capsys.readouterr().out) == {}


def test_events_that_fire_may_set_timers_themselves(world: World) -> None:
    """A wake-up for them comes of the reaction, as for any other."""
    queue = Queue()
    deployed = function(world, queue)
    world.engine = deployed.engine
    world.set("Loan-1", "first", 5, Event.json("Came", {}))
    world.arm()
    world.time += 6 * 10**9
    deployed.handle({"Records": queue.records(by=900)}, Context())  # type: ignore[arg-type]
    assert world.types("Loan-1")[-1] == "$timer-fired"
    assert queue.messages == []
