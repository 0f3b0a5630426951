"""Wake-ups: what a function answers its queue, and when it wakes itself."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import boto3
import pytest
from aws_lambda_powertools import Logger
from moto import mock_aws

from epochal.errors import InvalidInput, Unavailable
from epochal.feed.notices import Topic
from epochal.hosting.function import lambda_handler
from epochal.hosting.group_wakeups import wake_group
from epochal.hosting.metrics import Metrics
from epochal.hosting.reaction_function import ReactionFunction
from epochal.hosting.wakeup_queue import Queue, WakeUpCall, read_wake_ups
from epochal.hosting.wakeups import CAREFUL_FROM, MOST_HOPS, Standstill, WakeUp, handle_wake_ups
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import Unit
from epochal.reactions.failures import Failure
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor, RunResult
from epochal.reactions.steering import Groups
from tests.core.reactions.world import Told, World
from tests.support.leases import Visibility, once

FAILED = Failure(stream="A-1", index=0, cause="ValueError: no", attempts=5)


def message(partition: int, position: int, *, id_: str = "m", receives: int = 1) -> dict[str, Any]:
    """A message of a FIFO queue, as Lambda hands it on."""
    return {
        "messageId": id_,
        "receiptHandle": f"receipt {id_}",
        "body": str(position),
        "attributes": {"MessageGroupId": str(partition), "ApproximateReceiveCount": str(receives)},
    }


class Context:
    """As much time as a test gives."""

    def __init__(self, seconds: float = 300.0) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


class Sent(Visibility):
    """A queue's client that takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[dict[str, Any]] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "queue"
        self.entries += Entries
        return {}


def function(world: World, sent: Sent | None = None, **reaction: Any) -> ReactionFunction:
    return woken_by(sent or Sent(), world, **reaction)


def woken_by(client: Any, world: World, **reaction: Any) -> ReactionFunction:
    return ReactionFunction(
        reactor=world.reactor(**reaction),
        queue=Queue(client, "queue"),
        logger=Logger(service="board"),
        metrics=Metrics("board"),
        now=world.feeds.clock,
        beats=once,
    )


def test_a_message_wakes_its_partition_and_is_done_when_its_position_is_reached() -> None:
    world = World()
    world.append("A-1")
    answer = function(world).handle({"Records": [message(0, 1)]}, Context())  # type: ignore[arg-type]
    assert answer == {"batchItemFailures": []}
    assert world.told.of("A-1") == [0]


@pytest.mark.slow
@mock_aws
def test_a_group_that_is_resumed_goes_on_by_a_wake_up_though_the_last_one_found_it_paused() -> None:
    """What FIFO queues drop as repeated within five minutes would leave it until the next event."""
    client = boto3.client("sqs", region_name="eu-central-1")
    url = client.create_queue(QueueName="epochal-dev-reaction-board.fifo", Attributes={"FifoQueue": "true"})[
        "QueueUrl"
    ]
    world = World()
    run, reader = function(world), world.feeds.reader()
    groups = Groups(reader)

    def delivered() -> list[dict[str, Any]]:
        found = client.receive_message(
            QueueUrl=url, AttributeNames=["All"], MaxNumberOfMessages=10, VisibilityTimeout=0
        ).get("Messages", [])
        for each in found:
            client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        records = [
            {
                "messageId": each["MessageId"],
                "receiptHandle": each["ReceiptHandle"],
                "body": each["Body"],
                "attributes": each["Attributes"],
            }
            for each in found
        ]
        if records:
            run.handle({"Records": records}, Context())  # type: ignore[arg-type]
        return records

    world.append("A-1")
    run.handle({"Records": [message(0, 1)]}, Context())  # type: ignore[arg-type]
    world.append("A-1")
    for _ in range(2):
        groups.pause("board")
        wake_group(client, "epochal-dev", "board", reader.partitions())
        assert len(delivered()) == 2
        assert world.told.of("A-1") == [0]
    groups.resume("board")
    assert wake_group(client, "epochal-dev", "board", reader.partitions())
    assert len(delivered()) == 2
    assert world.told.of("A-1") == [0, 1]
    assert not wake_group(client, "epochal-dev", "another", reader.partitions())


def test_a_partition_of_a_source_that_is_not_wanted_is_left_alone() -> None:
    world = World()
    world.append("A-1")
    only_tags = function(world, sources=frozenset({"dcb"}))
    assert only_tags.handle({"Records": [message(0, 1)]}, Context()) == {  # type: ignore[arg-type]
        "batchItemFailures": []
    }
    assert world.told.handled == []


def test_a_blocked_partition_fails_its_messages_so_that_they_come_again() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    answer = function(world, on_failure="block").handle(
        {"Records": [message(0, 1, id_="a"), message(0, 1, id_="b")]},
        Context(),  # type: ignore[arg-type]
    )
    assert answer == {"batchItemFailures": [{"itemIdentifier": "a"}, {"itemIdentifier": "b"}]}


class Lines:
    """A log that keeps what is said in it."""

    def __init__(self, log_level: int = logging.INFO) -> None:
        self.log_level = log_level
        self.said: list[tuple[str, dict[str, Any]]] = []

    def error(self, message: str, **fields: Any) -> None:
        self.said.append((message, fields))

    def warning(self, message: str, **fields: Any) -> None:
        assert message == "wake-ups failed and will be retried"
        assert fields.keys() == {"messages", "receives", "seconds"}


@pytest.mark.parametrize(
    ("on_failure", "said"), [("park", ("parked a stream", {"attempts": 1})), ("block", ("blocked", {}))]
)
def test_of_a_stream_that_fails_the_log_has_its_name_and_not_the_handlers_words(
    on_failure: str, said: tuple[str, dict[str, Any]]
) -> None:
    """The words may quote an event."""
    world, lines = World(told=Told(fails=lambda _: True)), Lines()
    world.append("Person-7")
    logged = replace(function(world, on_failure=on_failure, attempts=1), logger=lines)  # type: ignore[arg-type]
    logged.handle({"Records": [message(0, 1)]}, Context())  # type: ignore[arg-type]
    line, fields = said
    place = {"partition": 0, "stream": "Person-7", "index": 0, "kind": "ValueError"}
    assert lines.said == [(line, {**fields, **place})]


@pytest.mark.parametrize(("on_failure", "line"), [("park", "parked a stream"), ("block", "blocked")])
def test_of_a_stream_that_fails_the_log_has_the_handlers_words_too_where_all_is_logged(
    on_failure: str, line: str
) -> None:
    world, lines = World(told=Told(fails=lambda _: True)), Lines(logging.DEBUG)
    world.append("Person-7")
    logged = replace(function(world, on_failure=on_failure, attempts=1), logger=lines)  # type: ignore[arg-type]
    logged.handle({"Records": [message(0, 1)]}, Context())  # type: ignore[arg-type]
    ((said, fields),) = lines.said
    assert said == line
    assert fields["stream"] == "Person-7"
    assert fields["cause"].startswith("ValueError: ")


def test_a_long_catch_up_goes_on_by_a_wake_up_of_its_own() -> None:
    world = World()
    world.append("A-1")
    world.append("B-1")
    clock = world.feeds.clock
    world.told.during = lambda _: clock.sleep(200)
    sent = Sent()
    answer = function(world, sent).handle({"Records": [message(0, 2)]}, Context(100))  # type: ignore[arg-type]
    assert answer == {"batchItemFailures": []}
    ((again),) = sent.entries
    assert (again["MessageBody"], again["MessageGroupId"]) == ("2", "0")


def test_two_wake_ups_of_a_catch_up_are_never_taken_for_one() -> None:
    """The queue drops what looks like a message of the last five minutes."""
    world = World()
    for number in range(3):
        world.append(f"A-{number}")
    clock = world.feeds.clock
    world.told.during = lambda _: clock.sleep(200)
    sent = Sent()
    for _ in range(2):
        function(world, sent).handle({"Records": [message(0, 3)]}, Context(100))  # type: ignore[arg-type]
    assert len({entry["MessageDeduplicationId"] for entry in sent.entries}) == 2


def test_a_schedule_wakes_every_partition_of_the_sources_that_are_wanted() -> None:
    world = World()
    world.append("A-1")
    sent = Sent()
    assert function(world, sent).handle({"source": "aws.events"}, Context()) == {"woken": 1}  # type: ignore[arg-type]
    assert [(each["MessageGroupId"], each["MessageBody"]) for each in sent.entries] == [("0", "1")]
    none = function(world, Sent(), sources=frozenset({"journal"}))
    assert none.handle({"source": "aws.events"}, Context()) == {"woken": 0}  # type: ignore[arg-type]


def test_a_schedule_counts_categories_of_which_no_stream_has_come(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.append("Flight-1")
    asked = function(world, categories=frozenset({"Fligth", "Flight"}))
    asked.reactor.run(0, seconds=60)
    assert asked.handle({"source": "aws.events"}, Context()) == {"woken": 1}  # type: ignore[arg-type]
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "Reaction.unmet" in line]
    assert [line["Reaction.unmet"] for line in told] == [1]
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert vars(warning)["names"] == ["category Fligth"]


def runs(**partitions: RunResult) -> Any:
    def run(unit: Unit, _seconds: float, _careful: bool) -> RunResult:
        return partitions[f"p{unit}"]

    return run


def test_a_run_that_got_nowhere_is_a_failure_and_one_that_got_somewhere_is_not() -> None:
    again: list[int] = []
    woken = handle_wake_ups(
        [
            WakeUp(id="stuck", unit=Unit(0), position=Checkpoint(9)),
            WakeUp(id="moving", unit=Unit(1), position=Checkpoint(9)),
            WakeUp(id="done", unit=Unit(2), position=Checkpoint(9)),
            WakeUp(id="blocked", unit=Unit(3), position=Checkpoint(9)),
        ],
        lambda: 100.0,
        runs(
            p0=RunResult(checkpoint=Checkpoint(1), at_tail=False),
            p1=RunResult(checkpoint=Checkpoint(1), at_tail=False, moved=True),
            p2=RunResult(checkpoint=Checkpoint(9), at_tail=False, moved=True),
            p3=RunResult(checkpoint=Checkpoint(1), at_tail=False, moved=True, blocked=FAILED),
        ),
        lambda unit, *_: again.append(unit.partition),
    )
    assert woken.failed == ("stuck", "blocked")
    assert again == [1]


def test_of_several_wake_ups_the_furthest_is_to_be_reached_and_the_longest_standing_counts() -> None:
    """In whichever order the queue has them."""
    again: list[tuple[Checkpoint, Standstill]] = []
    ups = [
        WakeUp(id="near", unit=Unit(0), position=Checkpoint(5), standing=Standstill(Checkpoint(5), 2)),
        WakeUp(id="far", unit=Unit(0), position=Checkpoint(9), standing=Standstill(Checkpoint(5), 7)),
        WakeUp(id="old", unit=Unit(0), position=Checkpoint(4), standing=Standstill(Checkpoint(3), 400)),
    ]
    for order in permutations(ups):
        woken = handle_wake_ups(
            order,
            lambda: 90.0,
            runs(p0=RunResult(checkpoint=Checkpoint(5), at_tail=False, moved=True)),
            lambda _, position, standing: again.append((position, standing)),
        )
        assert woken.failed == ()
    assert set(again) == {(Checkpoint(9), Standstill(Checkpoint(5), 8))}
    assert len(again) == 6


class Attributes(Visibility):
    """A client that hands what is sent back, as Lambda would."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[dict[str, Any]] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        for entry in Entries:
            told = {
                name: {"dataType": each["DataType"], "stringValue": each["StringValue"]}
                for name, each in entry["MessageAttributes"].items()
            }
            self.records.append(
                {**message(0, int(entry["MessageBody"])), "messageAttributes": told, "queue": QueueUrl}
            )
        return {}


def test_a_catch_up_that_gets_nowhere_ends_with_an_error_that_is_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lambda's own bound on loops is lifted for reactions, so that long catch-ups go on."""
    lines, client, runs = Lines(), Attributes(), 0
    one = replace(woken_by(client, World()), logger=lines)  # type: ignore[arg-type]

    def run(*_: object, **__: object) -> RunResult:
        nonlocal runs
        runs += 1
        return RunResult(
            checkpoint=Checkpoint(3), at_tail=False, moved=True
        )  # what it did is forgotten again

    turning = replace(one, reactor=Turning(one.reactor, run))  # type: ignore[arg-type]
    record = message(0, 9)
    while not turning.handle({"Records": [record]}, Context())["batchItemFailures"]:  # type: ignore[arg-type]
        (record,), client.records = client.records, []
    assert runs == MOST_HOPS + 1
    assert lines.said == [
        ("a catch-up makes no progress", {"partition": 0, "checkpoint": "0@3", "hops": MOST_HOPS + 1})
    ]
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["Reaction.blocked"] for line in told if "Reaction.blocked" in line] == [1]


def test_a_catch_up_that_gets_on_may_take_any_number_of_wake_ups() -> None:
    client, runs = Attributes(), 0
    one = woken_by(client, World())

    def run(*_: object, **__: object) -> RunResult:
        nonlocal runs
        runs += 1
        return RunResult(checkpoint=Checkpoint(runs // 300), at_tail=runs == 3 * MOST_HOPS, moved=True)

    turning = replace(one, reactor=Turning(one.reactor, run))  # type: ignore[arg-type]
    record = message(0, 9)
    while runs < 3 * MOST_HOPS:
        assert turning.handle({"Records": [record]}, Context()) == {"batchItemFailures": []}  # type: ignore[arg-type]
        if client.records:
            (record,), client.records = client.records, []


@dataclass(frozen=True)
class Turning:
    """A reactor whose runs are a test's."""

    real: Reactor
    run: Any

    @property
    def member(self) -> Member:
        return self.real.member


def test_time_is_divided_among_the_partitions_that_are_left() -> None:
    given: list[float] = []

    def run(_unit: Unit, seconds: float, _careful: bool) -> RunResult:
        given.append(seconds)
        return RunResult(checkpoint=Checkpoint(9), at_tail=True)

    ups = [WakeUp(id=str(number), unit=Unit(number), position=Checkpoint(9)) for number in range(3)]
    handle_wake_ups(ups, lambda: 90.0, run, lambda *_: None)
    assert given == [30.0, 45.0, 90.0]


def test_a_partition_that_others_left_no_time_for_wakes_itself_and_does_not_fail() -> None:
    left, again = [30.0, 0.1], []

    def run(unit: Unit, _seconds: float, _careful: bool) -> RunResult:
        assert unit == Unit(0)
        return RunResult(checkpoint=Checkpoint(9), at_tail=True)

    ups = [WakeUp(id=str(number), unit=Unit(number), position=Checkpoint(9)) for number in range(2)]
    woken = handle_wake_ups(ups, lambda: left.pop(0), run, lambda unit, *_: again.append(unit.partition))
    assert (woken.failed, again) == ((), [1])


@pytest.mark.parametrize(("receives", "careful"), [(CAREFUL_FROM - 1, False), (CAREFUL_FROM, True)])
def test_a_message_that_keeps_coming_back_is_handled_carefully(receives: int, careful: bool) -> None:
    told: list[bool] = []

    def run(_unit: Unit, _seconds: float, carefully: bool) -> RunResult:
        told.append(carefully)
        return RunResult(checkpoint=Checkpoint(9), at_tail=True)

    handle_wake_ups(read_wake_ups([message(0, 9, receives=receives)]), lambda: 90.0, run, lambda *_: None)
    assert told == [careful]


def test_one_message_that_keeps_coming_back_is_enough_for_its_partition_and_says_nothing_of_others() -> None:
    told: dict[int, bool] = {}

    def run(unit: Unit, _seconds: float, carefully: bool) -> RunResult:
        told[unit.partition] = carefully
        return RunResult(checkpoint=Checkpoint(9), at_tail=True)

    ups = [message(0, 8, receives=CAREFUL_FROM), message(0, 9, id_="n"), message(1, 9, id_="o")]
    handle_wake_ups(read_wake_ups(ups), lambda: 90.0, run, lambda *_: None)
    assert told == {0: True, 1: False}


@pytest.mark.parametrize("environment", [{"EPOCHAL_REACTION": "other"}, {}], ids=["another", "none"])
def test_a_function_that_was_deployed_for_another_reaction_does_not_start(
    environment: dict[str, str],
) -> None:
    reaction = World().reactor().member.reaction
    with pytest.raises(InvalidInput, match="give both the same name"):
        lambda_handler(reaction, environment)


@mock_aws
@pytest.mark.slow
def test_notices_reach_a_subscribed_queue_raw_and_in_tens() -> None:
    sns, sqs = boto3.client("sns", region_name="us-east-1"), boto3.client("sqs", region_name="us-east-1")
    fifo = {"FifoTopic": "true"}
    topic = sns.create_topic(Name="moved.fifo", Attributes=fifo)["TopicArn"]
    url = sqs.create_queue(QueueName="q.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    raw = {"RawMessageDelivery": "true"}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=raw)
    found = {number: Checkpoint(number + 7) for number in range(13)}
    assert Topic(sns, topic).publish(found) == 13
    received: dict[int, str] = {}
    while batch := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
    ).get("Messages"):
        for each in batch:
            attributes = each["MessageAttributes"]
            assert attributes["Position"]["StringValue"] == each["Body"]
            assert attributes["Partition"]["StringValue"] == each["Attributes"]["MessageGroupId"]
            received[int(each["Attributes"]["MessageGroupId"])] = each["Body"]
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    assert received == {number: str(number + 7) for number in range(13)}


def test_deduplication_ids_of_different_notices_differ() -> None:
    class Taking:
        def publish_batch(self, **request: Any) -> dict[str, Any]:
            ids.extend(each["MessageDeduplicationId"] for each in request["PublishBatchRequestEntries"])
            return {}

    ids: list[str] = []
    Topic(Taking(), "topic").publish({1: Checkpoint(23), 12: Checkpoint(3)})  # type: ignore[arg-type]
    assert len(set(ids)) == 2


class Refusing:
    """A topic's and a queue's client that takes all but one."""

    def publish_batch(self, **_: Any) -> dict[str, Any]:
        return {"Failed": [{"Id": "1", "Code": "Throttled"}]}

    def send_message_batch(self, **_: Any) -> dict[str, Any]:
        return {"Failed": [{"Id": "1", "Code": "Throttled"}]}


def test_an_entry_that_is_not_taken_fails_the_batch() -> None:
    with pytest.raises(Unavailable, match="refused 1 of 1"):
        Topic(Refusing(), "topic").publish({1: Checkpoint(1)})  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="refused 1 of 1"):
        Queue(Refusing(), "queue").send([WakeUpCall(unit=Unit(1), position=Checkpoint(1), occasion="x")])  # type: ignore[arg-type]


def test_an_operator_lists_and_replays_what_is_parked() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    one = function(world)
    one.handle({"Records": [message(0, 1)]}, Context())  # type: ignore[arg-type]
    listed = one.handle({"command": "parked", "partition": 0}, Context())  # type: ignore[arg-type]
    assert [(each["stream"], each["index"]) for each in listed["parked"]] == [("A-1", 0)]
    world.told.fails = lambda _: False
    answer = one.handle({"command": "replay", "partition": 0, "stream": "A-1"}, Context())  # type: ignore[arg-type]
    assert answer == {"next": 1, "unparked": True, "failure": None}


def test_an_operator_gives_up_the_event_that_was_seen_and_no_other() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1", "one", "two", "three")
    one = function(world)
    one.handle({"Records": [message(0, 1)]}, Context())  # type: ignore[arg-type]
    skip = {"command": "skip", "partition": 0, "stream": "A-1"}

    def asked(fields: dict[str, Any]) -> dict[str, Any]:
        return one.handle(skip | fields, Context())  # type: ignore[arg-type, return-value]

    assert asked({"index": 0}) == {"next": 1, "unparked": False}
    assert "index: the stream now waits at 1, not at 0" in asked({"index": 0})["detail"]
    assert asked({}) == {"next": 2, "unparked": False}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"command": "skip", "partition": 0, "stream": "A-1", "index": "0"}, "index"),
        ({"command": "skip", "partition": 0, "stream": "A-1", "index": True}, "index"),
        ({"command": "replay", "partition": 0, "stream": "A-1", "index": 0}, "index"),
        ({"command": "explode", "partition": 0}, "command"),
        ({"command": "replay", "partition": "0"}, "partition"),
        ({"command": "replay", "partition": True}, "partition"),
        ({"command": "replay", "partition": -1}, "partition"),
        ({"command": "replay", "partition": 0, "stream": 3}, "stream"),
        ({"command": "replay", "partition": 0, "stream": "B-1"}, "stream"),
    ],
)
def test_an_operator_who_asks_for_nonsense_is_told_so(fields: dict[str, Any], field: str) -> None:
    answer = function(World()).handle(fields, Context())  # type: ignore[arg-type]
    assert answer["error"] == "InvalidInput"
    assert field in answer["detail"]
